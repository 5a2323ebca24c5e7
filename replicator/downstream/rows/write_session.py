"""The blocking connection over which executors write rows.

Sessions use the charset ``binary``, so that the bytes of a value are stored unchanged, UTC, no
foreign key checks, and strict mode: a value that does not fit is an error. Each thread keeps its
connections, because an executor handles many batches.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import pymysql.err
from pymysql.constants import COMMAND, CR, ER
from pymysql.err import MySQLError
from pymysql.protocol import OKPacketWrapper

from replicator.mysql.connection import prepared_statements as prepared
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.blocking_connection import Answer, BlockingSession
from replicator.mysql.connection.liveness import Thread
from replicator.mysql.connection.malformed_answers import READING, parsing_answer
from replicator.mysql.connection.prepared_statements import LARGEST_PACKET
from replicator.mysql.connection.session_settings import (
    NO_SELECT_LIMIT,
    UTC,
    WARNINGS_KEPT,
    keep_warnings,
    set_session,
)
from replicator.mysql.errors import error_code, is_contention, is_unavailable

Buffer = bytes | memoryview

STRICT_MODE = "STRICT_TRANS_TABLES,ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO"
LENIENT_MODE = "ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO"
LOAD_PACKET = 1 << 20
"""Bytes of a file sent in one packet, if the server accepts packets of twice this size."""

ANSWER_TIMEOUT = 600
"""Seconds to wait for the answer to one statement before the connection counts as lost."""

ABANDONED_SECONDS = 20
"""Seconds for which a session may be silent before the server ends it.

By default, the session of a vanished client would keep its rows locked for eight hours. Another
host can take the task over when the lease has expired, and these locks must be gone by then.
"""

PATIENT_SECONDS = 600
"""The number of seconds for a session that waits for a source's answer."""

LOAD_PAUSE_SECONDS = 120
"""Seconds for which a server waits for more of a load that depends on how fast the source is
read."""

LOCK_SECONDS = 10
"""Seconds for which a statement waits for rows or a table locked by another session.

The default is a minute for rows, and a day or a year for a table (the servers' manuals,
"innodb_lock_wait_timeout", "lock_wait_timeout").
"""

_DEFAULTS = {
    "unique_checks": "1",
    "innodb_lock_wait_timeout": str(LOCK_SECONDS),
    "lock_wait_timeout": str(LOCK_SECONDS),
}
_REQUIRED = {
    "time_zone": f"'{UTC}'",
    "sql_mode": f"'{STRICT_MODE}'",
    "sql_select_limit": NO_SELECT_LIMIT,
    # A shard's rows already have the effects of its foreign keys, or the task repeats them.
    "foreign_key_checks": "0",
    # A rounded number, or truncated spaces, only cause a note.
    "sql_notes": "1",
}

MARIADB_SETTINGS = "/*M!100201 ,SESSION check_constraint_checks=0 */"
"""A shard may have rows that its CHECKs refuse, since a session can disable CHECKs; so this does.

MariaDB KB, "CONSTRAINT". MySQL and TiDB have no such setting.
"""


_SAVEPOINT = b"before_statement"
_STARTS_AGAIN = frozenset({b"BEGIN", b"ROLLBACK"})
_NO_SAVEPOINTS = frozenset({ER.PARSE_ERROR, ER.NOT_SUPPORTED_YET})


