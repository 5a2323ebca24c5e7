"""The connection to a source: login, negotiation, the dump request, raw bytes.

Sources of the protocol: MySQL internals manual, "Replication Protocol" (COM_REGISTER_SLAVE,
COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID); MariaDB KB, "Replica Registration". PyMySQL does the login
and the queries; after the dump request the socket is read directly, which is several times faster.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol
from uuid import UUID

import pymysql
from pymysql.constants import CR, ER

from replicator.binlog.connection.server_errors import StreamRequest, translate
from replicator.binlog.connection.server_info import ServerInfo, server_info
from replicator.binlog.connection.xa_recover import PreparedAtSource, prepared_at_source
from replicator.binlog.errors import (
    AccessRefusedError,
    BinlogError,
    OtherBinlogError,
    OtherNamesError,
    OtherServerError,
    StreamLostError,
)
from replicator.binlog.positions.gtid import GtidStart, MariaDBGtids, MySQLGtids
from replicator.binlog.positions.position import FILE_HEADER, SourcePosition
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.blocking_connection import connect
from replicator.mysql.connection.malformed_answers import READING, parsing_answer
from replicator.mysql.connection.session_settings import NO_SELECT_LIMIT, set_session
from replicator.mysql.connection.tls import TlsError
from replicator.mysql.errors import OddAnswerError
from replicator.mysql.server.identity import ServerIdentity
from replicator.mysql.session_context.session_defaults import session_defaults

_COM_REGISTER_SLAVE: Final = 0x15
_COM_BINLOG_DUMP: Final = 0x12
_COM_BINLOG_DUMP_GTID: Final = 0x1E
_SEND_ANNOTATE_ROWS: Final = 2
_REPORTED_NAME: Final = b"replicator"
_PACKET_HEADER: Final = 4
_ERROR_PACKET: Final = b"\xff"
_LONGEST_ANSWER: Final = 4096
"""Maximum bytes of an answer: a server's error message has at most 512."""
_OK_PACKET: Final = b"\0"
_UUID_BASE: Final = 0x7265706C_6963_4174_8F72_000000000000
FARTHEST: Final = 1 << 32
"""The first offset that COM_BINLOG_DUMP can't express."""
_SETTINGS: Final = set_session({"sql_select_limit": NO_SELECT_LIMIT})


class BinlogRelay(Protocol):
    """A copy of a source's binlog."""

    def connection(
        self, source: BinlogSource, start: SourcePosition | GtidStart, *, bare: bool
    ) -> BinlogConnection:
        """Return a connection that reads from the copy if it can."""
        ...


@dataclass(frozen=True, slots=True)
class BinlogSource:
    """A source, and how to request its binlog.

    Attributes:
        server_id: the id of this client, unique among the source and its replicas.
        expected: the server that wrote the events read before; None for any server.
        heartbeat: seconds after which an idle source reports its position.
        read_timeout: seconds after which a silent connection is lost; longer than ``heartbeat``.
        relay: the relay, if there is one.
    """

    address: DatabaseAddress
    server_id: int
    expected: ServerIdentity | None = None
    heartbeat: float = 2.0
    read_timeout: float = 20.0
    relay: BinlogRelay | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.read_timeout <= self.heartbeat:
            raise ValueError("the read timeout must be longer than the heartbeat period")

    def __str__(self) -> str:
        return f"{self.address.host}:{self.address.port}"


