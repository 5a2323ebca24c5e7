"""Reasons and remedies for events that may carry data, but can't be read, and stop the stream."""

from __future__ import annotations

from typing import Final

from replicator.binlog.events.event_header import EventType

_LOAD = (
    "LOAD DATA was logged as a statement. Set binlog_format=ROW for all sessions of the source, "
    "then start after this position and compare the table"
)
_OLD = "it is written by servers older than MySQL 5.6, which are not supported"

REFUSALS: Final[dict[int, str]] = {
    EventType.LOAD: _LOAD,
    EventType.CREATE_FILE: _LOAD,
    EventType.APPEND_BLOCK: _LOAD,
    EventType.EXEC_LOAD: _LOAD,
    EventType.DELETE_FILE: _LOAD,
    EventType.NEW_LOAD: _LOAD,
    EventType.BEGIN_LOAD_QUERY: _LOAD,
    EventType.EXECUTE_LOAD_QUERY: _LOAD,
    EventType.WRITE_ROWS_V0: _OLD,
    EventType.UPDATE_ROWS_V0: _OLD,
    EventType.DELETE_ROWS_V0: _OLD,
    EventType.START_V3: _OLD,
    EventType.INCIDENT: (
        "data is missing at the source: it could not write a change to its binlog. Copy its tables "
        "anew, or compare and repair them and start after this position"
    ),
}
"""Reason and remedy by event type."""

XA: Final = (
    "an event of an XA transaction that is not written as servers write it. Start after it, and "
    "compare the tables of the transaction"
)
ROLLBACK: Final = (
    "a transaction that was rolled back in part and has rows in the binlog all the same, because "
    "it changed tables without transactions. Use InnoDB tables; start after it and compare"
)
UNFINISHED: Final = (
    "a transaction without an end, of which rows were handed on already: the source crashed while "
    "writing it. Start after it, compare its tables and repair them"
)
PARTIAL_JSON: Final = (
    "an update that holds only parts of JSON values. SET GLOBAL binlog_row_value_options='' on "
    "the source, reconnect its clients, start after this position and compare the table"
)
NOT_A_BOUNDARY: Final = (
    "it belongs to a transaction whose beginning was not read: the position that was asked for "
    "is inside a transaction. Start at a transaction boundary"
)
UNKNOWN: Final = "this program does not know it, and skipping it could lose data"