class Session(BlockingSession):
    """One connection, set up for writing rows. Not for use by several threads at once.

    After a statement's error, the server may have undone the whole transaction without reporting
    it: Galera does so with ``wsrep_max_ws_rows``, InnoDB with ``innodb_rollback_on_timeout``. Later
    statements would be committed without the earlier ones. So after an error, the session refuses
    every statement until BEGIN, ROLLBACK, or `back_to_savepoint`, which proves that the transaction
    exists.
    """

    def __init__(self, address: DatabaseAddress, *, patient: bool = True) -> None:
        """Connect.

        Raises the driver's error if the server can't be reached or refuses the connection.

        ``patient``: whether the server waits for data that a source has still to send; otherwise
        the data is in memory.
        """
        self.max_packet = 1 << 20
        self.takes_typed_rows = False
        """Whether one execution of a prepared statement may have many rows."""
        self.used_at = time.monotonic()
        self._open = False
        self._failed: MySQLError | None = None
        self._patient = patient
        silence = PATIENT_SECONDS if patient else ABANDONED_SECONDS
        pause = LOAD_PAUSE_SECONDS if patient else ABANDONED_SECONDS
        settings = {
            **_DEFAULTS,
            "net_read_timeout": str(pause),
            **{name: setting_sql(value) for name, value in address.session},
            # These settings decide how values are read, so the task file can't change them.
            **_REQUIRED,
            "wait_timeout": str(silence),
        }
        super().__init__(
            address,
            settings=set_session(settings) + MARIADB_SETTINGS,
            timeout=ANSWER_TIMEOUT,
            local_infile=True,
        )

    def fits(self, *, patient: bool) -> bool:
        """Return whether the session suits ``patient``, and the server will not end it soon."""
        silence = PATIENT_SECONDS if patient else ABANDONED_SECONDS
        return patient is self._patient and time.monotonic() - self.used_at <= silence / 2

    def _prepare(self) -> None:
        found = self.rows(
            b"SELECT @@max_allowed_packet,@@binlog_format,@@max_error_count,@@log_bin"
        )
        with parsing_answer("max_allowed_packet"):
            ((packet, binlog_format, warnings, log_bin),) = found
            self.max_packet, kept, logs = int(packet), int(warnings), int(log_bin)
        # A binlog of statements would have one statement for each row of a bulk execution.
        logs_rows = not logs or binlog_format in (b"ROW", "ROW")
        self.takes_typed_rows = self._connection.takes_bulk and logs_rows
        if more := keep_warnings(kept, WARNINGS_KEPT):
            self.run(more.encode())
        # Without gap locks, buckets do not block each other; a server that logs statements refuses
        # to write rows at this level.
        if binlog_format not in (b"STATEMENT", "STATEMENT"):
            self.run(b"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")

    def run(self, sql: bytes) -> Answer:
        """Run a statement. Raises the driver's error, also if the statement is too long to send."""
        if len(sql) >= self.max_packet:
            # Servers just close the connection in this case, as if they were unavailable.
            raise pymysql.err.DataError(
                ER.NET_PACKET_TOO_LARGE,
                f"a statement of {len(sql)} bytes is longer than the target's max_allowed_packet"
                f" ({self.max_packet}): SET GLOBAL max_allowed_packet to more",
            )
        if sql in _STARTS_AGAIN:
            self._open, self._failed = sql == b"BEGIN", None
        with self._noting():
            answer = super().run(sql)
        if sql == b"COMMIT":
            self._open = False
        return answer

    def rows(self, sql: bytes) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a query with few rows. Raises the driver's error."""
        with self._noting():
            return super().rows(sql)

    def set_savepoint(self) -> bool:
        """Set a savepoint before a statement.

        Return False if the server has none (TiDB before 6.2).
        """
        if self._failed is not None:
            raise self._failed
        try:
            super().run(b"SAVEPOINT " + _SAVEPOINT)
        except MySQLError as error:
            # The server has not understood the statement, so it has executed nothing.
            if error_code(error) not in _NO_SAVEPOINTS:
                self._failed = error
                raise
            return False
        return True

    def back_to_savepoint(self) -> None:
        """Undo the effects of a failed statement, and prove that the transaction still exists.

        Raises the statement's error if the server has undone the transaction with its savepoint, or
        the driver's error if the server is unavailable.
        """
        failed = self._failed
        try:
            super().run(b"ROLLBACK TO SAVEPOINT " + _SAVEPOINT)
        except MySQLError as error:
            if failed is None or is_unavailable(error) or is_contention(error):
                raise
            raise failed from error
        self._failed = None

    def set_mode(self, mode: str) -> None:
        """Set the session's sql_mode, which is not part of a transaction."""
        super().run(b"SET SESSION sql_mode='" + mode.encode() + b"'")

    @contextlib.contextmanager
    def _noting(self) -> Iterator[None]:
        """Execute a statement unless an earlier one of the transaction has failed."""
        if self._failed is not None:
            raise self._failed
        try:
            yield
        except MySQLError as error:
            if self._open:
                self._failed = error
            raise

    def end(self, thread: Thread) -> None:
        """End a server thread of one of this process's sessions, so that it holds no locks.

        If this fails, the server ends the thread after its silence.
        """
        with contextlib.suppress(pymysql.err.MySQLError):
            if thread.is_there(self.thread, self.rows(thread.state_sql.encode())):
                self.run(thread.kill_sql.encode())

    def load(self, sql: bytes, blocks: Iterable[Buffer]) -> Answer:
        """Run a LOAD DATA LOCAL statement with these blocks as its file.

        Raises the driver's error, or errors of ``blocks``: the session must then be closed.
        """
        # PyMySQL would read a file, in pieces of 16 KiB; the server only asks for packets
        # (MySQL internals manual, "LOCAL INFILE Request").
        with self._noting():
            return self._load(sql, blocks)

    def _load(self, sql: bytes, blocks: Iterable[Buffer]) -> Answer:
        connection = cast(Any, self._connection)
        connection._execute_command(COMMAND.COM_QUERY, sql)
        request = connection._read_packet()
        with READING:
            asks = request.is_load_local_packet()
        if not asks:
            raise pymysql.err.OperationalError(CR.CR_COMMANDS_OUT_OF_SYNC, "no file was asked for")
        size = min(LOAD_PACKET, self.max_packet // 2)
        for block in blocks:
            view = memoryview(block)
            for start in range(0, len(view), size):
                connection.write_packet(bytes(view[start : start + size]))
        connection.write_packet(b"")
        with READING:
            answer = OKPacketWrapper(connection._read_packet())
        return Answer(answer.affected_rows, answer.warning_count, bytes(answer.message or b""))

    @property
    def packet_room(self) -> int:
        """The limit of bytes in one command."""
        return min(self.max_packet, LARGEST_PACKET) - 1

    def prepare(self, sql: bytes) -> int:
        """Prepare a statement; return its number. Raises the driver's error."""
        with self._noting():
            return prepared.prepare(self._connection, sql)

    def forget(self, number: int) -> None:
        """Close a prepared statement. Raises the driver's error."""
        prepared.forget(self._connection, number)

    def send_rows(self, head: bytes, rows: memoryview) -> None:
        """Execute a prepared statement with rows; `answer` must be called next.

        ``head``: as from `replicator.mysql.connection.prepared_statements.bulk_head`. Raises the
        driver's error.
        """
        with self._noting():
            prepared.send_rows(self._connection, head, rows)

    def answer(self) -> Answer:
        """Return the answer to `send_rows`. Raises the driver's error."""
        with self._noting():
            return prepared.answer(self._connection)

    def warnings(self) -> list[tuple[int, str]]:
        """Return code and text of the last statement's warnings."""
        rows = self.rows(b"SHOW WARNINGS")
        with parsing_answer("SHOW WARNINGS"):
            return [(int(code), _text(text)) for _, code, text in rows]


class _OwnSessions(threading.local):
    """The sessions of one thread."""

    def __init__(self) -> None:
        self.open: dict[DatabaseAddress, Session] = {}


_own = _OwnSessions()
_closed: dict[DatabaseAddress, list[Thread]] = {}
"""The server threads of sessions that this process has closed since it last opened one."""
_closing = threading.Lock()


def session_for(address: DatabaseAddress, *, patient: bool = False) -> Session:
    """Return this thread's session with a server; open one if none suits ``patient``.

    The session is not tested first, so callers must handle a lost connection at any moment. Raises
    the driver's error.
    """
    session = _own.open.get(address)
    if session is not None and not session.fits(patient=patient):
        forget_session(address)
        session = None
    if session is None:
        session = Session(address, patient=patient)
        with _closing:
            before = _closed.pop(address, [])
        for thread in before:
            # The server may not have noticed that the connection was closed.
            session.end(thread)
        _own.open[address] = session
    session.used_at = time.monotonic()
    return session


def forget_session(address: DatabaseAddress) -> None:
    """Close this thread's session with a server, in any state."""
    session = _own.open.pop(address, None)
    if session is not None:
        session.close()
        if session.thread is not None:
            with _closing:
                _closed.setdefault(address, []).append(session.thread)


def setting_sql(value: str) -> str:
    """Return a setting of the task file as SQL."""
    if value.lstrip("-").isdigit():
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
