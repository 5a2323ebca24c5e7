"""The shards of a task on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from replicator.printable_text import shown_line
from replicator.status import ShardStatus
from replicator.terminal.figures import counted, number, some_of
from replicator.terminal.fitting_table import FittingTable, TextColumn


def render_shards(shards: Sequence[ShardStatus]) -> RenderableType:
    """Return a line for each shard, then what some of the shards lack, and a summary."""

    def column(heading: str, cell: Callable[[ShardStatus], str], rank: int = 0) -> TextColumn:
        return TextColumn(heading, [*map(cell, shards)], rank, heading in ("version", "rows read"))

    table = FittingTable(
        (
            column("source", lambda shard: shard.source),
            column("shard", lambda shard: shard.table),
            column("target", lambda shard: shard.target),
            column("version", lambda shard: number(shard.version), 2),
            column("rows read", lambda shard: number(shard.rows), 1),
            column("last change (UTC)", _last_change, 3),
            column("state", _state),
        )
    )
    targets = {shard.target for shard in shards}
    lacking = sum(bool(shard.lacks) for shard in shards)
    unreadable = sum(bool(shard.unreadable) for shard in shards)
    retired = sum(bool(shard.retired) for shard in shards)
    summary = Text(
        f"{counted(len(shards), 'shard')} of {counted(len(targets), 'target')}"
        + (f", {number(lacking)} not as their target" if lacking else "")
        + (f", {number(unreadable)} can't be read" if unreadable else "")
        + (f", {number(retired)} retired" if retired else "")
    )
    return Group(*([table] if shards else []), *_reasons(shards), summary)


def _last_change(shard: ShardStatus) -> str:
    return f"{shard.last_change:%Y-%m-%d %H:%M:%S}" if shard.last_change else "-"


def _state(shard: ShardStatus) -> str:
    words = ["can't be read"] * bool(shard.unreadable) + ["differs"] * bool(shard.lacks)
    words += ["retired"] * bool(shard.retired)
    return ", ".join(words)


def _reasons(shards: Sequence[ShardStatus]) -> Iterator[Text]:
    """Yield what shards lack and why some can't be read, each with the shards' names."""
    found: dict[str, list[str]] = {}
    for shard in shards:
        name = f"{shard.source}: {shard.table}"
        for text in shard.lacks:
            found.setdefault(f"lacking or different, {text}", []).append(name)
        if shard.unreadable:
            found.setdefault(f"can't be read, {shard.unreadable}", []).append(name)
    for text, names in found.items():
        yield Text(f"{shown_line(text)}: {some_of(names)}", "yellow")
