"""What `run --until` takes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from actors.control.arguments import Until
from actors.control.end_positions import parse_until
from replicator.binlog.positions.position import BinlogPosition

PLACE = BinlogPosition("bin.000002", 4)
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "sources", "until"),
    [
        (["now"], "ab", Until(now=True)),
        (["bin.000002:4"], "a", Until(places={"a": PLACE})),
        (["b=bin.000002:4"], "ab", Until(places={"b": PLACE})),
        (["a=bin.000002:4", "b=bin.000002:4"], "ab", Until(places={"a": PLACE, "b": PLACE})),
        (["b=0-1-42,1-2-7"], "ab", Until(places={"b": "0-1-42,1-2-7"})),
        ([f"{UUID}:1-5"], "a", Until(places={"a": f"{UUID}:1-5"})),
        (["a=2026-11-20"], "a", Until(places={"a": "2026-11-20"})),
        (["2026-11-20"], "a", Until(moment=TEN.replace(hour=0))),
        (["2026-11-20 10:00:00"], "ab", Until(moment=TEN)),
        (["2026-11-20T12:00:00+02:00"], "ab", Until(moment=TEN)),
    ],
    ids=lambda value: str(value) if isinstance(value, list) else "",
)
def test_an_end_is_understood(given: list[str], sources: str, until: Until) -> None:
    assert parse_until(given, list(sources)) == until


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["bin.000002:4"], "one of the sources a, b, such as a=bin.000002:4"),
        (["c=bin.000002:4"], "one of the sources a, b"),
        (["0-1-42"], "one of the sources a, b, such as a=0-1-42"),
        (["a=0-1"], "neither `now`, nor a time"),
        (["soon"], "neither `now`, nor a time"),
        (["a=bin.000002:4", "now"], "name `now`, a time, or a position"),
    ],
    ids=str,
)
def test_anything_else_is_an_error_that_says_what_to_write(given: list[str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        parse_until(given, ["a", "b"])