class BinlogConnection:
    """One dump connection. All methods but `close` belong to one thread."""

    def __init__(
        self, source: BinlogSource, start: SourcePosition | GtidStart, *, bare: bool = False
    ) -> None:
        """Prepare a connection from ``start``, a position in the expected server's binlog.

        ``bare``: whether only events are needed, without the GTID set at the start and the session
        defaults. Set ``proven`` before `open` if a transaction read before is known to be still at
        its position in this binlog.
        """
        self._source = source
        self._start = start
        self._request = StreamRequest(str(source), str(start), source.server_id)
        self._bare = bare
        self._heartbeat = source.heartbeat
        self._timeout = source.read_timeout
        self._connection: Any = None
        self._socket: socket.socket | ssl.SSLSocket | None = None
        self._waker, self._wake = socket.socketpair()
        self._closed = False
        self.proven = False
        self._asking = threading.Lock()
        self._busy = threading.Lock()

    def open(self) -> tuple[ServerInfo, str]:
        """Log in, negotiate and request the binlog; read nothing of it.

        Returns the server, and the GTID set at the start ("" if unknown). Raises StreamLostError if
        a retry can help, BinlogError (PurgedError) if it can't, and OtherServerError or
        OtherBinlogError if the start is not in this server's binlog.
        """
        with self._using():
            try:
                return self._open()
            except pymysql.MySQLError as error:
                raise self._translated(error) from error
            except OSError as error:
                raise StreamLostError(f"{self._source}: {error}") from error

    def receive(self, room: memoryview, *, wait: bool) -> int:
        """Put the next bytes of the stream into ``room``; return their number.

        Returns 0 if there are none yet and ``wait`` is False. Raises StreamLostError if the
        connection ended, no bytes arrived within the read timeout, or `close` was called.
        """
        with self._using():
            if self._socket is None:
                raise StreamLostError(f"{self._source}: the binlog stream is not open.")
            while True:
                try:
                    count = self._socket.recv_into(room)
                except (BlockingIOError, ssl.SSLWantReadError):
                    if not wait:
                        return 0
                    self._wait(self._socket)
                    continue
                except OSError as error:
                    raise StreamLostError(f"{self._source}: {error}") from error
                if not count:
                    raise StreamLostError(f"{self._source} closed the binlog stream.")
                return count

    def failure(self, code: int, message: str) -> BinlogError | StreamLostError:
        """Return the exception for an error packet in the stream."""
        return translate(
            code,
            message,
            self._request,
            logged_in=self._connection is not None,
            available=self._available() if code == ER.MASTER_FATAL_ERROR_READING_BINLOG else "",
        )

    def mistrust(self) -> bool:
        """Make later connections bypass the copy of the binlog that this connection has read.

        Return False if it has read the source.
        """
        return False

    def close(self) -> None:
        """Close the connection, from any thread and at any time, without waiting for the server.

        No request for the binlog is sent after that, even by a call of `open` in progress: it would
        end the stream of the next connection with the same server id.
        """
        with self._asking:
            self._closed = True
        with contextlib.suppress(OSError):
            # Already closed by the other thread, or full of earlier wake-ups: both are harmless.
            self._wake.send(b"x")
        self._dispose()

    @contextlib.contextmanager
    def _using(self) -> Iterator[None]:
        """In this block, `close` does not close the socket: it is closed when the block ends."""
        try:
            with self._busy:
                self._refuse_closed()
                yield
        finally:
            if self._closed:
                self._dispose()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StreamLostError(f"{self._source}: the binlog stream was closed.")

    def _dispose(self) -> None:
        """Free the sockets unless a call is using them; then that call does it when it ends."""
        if not self._busy.acquire(blocking=False):
            return
        try:
            if self._connection is not None:
                self._connection._force_close()
                self._connection = None
            self._socket = None
            self._waker.close()
            self._wake.close()
        finally:
            self._busy.release()

    def _wait(self, stream: socket.socket) -> None:
        """Block until the stream has bytes, the read timeout is over, or `close` is called."""
        poll = select.poll()
        poll.register(stream, select.POLLIN)
        poll.register(self._waker, select.POLLIN)
        ready = poll.poll(self._timeout * 1000)
        self._refuse_closed()
        if not ready:
            raise StreamLostError(
                f"{self._source} sent nothing for {self._timeout:g} s, not even a heartbeat."
            )

    def _connect(self) -> Any:
        connection = connect(self._source.address, timeout=self._timeout)
        with connection.cursor() as cursor:
            cursor.execute(_SETTINGS)
        return connection

    def _open(self) -> tuple[ServerInfo, str]:
        self._connection = self._connect()
        info = server_info(self._connection)
        if not self._bare:
            info = replace(info, session=session_defaults(self._connection))
        self._check_identity(info)
        self._check_place(info)
        gtid = self._start.gtid or ("" if self._bare else self._ask_gtid(info))
        self._ask_binlog(info)
        return info, gtid

    def _ask_binlog(self, info: ServerInfo) -> None:
        self._negotiate(info)
        # MySQL forgets a registration when the dump ends. Without a dump, the registration stays
        # forever, as a replica whose session is gone. SHOW SLAVE HOSTS of 5.6 reads that session,
        # and crashes. So both requests are sent at once.
        requests = _packet(*self._registration()) + _packet(*self._dump_request(info))
        with self._asking:
            self._refuse_closed()
            self._connection._write_bytes(requests)
        self._read_answer()
        self._socket = self._connection._sock
        self._socket.setblocking(False)

    def _check_identity(self, info: ServerInfo) -> None:
        """Raise OtherServerError or OtherBinlogError if the start is not in this binlog."""
        expected, start = self._source.expected, self._start
        if expected is not None and not expected.is_same(info.identity):
            raise OtherServerError(
                f"{self._source} is another server now: it has {info.identity}, and the task read"
                f" from the one with {expected}. Positions of two servers can't be compared."
            )
        if expected is not None and not expected.names_alike(info.identity):
            raise OtherNamesError(
                f"{self._source} has another lower_case_table_names than before: now it compares"
                f" names of tables {'without' if info.folds_names else 'with'} their case"
            )
        # A set given by the operator may have more GTIDs; the server decides how to start there.
        named = isinstance(start, GtidStart) and start.anchor is None
        # After a session has set a lower gtid_seq_no, MariaDB's state may be lower than the GTIDs
        # read before, so that the comparison proves nothing.
        proven = self.proven and info.mariadb and not self.asks_by_gtid
        certain = named or proven
        if start.gtid and not certain and not self._has_executed(info, start.gtid):
            raise OtherBinlogError(
                f"{self._source} does not know the transactions up to which its binlog was read"
                f" ({start.gtid}): its binlog was reset or has lost its end, or another server"
                " answers."
            )

    def _check_place(self, info: ServerInfo) -> None:
        """Raise OtherBinlogError if the GTIDs before the start are not those saved with it.

        Only needed while no transaction read before proves the position: nodes of a cluster can
        have files with the same name, begun in the same second.
        """
        start = self._start
        if isinstance(start, GtidStart) or self._bare or self.asks_by_gtid or not start.gtid:
            return
        if start.anchor is not None and start.anchor.offset != FILE_HEADER:
            return
        there = self._ask_gtid(info)
        if there and {*there.split(",")} != {*start.gtid.split(",")}:
            raise OtherBinlogError(
                f"{self._source} has executed other transactions up to {start.binlog} than before"
                f" ({there}, not {start.gtid}): its binlog was reset, or another server answers."
            )

    def _has_executed(self, info: ServerInfo, gtid: str) -> bool:
        if info.mariadb:
            rows = self._query("SELECT @@global.gtid_binlog_state")
            with parsing_answer("gtid_binlog_state"):
                ((state,),) = rows
                return MariaDBGtids(gtid).is_within(str(state or ""))
        if info.gtid_mode != "ON":
            return True
        # The server understands sets with tags, too.
        rows = self._query("SELECT GTID_SUBSET(%s, @@global.gtid_executed)", (gtid,))
        with parsing_answer("gtid_executed"):
            ((within,),) = rows
            return bool(int(within))

    def _ask_gtid(self, info: ServerInfo) -> str:
        """Ask MariaDB for the GTID set at a position; "" at a file's beginning, and for MySQL."""
        if not info.mariadb or isinstance(self._start, GtidStart):
            return ""
        binlog = self._start.binlog
        rows = self._query("SELECT BINLOG_GTID_POS(%s, %s)", (binlog.file, binlog.offset))
        with parsing_answer("BINLOG_GTID_POS"):
            gtid = str(rows[0][0] or "") if rows else ""
            MariaDBGtids(gtid)
        return gtid

    def _negotiate(self, info: ServerInfo) -> None:
        """Set the session variables that the dump thread reads.

        The checksum variable has an old and a new name; setting both is harmless. It decides
        whether the first events, which name the file, have checksums. It is set because the
        server's own setting may have changed since it was read.
        """
        period = int(self._heartbeat * 1_000_000_000)
        self._query("SET @master_binlog_checksum = %s", (info.checksum,))
        self._query("SET @source_binlog_checksum = %s", (info.checksum,))
        self._query("SET @master_heartbeat_period = %s", (period,))
        self._query("SET @source_heartbeat_period = %s", (period,))
        if not info.mariadb:
            uuid = str(UUID(int=_UUID_BASE | self._source.server_id))
            self._query("SET @slave_uuid = %s", (uuid,))
            self._query("SET @replica_uuid = %s", (uuid,))
            return
        self._query("SET @mariadb_slave_capability = 4")
        if self.asks_by_gtid:
            self._query("SET @slave_connect_state = %s", (self._start.gtid,))
            self._query("SET @slave_gtid_strict_mode = 0")
            self._query("SET @slave_gtid_ignore_duplicates = 0")

    @property
    def asks_by_gtid(self) -> bool:
        """Whether the server searches for the start by its GTIDs.

        False if the protocol can express the position: transactions may have no GTID, or a lower
        one than earlier transactions.
        """
        start = self._start
        if isinstance(start, GtidStart):
            return True
        return start.binlog.offset >= FARTHEST and bool(start.gtid)

    def names_start(self, info: ServerInfo) -> bool:
        """Return whether the request has a file and an offset.

        If it has GTIDs, only MySQL 5.7 and later also accept a file and an offset: MySQL 5.6 then
        does not find the next file.
        """
        if isinstance(self._start, GtidStart):
            return False
        by_both = not info.mariadb and info.version >= (5, 7)
        return by_both or not self.asks_by_gtid

    def _registration(self) -> tuple[int, bytes]:
        """Return the command that registers this client for SHOW REPLICA HOSTS."""
        body = struct.pack("<IB", self._source.server_id, len(_REPORTED_NAME)) + _REPORTED_NAME
        # No user, no password, port 0; servers do not use the rank and the source's id.
        return _COM_REGISTER_SLAVE, body + struct.pack("<BBHII", 0, 0, 0, 0, 0)

    def _dump_request(self, info: ServerInfo) -> tuple[int, bytes]:
        if isinstance(self._start, SourcePosition):
            file, offset = self._start.binlog.file.encode(), self._start.binlog.offset
        else:
            file, offset = b"", 4
        if not self.names_start(info):
            file, offset = b"", 4
        if self.asks_by_gtid and not info.mariadb:
            gtids = MySQLGtids(self._start.gtid).encode()
            # No flags: old manuals name 4, which now means that the replica knows no tags.
            head = struct.pack("<HII", 0, self._source.server_id, len(file)) + file
            return _COM_BINLOG_DUMP_GTID, head + struct.pack("<QI", offset, len(gtids)) + gtids
        if offset >= FARTHEST:
            raise BinlogError(
                f"{self._request.start} lies beyond 4 GiB, which the protocol can't ask for. "
                "Start by GTID (enable-gtid: true)."
            )
        # Each event must begin at the end of the previous one, so none may be left out.
        flags = _SEND_ANNOTATE_ROWS if info.mariadb else 0
        return _COM_BINLOG_DUMP, struct.pack("<IHI", offset, flags, self._source.server_id) + file

    def _read_answer(self) -> None:
        """Read the answer to the registration, and nothing of the stream after it."""
        stream = self._connection._sock
        stream.settimeout(self._timeout)
        size = int.from_bytes(self._read(stream, _PACKET_HEADER)[:3], "little")
        if size > _LONGEST_ANSWER:
            raise StreamLostError(
                f"{self._source} answers {size} bytes to the registration of a replica, where a"
                " few come: it is no MySQL or MariaDB, or something on the way damages the answer."
            )
        body = self._read(stream, size)
        if body.startswith(_ERROR_PACKET):
            with READING:
                pymysql.err.raise_mysql_exception(body)
        if not body.startswith(_OK_PACKET):
            raise OddAnswerError.of(f"the server answers a registration with {body[:20]!r}")

    def _read(self, stream: socket.socket, size: int) -> bytes:
        found = b""
        while len(found) < size:
            more = stream.recv(size - len(found))
            if not more:
                raise StreamLostError(f"{self._source} closed the connection.")
            found += more
        return found

    def _query(self, sql: str, values: tuple[object, ...] = ()) -> tuple[tuple[Any, ...], ...]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, values)
            return tuple(cursor.fetchall())

    def _translated(self, error: pymysql.MySQLError) -> BinlogError | StreamLostError:
        # PyMySQL's exception has (number, text) if the server sent them.
        if isinstance(error, TlsError):
            return AccessRefusedError(
                f"The binlog can't be read: {error.args[-1]}. {error.way_out}."
            )
        if isinstance(error, OddAnswerError):
            return StreamLostError(f"{self._source}: {error.args[-1]}")
        code, message = error.args if len(error.args) == 2 else (CR.CR_SERVER_LOST, str(error))
        return self.failure(int(code), str(message))

    def binlogs(self) -> list[tuple[str, int]]:
        """Return the server's binlogs and their sizes in bytes, over a separate connection.

        Raises pymysql.MySQLError, OSError.
        """
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW BINARY LOGS")
            with parsing_answer("SHOW BINARY LOGS"):
                return [(str(row[0]), int(row[1])) for row in cursor]

    def prepared(self) -> PreparedAtSource:
        """Return the server's prepared XA transactions, over a separate connection.

        Raises pymysql.MySQLError, OSError.
        """
        with self._connect() as connection:
            return prepared_at_source(connection)

    def _available(self) -> str:
        """Return a sentence about the server's binlogs, for a message."""
        try:
            files = self.binlogs()
        except (pymysql.MySQLError, OSError) as error:
            return f"Its list of binlogs can't be read ({error})."
        if not files:
            return "It has no binlogs."
        return f"It has {files[0][0]} to {files[-1][0]} (up to position {files[-1][1]})."


def binlog_connection(
    source: BinlogSource, start: SourcePosition | GtidStart, *, bare: bool = False
) -> BinlogConnection:
    """Return a connection to a source or its relay; the parameters are as in `BinlogConnection`."""
    if source.relay is not None:
        return source.relay.connection(source, start, bare=bare)
    return BinlogConnection(source, start, bare=bare)


def _packet(command: int, body: bytes) -> bytes:
    """Return a command's packet: size in three bytes, number of the packet, command, body."""
    return (len(body) + 1).to_bytes(3, "little") + bytes((0, command)) + body
