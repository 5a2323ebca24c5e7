"""The numbers of event and column types, compared with those of another implementation."""

from __future__ import annotations

from pymysqlreplication.constants import BINLOG, FIELD_TYPE

from replicator.binlog.events.event_header import EventType
from replicator.mysql.column_types import ColumnType

EVENT_NAMES = {
    "START_EVENT_V3": "START_V3",
    "HEARTBEAT_LOG_EVENT": "HEARTBEAT",
    "IGNORABLE_LOG_EVENT": "IGNORABLE",
    "ROWS_QUERY_LOG_EVENT": "ROWS_QUERY",
    "GTID_LOG_EVENT": "GTID",
    "ANONYMOUS_GTID_LOG_EVENT": "ANONYMOUS_GTID",
    "PREVIOUS_GTIDS_LOG_EVENT": "PREVIOUS_GTIDS",
    "MARIADB_GTID_GTID_LIST_EVENT": "MARIADB_GTID_LIST",
    "PRE_GA_WRITE_ROWS_EVENT": "WRITE_ROWS_V0",
    "PRE_GA_UPDATE_ROWS_EVENT": "UPDATE_ROWS_V0",
    "PRE_GA_DELETE_ROWS_EVENT": "DELETE_ROWS_V0",
}
"""Where the other name is more than ours with ``EVENT`` in it."""

COLUMN_NAMES = {
    "DECIMAL": "DECIMAL_OLD",
    "NEWDECIMAL": "DECIMAL",
    "TIMESTAMP2": "TIMESTAMP_2",
    "DATETIME2": "DATETIME_2",
    "TIME2": "TIME_2",
    "CHAR": "TINY",
    "INTERVAL": "ENUM",
}


def numbers(module: object) -> dict[str, int]:
    return {name: value for name, value in vars(module).items() if name.isupper()}


def test_event_types_have_the_same_numbers_elsewhere() -> None:
    theirs = {
        EVENT_NAMES.get(name, name.replace("_EVENT", "")): number
        for name, number in numbers(BINLOG).items()
        if "EVENT" in name and not name.startswith(("INTVAR_", "UNKNOWN_"))
    }
    theirs["INTVAR"] = BINLOG.INTVAR_EVENT
    assert len(theirs) > 40
    assert theirs == {name: EventType[name].value for name in theirs}


def test_column_types_have_the_same_numbers_elsewhere() -> None:
    theirs = {COLUMN_NAMES.get(name, name): number for name, number in numbers(FIELD_TYPE).items()}
    assert len(theirs) > 25
    assert theirs == {name: ColumnType[name].value for name in theirs}
