"""Reading without the compiled loop, each event by its handler: the oracle of what it does."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from replicator.binlog.connection.framing import PacketBuffer
from replicator.binlog.errors import BinlogError
from replicator.binlog.events.transaction_payload import Payload
from replicator.binlog.parser.assembler import SegmentAssembler
from replicator.binlog.parser.fast_path import FastPath
from replicator.binlog.parser.slow_path import SlowPath
from replicator.binlog.segments.segment import Segment
from tests.support.streams.packets import feed
from tests.support.streams.row_columns import places

Make = Callable[[type[SegmentAssembler]], SegmentAssembler]


_UNREADABLE = (BinlogError, ValueError, IndexError, struct.error)


class NoOrdinaryCourse(FastPath):
    """Takes no event."""

    def follow(self, packets: PacketBuffer) -> bool:
        return False

    def follow_inside(self, payload: Payload) -> bool:
        return False


class CarefulAssembler(SegmentAssembler):
    """Has a handler take each event."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._course = NoOrdinaryCourse(self._state)


def read_alike(make: Make, pieces: list[bytes]) -> str:
    """Read a stream that is received in these pieces with both; gives the error that ended it.

    Both must come to the same, piece by piece.
    """
    both = make(SegmentAssembler), make(CarefulAssembler)
    for piece in pieces:
        found, expected = (_reading(one, piece) for one in both)
        assert found == expected
        if found[-1]:
            return str(found[-1])
    found, expected = (described(one.take()) for one in both)
    assert found == expected
    return ""


def _reading(assembler: SegmentAssembler, piece: bytes) -> list[object]:
    """What comes of a piece: the segments, how it stands, and the error, if there was one."""
    found: list[object] = []
    left = memoryview(piece)
    try:
        while left:
            left = left[feed(assembler.packets, left) :]
            while assembler.run():
                found.append(described(assembler.take()))
    except _UNREADABLE as error:
        rescued = assembler.rescue()
        return [*found, rescued and described(rescued), type(error).__name__, str(error)]
    return [*found, assembler.moved, assembler.in_transaction, assembler.packets.failure, ""]


def described(segment: Segment) -> list[object]:
    """Everything that a segment says, to be compared."""
    rows = {
        target: (
            places(events),
            [events.kinds[kind] for kind in events.kind.tolist()],
            events.split(),
        )
        for target, events in segment.rows.items()
    }
    end = segment.end
    return [
        rows,
        *(end, end.anchor, segment.complete, segment.timestamp, segment.bytes),
        *(segment.statement, segment.caught_up),
    ]


def handled_kinds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The types of the events that handlers take from now on."""
    handled: list[int] = []
    handle, handle_inside = SlowPath.handle, SlowPath.handle_inside

    def noted(self: SlowPath, event: bytes) -> bool:
        handled.append(event[4])
        return handle(self, event)

    def noted_inside(self: SlowPath, event: bytes) -> bool:
        handled.append(event[4])
        return handle_inside(self, event)

    monkeypatch.setattr(SlowPath, "handle", noted)
    monkeypatch.setattr(SlowPath, "handle_inside", noted_inside)
    return handled
