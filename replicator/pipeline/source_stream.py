"""Reading a table of a source as row lines: the bytes of a result set, block by block.

The values never become Python objects, and only a block is in memory, however large the table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import pymysql.err
from pymysql.protocol import MysqlPacket

from replicator.binlog.errors import OtherServerError
from replicator.mysql.address import DatabaseAddress
from replicator.mysql.errors import ErrorCode
from replicator.mysql.identity import IDENTITY_SQL, ServerIdentity
from replicator.mysql.session import BlockingSession
from replicator.mysql.settings import NO_SELECT_LIMIT, SNAPSHOTS, UTC, set_session
from replicator.pipeline.text_rows import (
    HEADER,
    LONG_ROW,
    LONGEST_PAYLOAD,
    MORE,
    OUTPUT_FACTOR,
    Bytes,
    convert_payload,
    convert_rows,
)
from replicator.schema.structure import fingerprint_of

BLOCK_BYTES = 1 << 20
"""Bytes of a result that are converted at a time; more where a single row is larger."""

READ_TIMEOUT = 600
"""Seconds to wait for the next bytes of a result before the connection counts as lost."""

LOCK_TIMEOUT = 5
"""Seconds to wait for a table that somebody has locked: then a stop is heeded."""

_SETTINGS = (
    set_session(
        {
            "time_zone": f"'{UTC}'",
            "sql_mode": "''",
            "sql_select_limit": NO_SELECT_LIMIT,
            "net_write_timeout": str(READ_TIMEOUT),
            "lock_wait_timeout": str(LOCK_TIMEOUT),
        }
    )
    + " /*!80030 ,SESSION show_gipk_in_create_table_and_information_schema=ON */"
)
"""Limits that a server may have for others would cut a table off, or end a read that a slow target
holds up; and keys that the server gave tables itself are to be seen. (MariaDB takes no comments for
versions of MySQL from 5.7 on.)"""


class SnapshotPlace(NamedTuple):
    """Where in the binlog a snapshot was taken.

    Not ``exact`` where XA transactions may have been committed just then: MariaDB logs an XA COMMIT
    first and carries it out then (its ``trans_xa_commit``), so one that stands before the place may
    not be visible yet.
    """

    file: str
    offset: int
    exact: bool


class SourceStream(BlockingSession):
    """One connection to a source, for reading whole ranges of tables. For one thread.

    It speaks the charset ``binary``, so that text arrives in the bytes it is stored in, in UTC,
    and in transactions that see one state of the data.
    """

    def __init__(self, address: DatabaseAddress, server: ServerIdentity | None = None) -> None:
        """Connect, where ``server`` is given, to that one only.

        Raises the driver's error when the server can't be reached or refuses, and
        replicator.binlog.errors.OtherServerError where another one answers.
        """
        self._address = address
        self._server = server
        super().__init__(address, settings=_SETTINGS, timeout=READ_TIMEOUT)

    def _prepare(self) -> None:
        self.run(SNAPSHOTS.encode())
        if self._server is None:
            return
        rows = self.rows(IDENTITY_SQL.encode())
        found = ServerIdentity.told((_text(name), _text(value)) for name, value in rows)
        if not self._server.is_same(found):
            raise OtherServerError(
                f"{self._address} is another server now, with {found}; what was read before is of"
                f" the one with {self._server}, which may be ahead of it, or behind"
            )

    def fingerprint(self, table: bytes) -> str:
        """The digest of a table's structure; ``table`` is its quoted name.

        Raises the driver's error.
        """
        (row,) = self.rows(b"SHOW CREATE TABLE " + table)
        return fingerprint_of(_text(row[1]))

    def begin_snapshot(self) -> SnapshotPlace | None:
        """Start a transaction that sees one state of the data; its place in the binlog, if told.

        MariaDB tells it (KB, "Enhancements for START TRANSACTION WITH CONSISTENT SNAPSHOT"): every
        transaction before that place is visible, none behind. Elsewhere the end of the binlog does
        not do: a transaction is there before others see it. Raises the driver's error.
        """
        tells = bool(self.rows(b"SHOW STATUS LIKE 'binlog_snapshot_file'"))
        commits = self._xa_commits() if tells else 0
        # One whose commit began before that is among these until it has ended.
        prepared = self.rows(b"XA RECOVER") if commits else ()
        self.run(b"START TRANSACTION WITH CONSISTENT SNAPSHOT")
        if not tells:
            return None
        exact = not prepared and self._xa_commits() == commits
        rows = self.rows(b"SHOW STATUS LIKE 'binlog_snapshot_%'")
        found = {_text(name).lower(): _text(value) for name, value in rows}
        file = found["binlog_snapshot_file"]
        return SnapshotPlace(file, int(found["binlog_snapshot_position"]), exact) if file else None

    def _xa_commits(self) -> int:
        """How many statements XA COMMIT the server has begun since it was started."""
        ((_, count),) = self.rows(b"SHOW GLOBAL STATUS LIKE 'Com_xa_commit'")
        return int(_text(count))

    def await_writers(self, table: bytes, seconds: int) -> None:
        """Wait until the transactions that have written to a table have ended, at most so long.

        Others may begin to write to it meanwhile: MySQL 8+ lets ``max_write_lock_count`` of them
        pass (its manual, "Metadata Locking"). ``table`` is the quoted name. Raises the driver's
        error; ER_LOCK_WAIT_TIMEOUT when they have not ended in time.
        """
        self.lock(table, seconds)
        self.unlock()

    def lock(self, table: bytes, seconds: int) -> None:
        """Keep others from writing to a table, once those who did have ended; wait at most so long.

        ``table`` is the quoted name. Raises the driver's error; ER_LOCK_WAIT_TIMEOUT when they
        have not ended.
        """
        # Until MySQL 5.7 only a lock of InnoDB's own waits for transactions to end, and LOCK TABLES
        # asks for one without autocommit (its manual, "LOCK TABLES and UNLOCK TABLES Statements").
        self.run(
            b"SET SESSION autocommit=0,SESSION innodb_table_locks=1"
            b",SESSION lock_wait_timeout=%d,SESSION innodb_lock_wait_timeout=%d"
            % (seconds, seconds)
        )
        try:
            self.run(b"LOCK TABLES " + table + b" READ")
        except pymysql.err.MySQLError:
            with contextlib.suppress(pymysql.err.MySQLError):
                self.unlock()
            raise

    def unlock(self) -> None:
        """Give all locks back. Raises the driver's error."""
        self.run(b"UNLOCK TABLES")
        self.run(b"COMMIT")
        self.run(b"SET SESSION autocommit=1,SESSION lock_wait_timeout=%d" % LOCK_TIMEOUT)

    def blocks(self, sql: bytes) -> Iterator[tuple[memoryview, int]]:
        """The result of a query as blocks of row lines, with the number of lines in each.

        A block is only valid until the next one is asked for. Raises the driver's error, also
        after some blocks. If it is not read to its end the connection must be closed.
        """
        # PyMySQL reads the head of the result; its way of reading rows is one object per value.
        self._connection.query(sql, unbuffered=True)
        connection = cast(Any, self._connection)
        buffer = np.empty(BLOCK_BYTES, np.uint8)
        out = np.empty(BLOCK_BYTES * OUTPUT_FACTOR, np.uint8)
        filled = self._head(buffer.data)
        while True:
            used, written, rows, reason = convert_rows(buffer, filled, out)
            if rows:
                yield out.data[:written], rows
            buffer[: filled - used] = buffer[used:filled]
            filled -= used
            if reason == LONG_ROW:
                line, filled = self._long_row(buffer, filled)
                yield memoryview(line), 1
            elif reason != MORE:
                connection._result.unbuffered_active = False
                connection._result.connection = None
                self._end(buffer, filled)
                return
            else:
                wanted = _packet_bytes(buffer, filled)
                if wanted > len(buffer):
                    buffer = np.concatenate([buffer, np.empty(wanted - len(buffer), np.uint8)])
                    out = np.empty(len(buffer) * OUTPUT_FACTOR, np.uint8)
                filled += self._receive(buffer.data[filled:])

    def close(self) -> None:
        """Drop the connection, whatever state it is in."""
        result = cast(Any, self._connection)._result
        if result is not None:
            # Nobody is to read on in an answer that was left in the middle.
            result.unbuffered_active = False
        if self._connection.open:
            self._connection._force_close()  # type: ignore[attr-defined]

    def _head(self, room: memoryview) -> int:
        """The first bytes of a result: what PyMySQL's reader has in its buffer already, if any."""
        try:
            received = cast(Any, self._connection)._rfile.read1(len(room))
        except OSError as error:
            raise _lost(str(error)) from error
        if not received:
            raise _lost("the server closed the connection")
        room[: len(received)] = received
        return len(received)

    def _receive(self, room: memoryview) -> int:
        try:
            # The reader's own readinto1() waits for more even if it could give what it has.
            received = self._connection.receive(room)
        except OSError as error:
            raise _lost(str(error)) from error
        if not received:
            raise _lost("the server closed the connection")
        return received

    def _long_row(self, buffer: Bytes, filled: int) -> tuple[bytes, int]:
        """A row that spreads over several packets; what follows it moves to the front."""
        pending = bytearray(buffer[:filled].tobytes())
        payload = bytearray()
        while True:
            self._extend(pending, HEADER)
            size = int.from_bytes(pending[:3], "little")
            self._extend(pending, HEADER + size)
            payload += pending[HEADER : HEADER + size]
            del pending[: HEADER + size]
            if size < LONGEST_PAYLOAD:
                break
        buffer[: len(pending)] = np.frombuffer(bytes(pending), np.uint8)
        return convert_payload(np.frombuffer(bytes(payload), np.uint8)), len(pending)

    def _extend(self, pending: bytearray, size: int) -> None:
        while len(pending) < size:
            # Never beyond the packet: what follows must fit into the caller's buffer.
            room = bytearray(size - len(pending))
            received = self._receive(memoryview(room))
            pending += room[:received]

    def _end(self, buffer: Bytes, filled: int) -> None:
        size = int.from_bytes(buffer[:3].tobytes(), "little")
        packet = MysqlPacket(buffer[HEADER : HEADER + size].tobytes(), "utf8mb4")
        if packet.is_error_packet():
            packet.raise_for_error()
        assert filled == HEADER + size, "bytes behind the end of a result"


def _packet_bytes(buffer: Bytes, filled: int) -> int:
    """The size of the packet that begins the buffer, as far as it is known."""
    if filled < HEADER:
        return HEADER
    return HEADER + int.from_bytes(buffer[:3].tobytes(), "little")


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _lost(text: str) -> pymysql.err.OperationalError:
    return pymysql.err.OperationalError(ErrorCode.CR_SERVER_LOST.value, f"lost connection: {text}")
