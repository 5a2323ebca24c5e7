"""Where a server's binlog ends, when nothing more comes there by itself."""

from __future__ import annotations

import time

import pymysql
from pymysql.cursors import Cursor

from replicator.binlog.positions.position import BinlogPosition
from replicator.sandbox.server import DatabaseServer


def binlog_end(server: DatabaseServer) -> BinlogPosition | None:
    """The present end of a server's binlog; None where it writes none.

    MariaDB notes in the background, up to seconds after a file has begun, from which file on a
    recovery would read (its page "Binlog Checkpoint Event"). A place that was told before would
    not be the one where a stream stops that has read everything.
    """
    deadline = time.monotonic() + 20
    # Statements of other tests, which a binlog shows, may hold any bytes: all are text in this one.
    with server.connect(charset="cp850") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        ((version,),) = cursor.fetchall()
        while (end := _told(cursor)) is not None:
            if "MariaDB" not in version or _begun(cursor, end.file):
                return _told(cursor)
            assert time.monotonic() < deadline, f"{end.file} has no checkpoint of its own"
            time.sleep(0.02)
    return None


def end_of(server: DatabaseServer) -> BinlogPosition:
    """The present end of the binlog of a server that writes one."""
    end = binlog_end(server)
    assert end is not None
    return end


def _told(cursor: Cursor) -> BinlogPosition | None:
    try:
        cursor.execute("SHOW MASTER STATUS")
    except pymysql.err.ProgrammingError:
        # Its name since MySQL 8.4.
        cursor.execute("SHOW BINARY LOG STATUS")
    row = cursor.fetchone()
    return BinlogPosition(row[0], row[1]) if row else None


def _begun(cursor: Cursor, file: str) -> bool:
    """Whether a file has the checkpoint that names itself: mostly among its first events."""
    for extent in ("LIMIT 50", ""):
        cursor.execute(f"SHOW BINLOG EVENTS IN '{file}' {extent}")
        if any(row[2] == "Binlog_checkpoint" and row[5] == file for row in cursor.fetchall()):
            return True
    return False
