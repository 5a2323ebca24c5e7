"""One source's binlog as a sequence of segments. Blocking: give it a thread of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pymysql

from replicator.binlog.assembler import SegmentAssembler
from replicator.binlog.connection import BinlogConnection, SourceAddress
from replicator.binlog.errors import BinlogError, StreamLostError
from replicator.binlog.framing import PacketBuffer
from replicator.binlog.gtid import GtidStart, MariaDBGtids, MySQLGtids
from replicator.binlog.landmark_check import LandmarkCheck
from replicator.binlog.position import BinlogPosition, SourcePosition
from replicator.binlog.prepared import PreparedPlaces, PreparedTransactions
from replicator.binlog.prepared_at_source import PreparedAtSource
from replicator.binlog.prepared_reading import PreparedReading
from replicator.binlog.segment import Segment
from replicator.binlog.segment_builder import SegmentLimits
from replicator.binlog.server import Flavor, ServerInfo
from replicator.binlog.table_routes import Route
from replicator.binlog.xa import Xid
from replicator.mysql.identity import Landmark, ServerIdentity
from replicator.watermark import Place


class BinlogStream:
    """Reads from ``start`` on, over one connection; `close` it in any case.

    After StreamLostError make a new one that starts at the ``end`` of the last segment; when that
    segment was not complete, with ``resume_after`` at the last row event that was handed on (of any
    target), so that none comes twice. A statement inside an unfinished transaction may come
    again: its `Statement.transaction` tells.
    """

    def __init__(
        self,
        address: SourceAddress,
        start: SourcePosition | GtidStart,
        *,
        server_id: int,
        route: Route,
        limits: SegmentLimits,
        resume_after: Place | None = None,
        heartbeat: float = 2.0,
        read_timeout: float = 20.0,
        expected: ServerIdentity | None = None,
        places: PreparedPlaces | None = None,
    ) -> None:
        """``server_id`` must be unique among the source and its replicas.

        ``route`` is called in the reading thread, once per distinct table map between two
        statements; None means that the table is not replicated. ``heartbeat`` is after how many
        seconds an idle source reports its position, ``read_timeout`` after how many a silent
        connection counts as lost. ``expected``: the server that wrote what was read before.
        ``places``: no rows are wanted, and of XA transactions only what is noted in this.
        """
        if read_timeout <= heartbeat:
            raise ValueError("the read timeout must be longer than the heartbeat period")
        self._start = start
        self._route = route
        self._limits = limits
        self._resume = resume_after
        self._packets = PacketBuffer()
        self._assembler: SegmentAssembler | None = None
        self._failure: BinlogError | None = None
        connect = partial(
            BinlogConnection,
            address,
            server_id=server_id,
            heartbeat=heartbeat,
            read_timeout=read_timeout,
            expected=expected,
        )
        self._connect = connect
        self._connection = connect(start)
        self._places = places
        self._prepared = PreparedReading(connect, () if places else start.prepared)
        self._look_back = self._landmark_check(start.landmark)

    def open(self) -> ServerInfo:
        """Connect, make sure that it is the binlog that was read before, and ask for it.

        Raises StreamLostError when trying again can help, BinlogError when it cannot.
        """
        if self._look_back is not None:
            self._look_back.run()
        prepared = self._prepared.run()
        info, gtid = self._connection.open()
        self._assembler = SegmentAssembler(
            self._packets,
            self._start if isinstance(self._start, SourcePosition) else None,
            gtids=self._known_gtids(info, gtid),
            route=self._route,
            limits=self._limits,
            resume_after=self._resume,
            checksums=info.checksum == "CRC32",
            prepared=self._places or PreparedTransactions(prepared),
            described=False,
        )
        return info

    def read_segment(self) -> Segment:
        """The next segment; waits until there is one.

        A segment ends at a statement, at its limits, or as soon as the source has no more data at
        a boundary. An idle source gives an empty segment per heartbeat.

        Raises StreamLostError when the connection was lost, was silent for the read timeout, or
        `close` was called; BinlogError (PurgedError, ChecksumError, UnsupportedEventError) when
        the binlog can't be followed.
        """
        assembler = self._assembler
        if self._failure is not None:
            raise self._failure
        if assembler is None:
            raise StreamLostError("The binlog stream is not open.")
        try:
            return self._read(assembler)
        except StreamLostError:
            # Read again behind the last segment: nothing of this one is needed.
            raise
        except BinlogError as error:
            whole = assembler.rescue()
            if whole is None:
                raise
            # What comes before the failure is handed on first; then there is nothing behind it.
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
        """Where XA transactions stood that are prepared at the start, in files that are gone."""
        return self._prepared.purged

    def binlogs(self) -> list[tuple[str, int]]:
        """As `BinlogConnection.binlogs`."""
        return self._connection.binlogs()

    @property
    def prepared(self) -> dict[BinlogPosition, Xid]:
        """Where the XA transactions stand that are prepared behind the last segment."""
        return {} if self._assembler is None else self._assembler.prepared

    def prepared_at_source(self) -> PreparedAtSource | None:
        """Those that the source has; None where it does not answer."""
        try:
            return self._connection.prepared()
        except (pymysql.MySQLError, OSError):
            # It is asked again; who reads on is told, too, where the source has gone.
            return None

    def _landmark_check(self, mark: Landmark | None) -> LandmarkCheck | None:
        if mark is None:
            return None
        at = SourcePosition(BinlogPosition(mark.file, mark.offset))
        return LandmarkCheck(self._connect(at, bare=True), mark)

    def _prove(self, assembler: SegmentAssembler) -> None:
        """Look back: a binlog that is begun anew under a stream is a file that can't be read."""
        self._look_back = self._landmark_check(assembler.landmark)
        if self._look_back is not None:
            self._look_back.run()

    def close(self) -> None:
        """End the stream, from any thread; a `read_segment` under way raises StreamLostError."""
        if self._look_back is not None:
            self._look_back.close()
        self._prepared.close()
        self._connection.close()

    def _known_gtids(self, info: ServerInfo, gtid: str) -> MariaDBGtids | MySQLGtids | None:
        """The set at the start, or None: then the binlog tells it where a file begins."""
        if not gtid and isinstance(self._start, SourcePosition):
            return None
        return MariaDBGtids(gtid) if info.flavor is Flavor.MARIADB else MySQLGtids(gtid)
