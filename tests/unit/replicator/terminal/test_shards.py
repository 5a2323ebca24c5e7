"""The list of shards on a terminal."""

from __future__ import annotations

import io
from datetime import UTC, datetime

from rich.console import Console, RenderableType

from replicator.status import ShardStatus
from replicator.status_json import plain, shaped
from replicator.terminal.shards import render_shards

AT = datetime(2026, 11, 20, 10, tzinfo=UTC)
SHARDS = (
    ShardStatus("a", "d.t1", "d.t", 3, 1234, AT),
    ShardStatus("a", "d.t2", "d.t", 2, 0, None, ("ALTER TABLE d.t ADD c INT",)),
    ShardStatus("b", "d.t1", "d.t", 2, 0, None, ("ALTER TABLE d.t ADD c INT",), "denied"),
)


def shown(part: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(part)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_shards_are_listed_and_those_that_lack_something_named_once() -> None:
    text = shown(render_shards(SHARDS))
    assert "2026-11-20 10:00:00" in text
    assert text.count("ALTER TABLE d.t ADD c INT: a: d.t2, b: d.t1") == 1
    assert "can't be read, denied: b: d.t1" in text
    assert text.rstrip().endswith("3 shards of 1 target, 2 not as their target, 1 can't be read")
    assert "0 shards of 0 targets" in shown(render_shards(()))


def test_the_values_for_json_can_be_read_again() -> None:
    assert tuple(shaped(ShardStatus, values) for values in plain(SHARDS)) == SHARDS
