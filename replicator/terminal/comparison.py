"""The outcome of a comparison on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from replicator.pipeline.compare.findings import TargetComparison


def verdict(result: TargetComparison) -> str:
    """One word: ``differs``, ``incomplete`` or ``equal``."""
    if result.unequal:
        return "differs"
    return "incomplete" if result.incomplete else "equal"


def comparison_line(result: TargetComparison) -> str:
    """A target that is finished, in a line."""
    return f"{result.target}: {verdict(result)}, {result.rows:,} rows, {result.seconds:.1f} s"


def render_comparison(results: Sequence[TargetComparison], repair: Path | None) -> RenderableType:
    """All targets, then the rows that differ and what was not compared."""
    table = Table(box=None, pad_edge=False)
    table.add_column("target")
    for name in ("rows", "shards", "missing", "extra", "different", "held", "unsettled"):
        table.add_column(name, justify="right")
    table.add_column("")
    for result in results:
        counts = (result.missing, result.extra, result.different, result.held, result.unsettled)
        table.add_row(
            str(result.target),
            f"{result.rows:,}",
            str(len(result.by_shard)),
            *(f"{count:,}" for count in counts),
            verdict(result),
        )
    parts: list[RenderableType] = [table]
    for result in results:
        parts += [Text(line) for line in _details(result)]
    if repair is not None and any(result.differing for result in results):
        parts.append(Text(f"{repair} has the SQL that makes the targets equal: read it, then run"))
        parts.append(Text(f"  mariadb --host <target> < {repair}"))
    return Group(*parts)


def _details(result: TargetComparison) -> list[str]:
    lines = []
    name = result.target
    if result.failure:
        lines.append(f"{name} was not compared: {result.failure}")
    lines += [f"{name}: {text}" for text in result.structure]
    lines += [f"{name}: column {o.column} was not compared: {o.why}" for o in result.left_out]
    if result.held:
        lines.append(f"{name}: {result.held:,} rows wait behind a DDL lock")
    if result.unsettled:
        lines.append(
            f"{name}: {result.unsettled:,} rows differ, but the task has not applied all that the"
            " sources have written. Start the task, or wait until it has caught up, and compare"
            " again"
        )
    for kind, shard, key, columns in result.examples:
        where = f" ({shard})" if shard else ""
        lines.append(f"{name}: {kind}: {key}{where}{': ' if columns else ''}{columns}")
    more = result.differing - len(result.examples)
    if result.examples and more > 0:
        lines.append(f"{name}: and {more:,} more")
    return lines
