"""Looking for a landmark in events that are not whole."""

from __future__ import annotations

import pytest

from replicator.binlog.errors import BinlogError
from replicator.binlog.events import HEADER_SIZE, EventType
from replicator.binlog.landmark import LandmarkSearch
from replicator.binlog.table_routes import TableRoutes
from replicator.mysql.identity import Landmark


@pytest.mark.parametrize("kind", [EventType.FORMAT_DESCRIPTION, EventType.HEARTBEAT, EventType.XID])
@pytest.mark.parametrize("size", range(HEADER_SIZE + 3))
def test_an_event_that_ends_in_its_header_is_no_landmark(kind: EventType, size: int) -> None:
    event = bytes((0, 0, 0, 0, kind)).ljust(60, b"\0")[:size]
    try:
        found = LandmarkSearch(Landmark("binlog.000001", 400, 7, 8)).found(event)
    except BinlogError:
        return
    assert size >= HEADER_SIZE
    assert not found


def test_names_that_are_no_text_are_an_error_of_the_binlog() -> None:
    names = b"\x01\xe6\x00" + b"\x01t\x00" + b"\x01\x03\x00\x01"
    event = bytes((0, 0, 0, 0, EventType.TABLE_MAP)).ljust(HEADER_SIZE + 8, b"\0") + names
    routes = TableRoutes(lambda *_: None)
    with pytest.raises(BinlogError, match="no text"):
        routes.open(event, None)
