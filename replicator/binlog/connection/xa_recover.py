"""The prepared transactions that a source lists by XA RECOVER."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pymysql
from pymysql.constants import ER

from replicator.binlog.events.xa_events import Xid
from replicator.binlog.positions.position import BinlogPosition
from replicator.mysql.errors import error_code


@dataclass(frozen=True, slots=True)
class PreparedAtSource:
    """The transactions that a source lists as prepared, and the end of its binlog read after that.

    ``refused``: why the source did not list them.
    """

    names: frozenset[Xid]
    end: BinlogPosition | None
    refused: str = ""


def prepared_at_source(connection: Any) -> PreparedAtSource:
    """Read the prepared transactions over a PyMySQL connection that is used for nothing else.

    MySQL 8+ lists them only with the privilege XA_RECOVER_ADMIN. Raises pymysql.MySQLError,
    OSError.
    """
    # Names can be any bytes.
    connection.use_unicode = False
    with connection.cursor() as cursor:
        try:
            cursor.execute("XA RECOVER")
        except pymysql.MySQLError as error:
            if error_code(error) != ER.XAER_RMERR:
                raise
            return PreparedAtSource(frozenset(), None, str(error))
        names = frozenset(_name(*row) for row in cursor)
        cursor.execute("SHOW BINARY LOGS")
        file, size = cursor.fetchall()[-1][:2]
    return PreparedAtSource(names, BinlogPosition(file.decode(), int(size)))


def _name(kind: int, first: int, second: int, data: bytes) -> Xid:
    """Return the name in a row: its format, the sizes of both parts, and both parts."""
    return Xid(int(kind), data[:first], data[first : first + second])
