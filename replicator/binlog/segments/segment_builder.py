"""A segment while it is being filled, and when it is full."""

from __future__ import annotations

from dataclasses import dataclass, replace

from replicator.binlog.positions.position import SourcePosition
from replicator.binlog.segments.row_columns import RowColumns
from replicator.binlog.segments.segment import Segment, Statement
from replicator.binlog.segments.table_routes import TableRoutes

FEW_TARGETS = 16
"""What each target's part of a segment costs beside its rows weighs little up to so many."""


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    """When a segment ends: bytes are those of all binlog events, events only row events handed on.

    At the first boundary after a target; inside a transaction only after a maximum. ``widest``: how
    many times larger a segment may be whose rows go to many targets.
    """

    target_bytes: int = 4 << 20
    max_bytes: int = 16 << 20
    target_events: int = 20_000
    max_events: int = 80_000
    widest: int = 1

    def of_targets(self, targets: int) -> SegmentLimits:
        """The limits where rows go to so many targets: their parts are then not too small."""
        times = min(self.widest, targets // FEW_TARGETS)
        if times <= 1:
            return self
        bytes_, events = times * self.target_bytes, times * self.target_events
        return replace(
            self,
            target_bytes=bytes_,
            max_bytes=max(self.max_bytes, bytes_),
            target_events=events,
            max_events=max(self.max_events, events),
        )


class SegmentBuilder:
    """Collects what `Segment` holds. ``bytes`` is counted by its user.

    ``limits`` follow the number of targets that the last segment had rows for. ``moved`` tells
    whether there is anything to hand on: rows, a statement, or a boundary.
    """

    __slots__ = (
        "_narrowest",
        "bytes",
        "caught_up",
        "limits",
        "moved",
        "rows",
        "statement",
        "timestamp",
    )

    def __init__(self, limits: SegmentLimits) -> None:
        self.limits = self._narrowest = limits
        self.rows = RowColumns()
        self._clear()

    def _clear(self) -> None:
        self.bytes = 0
        self.timestamp = 0
        self.moved = False
        self.statement: Statement | None = None
        self.caught_up = False

    def add(self, table: int, transaction: int, ordinal: int, event: memoryview) -> bool:
        """Take a row event; True when the segment must end even inside a transaction.

        ``table`` is its number in the tables that are given to `take`.
        """
        self.rows.add(event, table, transaction, ordinal)
        self.moved = True
        limits = self.limits
        return self.bytes >= limits.max_bytes or self.rows.count >= limits.max_events

    def is_full(self) -> bool:
        """Whether the segment should end at the boundary that was just reached."""
        limits = self.limits
        return self.bytes >= limits.target_bytes or self.rows.count >= limits.target_events

    def discard(self, transaction: int) -> int:
        """Take back the row events of the last transaction; returns how many there were."""
        return self.rows.discard(transaction)

    def take(self, end: SourcePosition, tables: TableRoutes, *, complete: bool) -> Segment:
        """The finished segment; the next one begins empty."""
        segment = Segment(
            rows=self.rows.take(tables.tables),
            end=end,
            complete=complete,
            timestamp=self.timestamp,
            bytes=self.bytes,
            statement=self.statement,
            caught_up=self.caught_up,
        )
        self._clear()
        self.limits = self._narrowest.of_targets(len(segment.rows))
        tables.number_anew()
        return segment
