"""A segment while it is being filled, and the limits of its size."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure
from dataclasses import dataclass, replace

import numpy as np

from replicator.binlog.positions.position import SourcePosition
from replicator.binlog.segments.row_events import RowEvents, RowKind
from replicator.binlog.segments.segment import Segment, Statement
from replicator.binlog.segments.table_routes import RoutedTable, TableRoutes
from replicator.kernels.compiled import Bytes, Integers
from replicator.kernels.shared_numbers import shared

FEW_TARGETS = 16
"""Up to this number of targets, the fixed cost of their parts of a segment is low."""


_FIRST_BYTES = 1 << 16
_FIRST_EVENTS = 1 << 9
_MOST_BYTES = 1 << 24
_MOST_EVENTS = 1 << 17
"""Buffers larger than these limits are freed after their content was taken."""
_RECEIVED_BYTES = 1 << 20
"""Room for the data received at once, in addition to the bytes of a segment."""

TABLE, TRANSACTION, ORDINAL = range(3)
"""The rows of `RowColumns.heads`. A table is an index into the tables passed to `take`."""


@shared
class RowColumns(Structure):
    """Room for row events, filled from the beginning: ``count`` events of ``size`` bytes.

    Event i is ``data[start[i]:start[i + 1]]``.
    """

    count: int
    size: int

    def __init__(self) -> None:
        super().__init__()
        self._make_data(_FIRST_BYTES)
        self._make_heads()

    def _make_data(self, room: int) -> None:
        self.data: Bytes = np.empty(room, np.uint8)

    def _make_heads(self) -> None:
        self.start: Integers = np.zeros(_FIRST_EVENTS + 1, np.int64)
        self.heads: Integers = np.empty((3, _FIRST_EVENTS), np.int64)

    def reserve(self, size: int, events: int) -> None:
        """Make room for this many more bytes and events."""
        needed = self.size + size
        if needed > len(self.data):
            # An unusually large segment gets exactly the room that it needs.
            room = needed if needed > _MOST_BYTES else max(needed, 2 * len(self.data))
            data = np.empty(room, np.uint8)
            data[: self.size] = self.data[: self.size]
            self.data = data
        if self.count + events >= len(self.start):
            room = max(self.count + events, 2 * len(self.start))
            start, heads = np.zeros(room + 1, np.int64), np.empty((3, room), np.int64)
            start[: self.count + 1] = self.start[: self.count + 1]
            heads[:, : self.count] = self.heads[:, : self.count]
            self.start, self.heads = start, heads

    def add(self, event: bytes | memoryview, table: int, transaction: int, ordinal: int) -> None:
        """Append one event."""
        self.reserve(len(event), 1)
        end = self.size + len(event)
        self.data.data[self.size : end] = event
        heads, count = self.heads, self.count
        heads[TABLE, count] = table
        heads[TRANSACTION, count] = transaction
        heads[ORDINAL, count] = ordinal
        self.size, self.count = end, self.count + 1
        self.start[self.count] = end

    def discard(self, transaction: int) -> int:
        """Remove the events of the last transaction; return their number."""
        before = np.flatnonzero(self.heads[TRANSACTION, : self.count] != transaction)
        kept = int(before[-1]) + 1 if len(before) else 0
        dropped, self.count = self.count - kept, kept
        self.size = int(self.start[kept])
        return dropped

    def take(self, tables: Sequence[RoutedTable]) -> dict[int, RowEvents]:
        """Return all events by the number of their target, and remove them.

        All targets share the bytes.
        """
        count = self.count
        if not count:
            return {}
        numbers, kind = _numbered(self.heads[TABLE, :count])
        used = [tables[number] for number in numbers.tolist()]
        targets = np.array([table.slot.target for table in used], np.int64)
        # A segment has many bytes, so they are not copied; the rest is small.
        start = self.start[: count + 1].copy()
        events = RowEvents(
            self._taken_bytes(),
            start[:-1],
            start[1:],
            kind,
            self.heads[TRANSACTION, :count].copy(),
            self.heads[ORDINAL, :count].copy(),
            tuple(map(_kind, used)),
        )
        if len(self.start) > _MOST_EVENTS:
            self._make_heads()
        self.count = self.size = 0
        if (targets == targets[0]).all():
            return {int(targets[0]): events}
        return _dealt(events, targets)

    def _taken_bytes(self) -> Bytes:
        """Return the bytes of the events: the buffer itself, if they fill most of it."""
        data, room = self.data[: self.size], len(self.data)
        filled = 2 * self.size >= room
        if room > _MOST_BYTES:
            self._make_data(_FIRST_BYTES)
        elif filled:
            self._make_data(min(room, self.size + _RECEIVED_BYTES))
        return data if filled else data.copy()


def _dealt(events: RowEvents, targets: Integers) -> dict[int, RowEvents]:
    """Distribute the events to their targets; ``targets`` has the target of each kind."""
    of_target: dict[int, list[int]] = {}
    for number, target in enumerate(targets.tolist()):
        of_target.setdefault(target, []).append(number)
    kind = events.kind
    # NumPy sorts 16-bit numbers by radix sort, in one pass for each digit.
    number_of_target = np.unique(targets, return_inverse=True)[1].astype(np.uint16)
    order = np.argsort(number_of_target[kind], kind="stable")
    counts = np.bincount(kind, minlength=len(targets))
    own = np.zeros(len(targets), np.int64)
    found: dict[int, RowEvents] = {}
    begin = 0
    for target in sorted(of_target):
        numbers = of_target[target]
        own[numbers] = np.arange(len(numbers))
        end = begin + int(counts[numbers].sum())
        part = events.at(order[begin:end])
        kinds = tuple(events.kinds[number] for number in numbers)
        found[target] = part.of_kinds(own[part.kind], kinds)
        begin = end
    return found


def _numbered(values: Integers) -> tuple[Integers, Integers]:
    """Return the different values in order, and for each value its index among them."""
    different = np.flatnonzero(np.bincount(values))
    index = np.zeros(int(different[-1]) + 1, np.int64)
    index[different] = np.arange(len(different))
    return different, index[values]


def _kind(table: RoutedTable) -> RowKind:
    return RowKind(table.slot.member, table.table_map)


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    """The limits of a segment, in bytes of all binlog events, and in returned row events.

    A segment ends at the first boundary after a ``target_`` limit; inside a transaction only after
    a ``max_`` limit. ``widest``: the largest factor for a segment with rows of many targets.
    """

    target_bytes: int = 4 << 20
    max_bytes: int = 16 << 20
    target_events: int = 20_000
    max_events: int = 80_000
    widest: int = 1

    def of_targets(self, targets: int) -> SegmentLimits:
        """Return the limits for rows of this many targets, so that each part is large enough."""
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


@shared
class SegmentBuilder(Structure):
    """Collects the content of a `Segment`. The caller counts ``bytes``.

    ``moved``: whether there is something to return: rows, a statement, or a boundary. The limits
    depend on the number of targets of the last segment's rows (`SegmentLimits`).
    """

    bytes: int
    timestamp: int
    moved: bool
    target_bytes: int
    max_bytes: int
    target_events: int
    max_events: int

    def __init__(self, limits: SegmentLimits) -> None:
        super().__init__()
        self.rows = RowColumns()
        self._narrowest = limits
        self._limit(limits)
        self._clear()

    def _limit(self, limits: SegmentLimits) -> None:
        self.target_bytes, self.max_bytes = limits.target_bytes, limits.max_bytes
        self.target_events, self.max_events = limits.target_events, limits.max_events

    def _clear(self) -> None:
        self.bytes = 0
        self.timestamp = 0
        self.moved = False
        self.statement: Statement | None = None
        self.caught_up = False

    def add(self, table: int, transaction: int, ordinal: int, event: memoryview) -> bool:
        """Add a row event; return True if the segment must end even inside a transaction.

        ``table`` is an index into the tables passed to `take`.
        """
        self.rows.add(event, table, transaction, ordinal)
        self.moved = True
        return self.bytes >= self.max_bytes or self.rows.count >= self.max_events

    def is_full(self) -> bool:
        """Return whether the segment should end at the boundary that was reached last."""
        return self.bytes >= self.target_bytes or self.rows.count >= self.target_events

    def discard(self, transaction: int) -> int:
        """Remove the row events of the last transaction; return their number."""
        return self.rows.discard(transaction)

    def take(self, end: SourcePosition, tables: TableRoutes, *, complete: bool) -> Segment:
        """Return the finished segment; the next one begins empty."""
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
        self._limit(self._narrowest.of_targets(len(segment.rows)))
        tables.number_anew()
        return segment
