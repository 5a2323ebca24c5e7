"""The present end of a server's binlog, as the server reports it."""

from __future__ import annotations

from dataclasses import dataclass

from replicator.mysql.connection.malformed_answers import parsing_answer
from replicator.mysql.server.statement_aliases import (
    SHOW_BINLOG_END,
    Asking,
    Fetching,
    Rows,
    fetch_understood,
    rows_understood,
)


@dataclass(frozen=True, slots=True)
class BinlogEnd:
    """The position of the next transaction, and the logged databases.

    Attributes:
        only: the databases of binlog-do-db.
        ignored: the databases of binlog-ignore-db.
        gtid: the GTID set up to this position; empty if the server does not report it with the
            position (MariaDB).
    """

    file: str
    offset: int
    only: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    gtid: str = ""


async def binlog_end(connection: Fetching) -> BinlogEnd | None:
    """Return the end of the binlog; None if the server writes none.

    Raises DatabaseUnavailableError or the server's own error.
    """
    return _end(await fetch_understood(connection, SHOW_BINLOG_END))


def blocking_binlog_end(session: Asking) -> BinlogEnd | None:
    """Return the end of the binlog over a blocking session. Raises the driver's error."""
    return _end(rows_understood(session, SHOW_BINLOG_END))


def _end(rows: Rows) -> BinlogEnd | None:
    """Return the end of the binlog from the row of SHOW MASTER STATUS or its successors."""
    if not rows:
        return None
    with parsing_answer("the end of its binlog"):
        file, offset, only, ignored, *gtid = rows[0]
        return BinlogEnd(
            _text(file),
            int(offset),
            _names(only),
            _names(ignored),
            _text(gtid[0]).replace("\n", "") if gtid else "",
        )


def _names(value: object) -> frozenset[str]:
    return frozenset(filter(None, _text(value).split(",")))


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value or "")
