"""Reads a table of a source as row lines: the bytes of a result set, block by block.

The values never become Python objects, and only one block is in memory, however large the table is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import pymysql.err

from replicator.binlog.errors import OtherServerError
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.blocking_connection import BlockingSession
from replicator.mysql.connection.malformed_answers import parsing_answer
from replicator.mysql.connection.prepared_statements import ask, prepare
from replicator.mysql.connection.session_settings import (
    NO_SELECT_LIMIT,
    SNAPSHOTS,
    UTC,
    set_session,
)
from replicator.mysql.server.identity import IDENTITY_SQL, ServerIdentity
from replicator.pipeline.copy.result_bytes import ResultBytes, damaged_row
from replicator.pipeline.copy.text_rows import (
    DAMAGED,
    LONG_ROW,
    MORE,
    OUTPUT_FACTOR,
    convert_payload,
    convert_rows,
)
from replicator.pipeline.copy.typed_rows import TypedRows
from replicator.schema.structure.structure import fingerprint_of

READ_TIMEOUT = 600
"""Seconds to wait for the next bytes of a result before the connection counts as lost."""

LOCK_TIMEOUT = 5
"""Seconds to wait for a table that another session has locked. A stop of the task waits as long."""

TARGET_SETTINGS = set_session(
    {
        "time_zone": f"'{UTC}'",
        "sql_mode": "''",
        "sql_select_limit": NO_SELECT_LIMIT,
        "net_write_timeout": str(READ_TIMEOUT),
        "lock_wait_timeout": str(LOCK_TIMEOUT),
    }
)
"""Overrides a server's own limits, which could cut off a table or end a read that is paused."""

SOURCE_SETTINGS = (
    TARGET_SETTINGS + " /*!80030 ,SESSION show_gipk_in_create_table_and_information_schema=ON */"
)
"""For sources: SHOW CREATE TABLE must include the keys that the server generated itself. (MariaDB
ignores version comments of MySQL 5.7 and later; TiDB, which is never a source, executes them.)"""


class SnapshotPlace(NamedTuple):
    """The position in the binlog at which a snapshot was taken.

    Attributes:
        exact: whether no XA transaction can have been committed at that moment. MariaDB logs an XA
            COMMIT before executing it (its ``trans_xa_commit``), so the snapshot may lack a
            transaction that is before the position.
    """

    file: str
    offset: int
    exact: bool


