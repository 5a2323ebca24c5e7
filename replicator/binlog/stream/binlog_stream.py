"""One source's binlog as a sequence of segments. Blocking: it needs a separate thread.

Before it starts, it reads the XA transactions that were prepared before the start position.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Protocol

import pymysql

from replicator.binlog.connection.dump_connection import (
    BinlogConnection,
    BinlogSource,
    binlog_connection,
)
from replicator.binlog.connection.framing import PacketBuffer
from replicator.binlog.connection.server_info import ServerInfo
from replicator.binlog.connection.xa_recover import PreparedAtSource
from replicator.binlog.errors import (
    BinlogError,
    DamagedStreamError,
    PurgedError,
    StreamLostError,
)
from replicator.binlog.events.xa_events import Xid
from replicator.binlog.parser.assembler import SegmentAssembler
from replicator.binlog.parser.file_state import FileState
from replicator.binlog.parser.prepared_transactions import (
    Prepared,
    PreparedPlaces,
    PreparedTransactions,
)
from replicator.binlog.positions.gtid import GtidStart, MariaDBGtids, MySQLGtids
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.segment import Segment
from replicator.binlog.segments.segment_builder import SegmentLimits
from replicator.binlog.segments.table_routes import Route
from replicator.binlog.stream.anchor_check import AnchorCheck
from replicator.mysql.server.identity import AnchorEvent
from replicator.watermark import Place

_ONE_GROUP = SegmentLimits(target_bytes=1)


class _Connect(Protocol):
    def __call__(self, start: SourcePosition, *, bare: bool) -> BinlogConnection: ...


class PreparedReading:
    """Reads the groups that begin at some positions, each over a separate connection.

    It ends before the stream itself begins, since the server accepts one stream for each server id.
    ``purged``: the positions whose files the server no longer has. Their transactions stay unknown:
    if one is committed, the stream fails at its outcome.
    """

    def __init__(self, connect: _Connect, places: Sequence[BinlogPosition]) -> None:
        self.purged: list[BinlogPosition] = []
        self._connect = connect
        self._places = places
        self._connection: BinlogConnection | None = None
        self._closed = False

    def run(self) -> list[tuple[Xid, Prepared]]:
        """Return the transactions found. Raises BinlogError, StreamLostError."""
        self.purged = []
        return [one for at in self._places for one in self._read(at)]

    def close(self) -> None:
        """End the reading, from any thread; a `run` in progress raises StreamLostError."""
        self._closed = True
        if self._connection is not None:
            self._connection.close()

    def _read(self, at: BinlogPosition) -> Iterable[tuple[Xid, Prepared]]:
        self._connection = connection = self._connect(SourcePosition(at), bare=True)
        try:
            if self._closed:
                raise StreamLostError("The binlog stream is closed.")
            info, _ = connection.open()
            yield from _group(connection, at, checksums=info.checksum == "CRC32")
        except PurgedError:
            self.purged.append(at)
        except BinlogError as error:
            if connection.mistrust():
                raise StreamLostError(f"The relay is damaged. {error}") from error
            raise
        finally:
            connection.close()


def _group(
    connection: BinlogConnection, at: BinlogPosition, *, checksums: bool
) -> Iterable[tuple[Xid, Prepared]]:
    packets = PacketBuffer()
    prepared = PreparedTransactions()
    assembler = SegmentAssembler(
        packets,
        FileState(SourcePosition(at), None, checksums=checksums, described=False),
        route=lambda _schema, _table, _types: None,
        limits=_ONE_GROUP,
        prepared=prepared,
    )
    while not assembler.run():
        if packets.failure is not None:
            raise connection.failure(packets.failure.code, packets.failure.message)
        packets.received(connection.receive(packets.room(), wait=True))
    if not prepared.places:
        raise BinlogError(f"No prepared XA transaction stands at {at}, where one was read before.")
    return prepared.items()


class BinlogStream:
    """Reads from ``start`` on, over one connection; always `close` it.

    After StreamLostError, make a new one that starts at the ``end`` of the last segment. If that
    segment was not complete, pass the last row event that was returned (of any target) as
    ``resume_after``, so that no row event is returned twice. A statement in an unfinished
    transaction may be returned again, with the same `Statement.transaction`.
    """

    def __init__(
        self,
        source: BinlogSource,
        start: SourcePosition | GtidStart,
        *,
        route: Route,
        limits: SegmentLimits,
        resume_after: Place | None = None,
        places: PreparedPlaces | None = None,
    ) -> None:
        """Prepare the connection; `open` makes it.

        Args:
            route: called in the reading thread, once per distinct table map between two statements;
                it returns None if the table is not replicated.
            places: whether to read no rows, but only the positions of XA transactions.
        """
        self._start = start
        self._route = route
        self._limits = limits
        self._resume = resume_after
        self._packets = PacketBuffer()
        self._assembler: SegmentAssembler | None = None
        self._failure: BinlogError | None = None
        self._connect = partial(binlog_connection, source)
        self._connection = self._connect(start)
        self._places = places
        self._prepared = PreparedReading(self._connect, () if places else start.prepared)
        self._look_back = self._anchor_check(start.anchor)

    def open(self) -> ServerInfo:
        """Connect, check that this is the binlog read before, and request it.

        Raises StreamLostError if a retry can help, BinlogError if it can't.
        """
        if self._look_back is not None:
            self._connection.proven = self._look_back.run()
        prepared = self._prepared.run()
        info, gtid = self._connection.open()
        self._assembler = SegmentAssembler(
            self._packets,
            FileState(
                self._named_position(info),
                self._known_gtids(info, gtid),
                checksums=info.checksum == "CRC32",
                described=False,
                nameless=not info.mariadb and not gtid,
            ),
            route=self._route,
            limits=self._limits,
            resume_after=self._resume,
            prepared=self._places or PreparedTransactions(prepared),
        )
        return info

    def read_segment(self) -> Segment:
        """Return the next segment; wait until there is one.

        A segment ends at a statement, at its limits, or as soon as the source has no more data at a
        boundary. For an idle source, there is an empty segment per heartbeat.

        Raises StreamLostError if the connection was lost or silent for the read timeout, or `close`
        was called; BinlogError (PurgedError, ChecksumError, UnsupportedEventError) if the binlog
        can't be followed.
        """
        assembler = self._assembler
        if self._failure is not None:
            raise self._failure
        if assembler is None:
            raise StreamLostError("The binlog stream is not open.")
        try:
            return self._read(assembler)
        except StreamLostError:
            # The next stream reads this segment again, so nothing of it is needed.
            raise
        except BinlogError as error:
            if isinstance(error, DamagedStreamError) and self._connection.mistrust():
                raise StreamLostError(f"The relay is damaged. {error}") from error
            whole = assembler.rescue()
            if whole is None:
                raise
            # The events before the failure are returned first; the next call raises it.
            self._failure = error
            return whole

    def _read(self, assembler: SegmentAssembler) -> Segment:
        while not assembler.run():
            failure = self._packets.failure
            if failure is not None:
                error = self._connection.failure(failure.code, failure.message)
                if isinstance(error, BinlogError):
                    self._prove(assembler)
                raise error
            may_end = assembler.moved and not assembler.in_transaction
            received = self._connection.receive(self._packets.room(), wait=not may_end)
            if not received:
                break
            self._packets.received(received)
        return assembler.take()

    @property
    def purged(self) -> Sequence[BinlogPosition]:
        """Purged places of XA transactions that are prepared at the start."""
        return self._prepared.purged

    def binlogs(self) -> list[tuple[str, int]]:
        """Return the result of `BinlogConnection.binlogs`."""
        return self._connection.binlogs()

    @property
    def prepared(self) -> dict[BinlogPosition, Xid]:
        """The XA transactions that are prepared at the end of the last segment, by position."""
        return {} if self._assembler is None else self._assembler.prepared

    def prepared_at_source(self) -> PreparedAtSource | None:
        """Return the source's prepared XA transactions; None if it does not answer."""
        try:
            return self._connection.prepared()
        except (pymysql.MySQLError, OSError):
            # The caller tries again, and the next read raises an error if the source is gone.
            return None

    def _anchor_check(self, mark: AnchorEvent | None) -> AnchorCheck | None:
        if mark is None:
            return None
        at = SourcePosition(BinlogPosition(mark.file, mark.offset))
        return AnchorCheck(self._connect(at, bare=True), mark)

    def _prove(self, assembler: SegmentAssembler) -> None:
        """Check the anchor.

        After a reset of the binlog, a running stream finds an unreadable file.
        """
        self._look_back = self._anchor_check(assembler.anchor)
        if self._look_back is not None:
            self._look_back.run()

    def close(self) -> None:
        """End the stream, from any thread; a `read_segment` in progress raises StreamLostError."""
        if self._look_back is not None:
            self._look_back.close()
        self._prepared.close()
        self._connection.close()

    def _named_position(self, info: ServerInfo) -> SourcePosition | None:
        """Return the position at which the stream must begin; None if only the stream shows it."""
        start = self._start
        named = isinstance(start, SourcePosition) and self._connection.names_start(info)
        return start if named and isinstance(start, SourcePosition) else None

    def _known_gtids(self, info: ServerInfo, gtid: str) -> MariaDBGtids | MySQLGtids | None:
        """Return the set at the start; None if the beginning of a binlog file will show it."""
        if not gtid and isinstance(self._start, SourcePosition):
            return None
        return MariaDBGtids(gtid) if info.mariadb else MySQLGtids(gtid)
