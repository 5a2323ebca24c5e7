"""What was damaged on its way is read again once; at the same place a second time it is a fault."""

from __future__ import annotations

from actors.errors.faults import FatalError
from actors.reading.source_faults import StreamErrors
from replicator.binlog.errors import BinlogError, ChecksumError, DamagedStreamError, StreamLostError
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.watermark import Place

HERE = SourcePosition(BinlogPosition("bin.000003", 1000))
THERE = SourcePosition(BinlogPosition("bin.000003", 2000))


def test_a_damage_is_a_lost_stream_until_nothing_more_is_read() -> None:
    errors = StreamErrors("a", by_gtid=False)
    for start in ((HERE, None), (HERE, Place(1000, 7)), (THERE, None)):
        assert isinstance(errors.of(DamagedStreamError("here"), start, {}), StreamLostError)
    again = errors.of(ChecksumError("there"), (THERE, None), {})
    assert isinstance(again, FatalError)
    assert again.event == "source.unreadable"
    assert "there" in again.message


def test_any_other_error_is_a_fault_at_once() -> None:
    found = StreamErrors("a", by_gtid=False).of(BinlogError("no"), (HERE, None), {})
    assert isinstance(found, FatalError)
