"""The small events that structure a binlog: GTIDs, rotation, format description.

The parameter of all functions is an event's body, without its 19-byte header and its checksum.
Sources: MySQL internals manual; MariaDB KB, "GTID_EVENT" and the comments on Gtid_log_event in its
sources.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum

from replicator.binlog.errors import BinlogError
from replicator.binlog.events.xa_events import Xid
from replicator.binlog.positions.gtid import MariaDBGtid, MySQLGtid
from replicator.binlog.positions.tagged_gtid import read_tagged

_MARIADB = struct.Struct("<QIB")
_STANDALONE = 1
_GROUP_COMMIT_ID = 2
_PREPARED_XA = 64
_COMPLETED_XA = 128
_START_ALTER = 2
_ROLLBACK_ALTER = 8
_GROUP_COMMIT_SIZE = 8
_XID = struct.Struct("<IBB")
"""Format, and the lengths of both parts of the name, which follow."""
_MYSQL = struct.Struct("<x16sQ")
_ROTATE = struct.Struct("<Q")


class Checksum(Enum):
    """The checksum algorithms of a binlog file, as numbered in the format description."""

    NONE = 0
    CRC32 = 1


@dataclass(frozen=True, slots=True)
class MariaDBGroup:
    """The group that a MariaDB GTID event begins."""

    gtid: MariaDBGtid
    standalone: bool
    """One statement follows, with no commit after it."""
    prepares: bool
    """The first phase of an XA transaction, separate from its outcome."""
    completes: bool
    """The outcome of an XA transaction."""
    xid: Xid | None
    """The XA transaction that the group prepares or completes."""
    without_effect: bool
    """The first half of an ALTER written in two, or its roll-back."""


def read_mariadb_gtid(body: bytes, server_id: int) -> MariaDBGroup:
    """Parse MariaDB's GTID event.

    ``server_id``: from the event's header. Raises BinlogError if it is too short.
    """
    try:
        sequence, domain, flags = _MARIADB.unpack_from(body)
        at = _MARIADB.size + (_GROUP_COMMIT_SIZE if flags & _GROUP_COMMIT_ID else 0)
        xid = None
        if flags & (_PREPARED_XA | _COMPLETED_XA):
            xid, at = _read_xid(body, at)
        extra = body[at] if at < len(body) else 0
    except struct.error as error:
        raise BinlogError("A GTID event is too short.") from error
    return MariaDBGroup(
        gtid=MariaDBGtid(domain, server_id, sequence),
        standalone=bool(flags & _STANDALONE),
        prepares=bool(flags & _PREPARED_XA),
        completes=bool(flags & _COMPLETED_XA),
        xid=xid,
        without_effect=bool(extra & (_START_ALTER | _ROLLBACK_ALTER)),
    )


def _read_xid(body: bytes, at: int) -> tuple[Xid, int]:
    kind, first, second = _XID.unpack_from(body, at)
    start, middle = at + _XID.size, at + _XID.size + first
    end = middle + second
    if end > len(body):
        raise BinlogError("A GTID event ends inside the name of its XA transaction.")
    return Xid(kind, body[start:middle], body[middle:end]), end


def read_mysql_gtid(body: bytes) -> MySQLGtid:
    """Parse MySQL's GTID event (without tag). Raises BinlogError if it is too short."""
    try:
        source, number = _MYSQL.unpack_from(body)
    except struct.error as error:
        raise BinlogError("A GTID event is too short.") from error
    return MySQLGtid(source, number)


def read_tagged_gtid(body: bytes) -> MySQLGtid:
    """Parse MySQL's GTID event with tag. Raises the errors of `read_tagged`."""
    source, number, tag = read_tagged(body)
    return MySQLGtid(source, number, tag)


def read_rotate(body: bytes) -> tuple[str, int]:
    """Return the next file's name and the offset at which to continue."""
    try:
        return body[_ROTATE.size :].decode(), _ROTATE.unpack_from(body)[0]
    except (struct.error, UnicodeDecodeError) as error:
        raise BinlogError("A ROTATE event can't be read.") from error


def read_checksum(event: bytes) -> Checksum:
    """Return the checksum algorithm of a file from its complete format description event.

    It is the last byte before the four bytes of the event's checksum, which are always present
    (MySQL 5.6.1+, MariaDB 5.3+). Raises BinlogError for an unknown algorithm.
    """
    try:
        return Checksum(event[-5])
    except (IndexError, ValueError) as error:
        raise BinlogError(
            "The binlog file's format is not known: it was written by a server older than MySQL "
            "5.6 or MariaDB 10.2, or by one that this program does not know yet."
        ) from error
