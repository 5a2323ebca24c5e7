"""Which idle streams are taken for left behind."""

from __future__ import annotations

import pytest

from actors.reading.idle_streams import IdleStream, IdleStreams
from replicator.binlog.positions.position import BinlogPosition

HERE = BinlogPosition("bin.000001", 1000)
END = BinlogPosition("bin.000001", 400)
OTHER = BinlogPosition("bin.000002", 4)

Look = tuple[IdleStream | None, BinlogPosition]


def idle(reports: int, position: BinlogPosition = HERE) -> IdleStream:
    return IdleStream(position, reports, lambda: None)


@pytest.mark.parametrize(
    ("looks", "left"),
    [
        # Reported again though the binlog ends elsewhere, and goes on elsewhere.
        ([(idle(1), END), (idle(2), OTHER)], [False, True]),
        ([(idle(1), END), (idle(1), END), (idle(3), END)], [False, False, True]),
        # Told once: then it has two looks again.
        ([(idle(1), END), (idle(2), END), (idle(3), END)], [False, True, False]),
        # At its end, on its way, or not known to be idle.
        ([(idle(1), HERE), (idle(2), HERE)], [False, False]),
        ([(idle(1), END), (idle(2), HERE), (idle(3), END)], [False, False, False]),
        ([(idle(1), OTHER), (idle(2, OTHER), END)], [False, False]),
        ([(idle(1), END), (None, END), (idle(2), END)], [False, False, False]),
    ],
)
def test_a_stream_that_stays_while_its_binlog_ends_elsewhere(
    looks: list[Look], left: list[bool]
) -> None:
    streams = IdleStreams()
    assert [streams.left_behind("a", *look) is not None for look in looks] == left


def test_each_source_has_its_own() -> None:
    streams = IdleStreams()
    assert streams.left_behind("a", idle(1), END) is None
    assert streams.left_behind("b", idle(2), END) is None
    assert streams.left_behind("a", idle(2), END)
