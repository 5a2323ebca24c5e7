"""The preview of a full copy, on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from replicator.pipeline.copy.copy_preview import ShardPreview, TargetPreview
from replicator.printable_text import shown_line
from replicator.terminal.figures import number
from replicator.terminal.fitting_table import FittingTable, TextColumn
from replicator.terminal.remedies import command_line


def render_preview(targets: Sequence[TargetPreview]) -> RenderableType:
    """Return each target with its shards, its CREATE TABLE if it is missing, and its first rows."""
    if not targets:
        return Text("\nno table is replicated: no route takes any", "yellow")
    shards = [shard for target in targets for shard in target.shards]
    chunks, rows = sum(s.chunks for s in shards), sum(s.rows for s in shards)
    missing = sum(bool(target.create) for target in targets)
    total = f"{number(len(shards))} shards into {number(len(targets))} targets"
    if any(target.planned for target in targets):
        total = (
            f"the copy: {total}, {number(missing)} of which it creates, about {number(rows)} rows"
            f" in {number(chunks)} chunks"
        )
    return Group(
        *(part for target in targets for part in _target(target)),
        Text(f"\n{total}; nothing was written"),
    )


def _target(target: TargetPreview) -> Iterator[RenderableType]:
    yield Text.assemble("\ntarget ", (str(target.target), "bold"))
    if target.problem:
        line = Text.assemble(("✗ ", "bold red"), target.problem)
        yield Padding(line, (0, 0, 0, 2), expand=False)
    yield _shards(target.shards, planned=target.planned)
    if target.create:
        yield Text("it is created:", "dim")
        yield from (
            command_line(f"{line}{end}", "  ")
            for statement in target.create
            for line, end in _ended(statement.splitlines())
        )
    if target.rows:
        yield Text("its first rows:", "dim")
        for row in target.rows:
            values = zip(target.columns, row, strict=True)
            text = ", ".join(f"{name}={value}" for name, value in values)
            yield Padding(Text(shown_line(text)), (0, 0, 0, 2), expand=False)
    elif target.planned and not target.problem:
        yield Text("its shards have no rows that would be copied", "dim")


def _ended(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    last = len(lines) - 1
    return ((line, ";" if place == last else "") for place, line in enumerate(lines))


def _shards(shards: Sequence[ShardPreview], *, planned: bool) -> FittingTable:
    def column(heading: str, cell: Callable[[ShardPreview], str], rank: int = 0) -> TextColumn:
        numeric = heading not in ("source", "shard")
        return TextColumn(heading, [*map(cell, shards)], rank, numeric)

    chunks = [column("chunks", lambda shard: number(shard.chunks), 1)] if planned else []
    return FittingTable(
        (
            column("source", lambda shard: shard.source),
            column("shard", lambda shard: str(shard.table)),
            column("rows (estimate)", lambda shard: number(shard.rows)),
            column("MiB (estimate)", lambda shard: f"{shard.size / 2**20:.1f}", 2),
            *chunks,
        )
    )
