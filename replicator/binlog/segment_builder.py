"""A segment while it is being filled, and when it is full."""

from __future__ import annotations

from dataclasses import dataclass

from replicator.binlog.position import SourcePosition
from replicator.binlog.segment import RowEvents, Segment, Statement
from replicator.binlog.table_routes import RoutedTable


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    """When a segment ends: bytes are those of all binlog events, events only row events handed on.

    At the first boundary after a target; inside a transaction only after a maximum.
    """

    target_bytes: int = 4 << 20
    max_bytes: int = 16 << 20
    target_events: int = 20_000
    max_events: int = 80_000


class SegmentBuilder:
    """Collects what `Segment` holds. ``bytes`` is counted by its user.

    ``moved`` tells whether there is anything to hand on: rows, a statement, or a boundary.
    """

    __slots__ = (
        "_limits",
        "_row_events",
        "_rows",
        "bytes",
        "caught_up",
        "moved",
        "statement",
        "timestamp",
    )

    def __init__(self, limits: SegmentLimits) -> None:
        self._limits = limits
        self._clear()

    def _clear(self) -> None:
        self._rows: dict[int, RowEvents] = {}
        self._row_events = 0
        self.bytes = 0
        self.timestamp = 0
        self.moved = False
        self.statement: Statement | None = None
        self.caught_up = False

    def add(self, table: RoutedTable, transaction: int, ordinal: int, event: bytes) -> bool:
        """Take a row event; True when the segment must end even inside a transaction."""
        slot = table.slot
        rows = self._rows.get(slot.target)
        if rows is None:
            rows = self._rows[slot.target] = RowEvents()
        rows.member.append(slot.member)
        rows.table_map.append(table.table_map)
        rows.transaction.append(transaction)
        rows.ordinal.append(ordinal)
        rows.event.append(event)
        self.moved = True
        self._row_events += 1
        return self.bytes >= self._limits.max_bytes or self._row_events >= self._limits.max_events

    def is_full(self) -> bool:
        """Whether the segment should end at the boundary that was just reached."""
        limits = self._limits
        return self.bytes >= limits.target_bytes or self._row_events >= limits.target_events

    def discard(self, transaction: int) -> int:
        """Take back the row events of the last transaction; returns how many there were."""
        dropped = 0
        for rows in self._rows.values():
            while rows.transaction and rows.transaction[-1] == transaction:
                for column in (rows.member, rows.table_map, rows.transaction, rows.ordinal):
                    column.pop()
                rows.event.pop()
                dropped += 1
        self._row_events -= dropped
        return dropped

    def take(self, end: SourcePosition, *, complete: bool) -> Segment:
        """The finished segment; the next one begins empty."""
        segment = Segment(
            rows={target: rows for target, rows in self._rows.items() if rows.event},
            end=end,
            complete=complete,
            timestamp=self.timestamp,
            bytes=self.bytes,
            statement=self.statement,
            caught_up=self.caught_up,
        )
        self._clear()
        return segment
