"""Converts packets to segments: the compiled loop or a handler reads each event. No I/O."""

from __future__ import annotations

from replicator.binlog.connection.framing import PacketBuffer
from replicator.binlog.errors import BinlogError
from replicator.binlog.events.xa_events import UnknownTransactionError, Xid
from replicator.binlog.parser.fast_path import FastPath
from replicator.binlog.parser.file_state import FileState
from replicator.binlog.parser.parser_state import ReadingState
from replicator.binlog.parser.prepared_transactions import PreparedPlaces, PreparedTransactions
from replicator.binlog.parser.slow_path import SlowPath
from replicator.binlog.positions.position import BinlogPosition
from replicator.binlog.segments.segment import Segment
from replicator.binlog.segments.segment_builder import SegmentBuilder, SegmentLimits
from replicator.binlog.segments.table_routes import Route, TableRoutes
from replicator.mysql.server.identity import AnchorEvent
from replicator.watermark import Place


class SegmentAssembler:
    """Consumes events and fills segments. One thread only."""

    def __init__(
        self,
        packets: PacketBuffer,
        files: FileState,
        *,
        route: Route,
        limits: SegmentLimits,
        resume_after: Place | None = None,
        prepared: PreparedTransactions | PreparedPlaces | None = None,
    ) -> None:
        """Read events from ``packets``, beginning at ``files``.

        Row events up to ``resume_after`` are dropped. ``prepared``: the XA transactions that are
        prepared at the start.
        """
        self.packets = packets
        self._state = ReadingState(
            files,
            TableRoutes(route),
            SegmentBuilder(limits),
            resume_after=resume_after,
            prepared=prepared or PreparedTransactions(),
        )
        self._course = FastPath(self._state)
        self._handlers = SlowPath(self._state)

    @property
    def in_transaction(self) -> bool:
        """Whether the last event is inside a group."""
        return self._state.open

    @property
    def moved(self) -> bool:
        """Whether the segment has anything to return."""
        return self._state.segment.moved

    @property
    def anchor(self) -> AnchorEvent | None:
        """The newest event that identifies the binlog."""
        return self._state.files.boundary.anchor

    @property
    def prepared(self) -> dict[BinlogPosition, Xid]:
        """The prepared XA transactions by position; empty if no rows are needed."""
        prepared = self._state.prepared
        if isinstance(prepared, PreparedPlaces):
            return {}
        return {one.at: xid for xid, one in prepared.items()}

    def run(self) -> bool:
        """Consume events.

        Return True if the segment should end, False if no more events have arrived.

        Raises BinlogError or a subclass, with the position; the state can't be used after that.
        """
        try:
            return self._consume()
        except UnknownTransactionError:
            raise
        except BinlogError as error:
            raise type(error)(f"Binlog {self._state.files.position}: {error}") from error

    def _consume(self) -> bool:
        while True:
            if self._consume_payloads() or self._course.follow(self.packets):
                return True
            if self._state.payloads:
                continue
            event = self.packets.next_event()
            if event is None:
                return False
            if self._handlers.handle(event):
                return True

    def _consume_payloads(self) -> bool:
        """Consume the events of compressed transactions, as `_consume` does with packets."""
        payloads = self._state.payloads
        while payloads:
            payload = payloads[-1]
            if not payload.fill():
                payloads.pop()
                continue
            if self._course.follow_inside(payload):
                return True
            if payload.whole and self._handlers.handle_inside(payload.next_event()):
                return True
        return False

    def rescue(self) -> Segment | None:
        """Return the complete part of the segment after `run` has raised; None if it has no rows.

        It ends at the last boundary. The events of the failed transaction are left out, since its
        remaining events are unknown.
        """
        state = self._state
        if state.open:
            state.segment.discard(state.transaction)
            state.open = False
        segment = self.take()
        return segment if segment.rows else None

    def take(self) -> Segment:
        """Return the segment read since the last call."""
        state = self._state
        return state.segment.take(state.boundary, state.tables, complete=not state.open)
