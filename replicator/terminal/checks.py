"""The results of the prechecks, as lines on a terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from itertools import groupby

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from replicator.checks.items import ALL, KEY_COLLISIONS
from replicator.checks.result import CheckResult

_MARKS = {"passed": ("✓", "green"), "warning": ("!", "yellow"), "failed": ("✗", "bold red")}


def render_checks(results: Sequence[CheckResult], left_out: Collection[str] = ()) -> RenderableType:
    """Each result with its ways out, below the server that it is about, and a summary.

    ``left_out`` are the checks that the task file leaves out.
    """
    parts: list[RenderableType] = []
    for where, group in groupby(results, key=lambda result: result.where):
        parts.append(Text(where, style="bold"))
        for result in group:
            mark, style = _MARKS[result.state]
            line = Text.assemble((f"{mark} ", style), (f"{result.name}: ", "dim"), result.finding)
            parts.append(Padding(line, (0, 0, 0, 2)))
            if result.ways_out:
                ways_out = [Text(way, style="cyan") for way in result.ways_out]
                lines = Group(Text("ways out:", style="bold"), *ways_out)
                parts.append(Padding(lines, (0, 0, 0, 6)))
    parts.append(_summary(results, left_out))
    return Group(*parts)


def checks_json(task: str, results: Sequence[CheckResult], left_out: Collection[str] = ()) -> str:
    """The stable JSON form: ``task``, ``passed``, ``left_out``, and ``checks`` with the fields of a
    result."""
    values = {
        "task": task,
        "passed": not any(result.state == "failed" for result in results),
        "left_out": sorted(left_out),
        "checks": [asdict(result) for result in results],
    }
    return json.dumps(values, indent=2, ensure_ascii=False)


def _summary(results: Sequence[CheckResult], left_out: Collection[str]) -> Text:
    text = Text("\n")
    if ALL in left_out:
        text.append("all checks are left out (ignore-checking-items: all): nothing was looked at,")
        return text.append(" whether the task can run is not known.", "bold yellow")
    if left_out:
        names = ", ".join(sorted(left_out))
        text.append(f"left out by ignore-checking-items: {names}\n", "yellow")
    names_failed = [result.name for result in results if result.state == "failed"]
    failed = len(names_failed)
    warnings = sum(result.state == "warning" for result in results)
    passed = len(results) - failed - warnings
    text.append(f"{passed} passed, {warnings} with a warning, {failed} failed: ")
    if set(names_failed) == {KEY_COLLISIONS}:
        # `run` does not look at them.
        text.append("the task starts, ", "bold yellow")
        return text.append("but the target can't have all rows before this is mended.", "bold red")
    if failed:
        return text.append("the task can't run before this is mended.", "bold red")
    if left_out:
        return text.append("as far as was looked, the task can run.", "bold green")
    return text.append("the task can run.", "bold green")
