"""What a source says itself of the XA transactions that it has prepared (XA RECOVER)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pymysql

from replicator.binlog.events.xa_events import Xid
from replicator.binlog.positions.position import BinlogPosition
from replicator.mysql.errors import ErrorCode, error_code


@dataclass(frozen=True, slots=True)
class PreparedAtSource:
    """What a source lists as prepared, and where its binlog ended afterwards.

    ``refused``: why it does not tell.
    """

    names: frozenset[Xid]
    end: BinlogPosition | None
    refused: str = ""


def prepared_at_source(connection: Any) -> PreparedAtSource:
    """Ask a PyMySQL connection that serves nothing else.

    MySQL 8+ tells only those who have the privilege XA_RECOVER_ADMIN. Raises pymysql.MySQLError,
    OSError.
    """
    # Names are any bytes.
    connection.use_unicode = False
    with connection.cursor() as cursor:
        try:
            cursor.execute("XA RECOVER")
        except pymysql.MySQLError as error:
            if error_code(error) != ErrorCode.ER_XAER_RMERR:
                raise
            return PreparedAtSource(frozenset(), None, str(error))
        names = frozenset(_name(*row) for row in cursor)
        cursor.execute("SHOW BINARY LOGS")
        file, size = cursor.fetchall()[-1][:2]
    return PreparedAtSource(names, BinlogPosition(file.decode(), int(size)))


def _name(kind: int, first: int, second: int, data: bytes) -> Xid:
    """The name in a row: its format, the sizes of both parts, and these."""
    return Xid(int(kind), data[:first], data[first : first + second])