class SourceStream(BlockingSession):
    """One connection to a source, for reading whole ranges of tables. For one thread.

    Its charset is ``binary``, so text arrives in the bytes in which it is stored. Times are in UTC,
    and a transaction sees one state of the data.
    """

    def __init__(
        self,
        address: DatabaseAddress,
        server: ServerIdentity | None = None,
        settings: str = SOURCE_SETTINGS,
    ) -> None:
        """Connect; if ``server`` is given, only to that server.

        Raises the driver's error if the server can't be reached or refuses the connection, and
        replicator.binlog.errors.OtherServerError if another server answers.
        """
        self._address = address
        self._server = server
        super().__init__(address, settings=settings, timeout=READ_TIMEOUT)

    def _prepare(self) -> None:
        self.run(SNAPSHOTS.encode())
        if self._server is None:
            return
        rows = self.rows(IDENTITY_SQL.encode())
        with parsing_answer("its identity"):
            texts = [(_text(name), _text(value)) for name, value in rows]
        found = ServerIdentity.told(texts)
        if not self._server.is_same(found):
            raise OtherServerError(
                f"{self._address} is another server now, with {found}; the rows read before are"
                f" from the one with {self._server}, which may be ahead of it, or behind"
            )

    def fingerprint(self, table: bytes) -> str:
        """Return the digest of a table's structure; ``table`` is its quoted name.

        Raises the driver's error.
        """
        rows = self.rows(b"SHOW CREATE TABLE " + table)
        with parsing_answer("SHOW CREATE TABLE"):
            ((_, text, *_),) = rows
            return fingerprint_of(_text(text))

    def begin_snapshot(self) -> SnapshotPlace | None:
        """Start a transaction that sees one state of the data; return its position if known.

        MariaDB reports the position (KB, "Enhancements for START TRANSACTION WITH CONSISTENT
        SNAPSHOT"): the snapshot has every transaction before it, and none after it. On other
        servers, the end of the binlog can't be used: a transaction is in the binlog before others
        see it. Raises the driver's error.
        """
        tells = bool(self.rows(b"SHOW STATUS LIKE 'binlog_snapshot_file'"))
        commits = self._xa_commits() if tells else 0
        # A transaction whose XA COMMIT began earlier is in this list until the COMMIT has ended.
        prepared = self.rows(b"XA RECOVER") if commits else ()
        self.run(b"START TRANSACTION WITH CONSISTENT SNAPSHOT")
        if not tells:
            return None
        exact = not prepared and self._xa_commits() == commits
        rows = self.rows(b"SHOW STATUS LIKE 'binlog_snapshot_%'")
        with parsing_answer("binlog_snapshot_file"):
            found = {_text(name).lower(): _text(value) for name, value in rows}
            file, offset = found["binlog_snapshot_file"], int(found["binlog_snapshot_position"])
        return SnapshotPlace(file, offset, exact) if file else None

    def _xa_commits(self) -> int:
        """Return the number of XA COMMIT statements that the server has begun since its start."""
        rows = self.rows(b"SHOW GLOBAL STATUS LIKE 'Com_xa_commit'")
        with parsing_answer("Com_xa_commit"):
            ((_, count),) = rows
            return int(_text(count))

    def await_writers(self, table: bytes, seconds: int) -> None:
        """Wait at most ``seconds`` until the transactions that have written to a table have ended.

        Others may begin to write to the table meanwhile: MySQL 8+ lets ``max_write_lock_count`` of
        them pass (its manual, "Metadata Locking"). ``table``: the quoted name. Raises the driver's
        error; ER_LOCK_WAIT_TIMEOUT if the transactions have not ended in time.
        """
        self.lock(table, seconds)
        self.unlock()

    def lock(self, table: bytes, seconds: int) -> None:
        """Lock a table against writers; wait at most ``seconds`` for its present writers.

        ``table``: the quoted name. Raises the driver's error; ER_LOCK_WAIT_TIMEOUT if the
        transactions that have written to the table have not ended in time.
        """
        # Before MySQL 8, only a lock of InnoDB itself waits for transactions to end. Without
        # autocommit, LOCK TABLES takes such a lock (manual, "LOCK TABLES and UNLOCK TABLES
        # Statements").
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
        """Release all locks. Raises the driver's error."""
        self.run(b"UNLOCK TABLES")
        self.run(b"COMMIT")
        self.run(b"SET SESSION autocommit=1,SESSION lock_wait_timeout=%d" % LOCK_TIMEOUT)

    def blocks(self, sql: bytes) -> Iterator[tuple[memoryview, int]]:
        """Yield the result of a query as blocks of row lines, with the number of lines in each.

        A block is only valid until the next one is requested. Raises the driver's error, also after
        some blocks. If the result is not read to its end, the connection must be closed.
        """
        # PyMySQL only reads the result's header: its way of reading rows makes one object per
        # value.
        self._connection.query(sql, unbuffered=True)
        result = ResultBytes(self._connection)
        out = np.empty(len(result.data) * OUTPUT_FACTOR, np.uint8)
        while True:
            used, written, rows, reason = convert_rows(result.data, result.filled, out)
            if rows:
                yield out.data[:written], rows
            result.drop(used)
            if reason == LONG_ROW:
                yield memoryview(_converted(result.long_payload())), 1
            elif reason == MORE:
                result.more()
                if len(out) < len(result.data) * OUTPUT_FACTOR:
                    out = np.empty(len(result.data) * OUTPUT_FACTOR, np.uint8)
            elif reason == DAMAGED:
                raise damaged_row()
            else:
                self._leave_result()
                result.end()
                return

    def typed(self, sql: bytes) -> TypedRows:
        """Return the result of a query as parameters of a statement with many rows.

        If the result is not read to its end, or after an error, the connection must be closed.
        Raises the driver's error, and UnknownTypeError for a result with a value of unknown type.
        """
        number = prepare(self._connection, sql)
        return TypedRows(self._connection, number, ask(self._connection, number))

    def close(self) -> None:
        """Close the connection, whatever its state is."""
        # PyMySQL must not try to read the rest of a result that was not read to its end.
        self._leave_result()
        if self._connection.open:
            self._connection._force_close()  # type: ignore[attr-defined]

    def _leave_result(self) -> None:
        result = cast(Any, self._connection)._result
        if result is not None:
            result.unbuffered_active = False
            result.connection = None


def _converted(payload: bytes | bytearray) -> bytes:
    try:
        return convert_payload(np.frombuffer(payload, np.uint8))
    except ValueError as error:
        raise damaged_row() from error


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
