"""The results of the prechecks, as lines on a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from replicator.checks.check_items import ALL, KEY_COLLISIONS
from replicator.checks.result import CheckResult, State
from replicator.checks.source.estimates import TargetEstimate
from replicator.printable_text import shown_json
from replicator.terminal.figures import number
from replicator.terminal.fitting_table import FittingTable, TextColumn
from replicator.terminal.remedies import remedies_list

_MARKS = {"passed": ("✓", "green"), "warning": ("!", "yellow"), "failed": ("✗", "bold red")}
_ORDER: tuple[State, ...] = ("failed", "warning", "passed")


def render_checks(
    results: Sequence[CheckResult],
    left_out: Collection[str] = (),
    targets: Sequence[TargetEstimate] = (),
    *,
    verbose: bool = False,
    allowed: tuple[str, str] = ("the task", "run"),
) -> RenderableType:
    """Return the failures and warnings with their remedies, the targets, and a summary.

    ``left_out`` are the checks that the task file disables. Passed checks are shown one by one only
    with ``verbose``. ``allowed`` names the subject of the checks, and what it can do if they pass.
    """
    parts: list[RenderableType] = []
    for state in _ORDER:
        if state != "passed" or verbose:
            parts += _of_state([result for result in results if result.state == state])
    if targets:
        parts += [Text(), _targets(targets)]
    parts.append(_summary(results, left_out, allowed, verbose=verbose))
    return Group(*parts)


def _of_state(results: Sequence[CheckResult]) -> Iterator[RenderableType]:
    for where, group in groupby(results, key=lambda result: result.where):
        yield Text(where, style="bold")
        # Many tables may have the same remedy, which is shown once, after all of them.
        alike: dict[tuple[str, ...], list[CheckResult]] = {}
        for result in group:
            alike.setdefault((result.name, *result.remedies), []).append(result)
        for (_, *remedies), found in alike.items():
            for result in found:
                mark, style = _MARKS[result.state]
                name = (f"{result.name}: ", "dim")
                line = Text.assemble((f"{mark} ", style), name, result.finding)
                yield Padding(line, (0, 0, 0, 2), expand=False)
            if remedies:
                yield remedies_list(remedies, margin=4)


def _targets(targets: Sequence[TargetEstimate]) -> RenderableType:
    def column(heading: str, cell: Callable[[TargetEstimate], str], rank: int = 0) -> TextColumn:
        return TextColumn(heading, [*map(cell, targets)], rank, heading != "target")

    table = FittingTable(
        (
            column("target", lambda target: target.target),
            column("shards", lambda target: number(target.shards)),
            column("sources", lambda target: number(target.sources), 2),
            column("rows (estimate)", lambda target: number(target.rows)),
            column("MiB (estimate)", lambda target: f"{target.bytes / 2**20:.1f}", 1),
        )
    )
    rows, octets = sum(t.rows for t in targets), sum(t.bytes for t in targets)
    shards = sum(t.shards for t in targets)
    return Group(
        table,
        Text(
            f"{number(len(targets))} targets, {number(shards)} shards, about {number(rows)} rows"
            f" and {octets / 2**20:.1f} MiB, as the sources' servers estimate"
        ),
    )


def checks_json(
    task: str,
    results: Sequence[CheckResult],
    left_out: Collection[str] = (),
    targets: Sequence[TargetEstimate] = (),
) -> str:
    """Return the stable JSON form.

    It has ``task``, ``passed``, ``left_out``, ``checks`` with the fields of a result, and
    ``targets`` with the fields of an estimate.
    """
    values = {
        "task": task,
        "passed": not any(result.state == "failed" for result in results),
        "left_out": sorted(left_out),
        "checks": [asdict(result) for result in results],
        "targets": [asdict(target) for target in targets],
    }
    return shown_json(values, indent=2)


def _summary(
    results: Sequence[CheckResult],
    left_out: Collection[str],
    allowed: tuple[str, str],
    *,
    verbose: bool,
) -> Text:
    text = Text("\n")
    subject, verb = allowed
    if ALL in left_out:
        text.append("all checks are left out (ignore-checking-items: all):")
        return text.append(" whether the task can run is unknown.", "bold yellow")
    if left_out:
        names = ", ".join(sorted(left_out))
        text.append(f"left out by ignore-checking-items: {names}\n", "yellow")
    names_failed = [result.name for result in results if result.state == "failed"]
    failed = len(names_failed)
    warnings = sum(result.state == "warning" for result in results)
    passed = len(results) - failed - warnings
    if passed and not verbose:
        text.append(f"✓ passed: {passed} (check --verbose shows each)\n", "green")
    text.append(f"{passed} passed, {warnings} with a warning, {failed} failed: ")
    if set(names_failed) == {KEY_COLLISIONS}:
        # `run` does not check for key collisions.
        text.append("the task starts, ", "bold yellow")
        return text.append("but the target can't have all rows until this is fixed.", "bold red")
    if failed:
        return text.append(f"{subject} can't {verb} until these are fixed.", "bold red")
    if left_out:
        return text.append(f"as far as checked, {subject} can {verb}.", "bold green")
    return text.append(f"{subject} can {verb}.", "bold green")
