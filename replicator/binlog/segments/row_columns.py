"""Row events of all targets while a segment is being filled: columns that grow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from replicator.binlog.segments.row_events import RowEvents, RowKind
from replicator.binlog.segments.table_routes import RoutedTable
from replicator.kernels.compiled import Bytes, Integers
from replicator.kernels.gather import gather_pieces

_FIRST_BYTES = 1 << 16
_FIRST_EVENTS = 1 << 9
_MOST_BYTES = 1 << 24
_MOST_EVENTS = 1 << 17
"""Beyond these, columns are made anew when their content was taken."""

TABLE, TRANSACTION, ORDINAL = range(3)
"""The rows of `RowColumns.heads`. A table is an index into those that are given to `take`."""


class RowColumns:
    """Room for row events, filled from the beginning: ``count`` events of ``bytes`` bytes.

    Event i is ``data[start[i]:start[i + 1]]``.
    """

    __slots__ = ("bytes", "count", "data", "heads", "start")

    def __init__(self) -> None:
        self._make()

    def _make(self) -> None:
        self.count = self.bytes = 0
        self.data: Bytes = np.empty(_FIRST_BYTES, np.uint8)
        self.start: Integers = np.zeros(_FIRST_EVENTS + 1, np.int64)
        self.heads: Integers = np.empty((3, _FIRST_EVENTS), np.int64)

    def reserve(self, size: int, events: int) -> None:
        """Make room for so many more bytes and events."""
        needed = self.bytes + size
        if needed > len(self.data):
            # What is larger than all that is usual gets what it needs and no more.
            room = needed if needed > _MOST_BYTES else max(needed, 2 * len(self.data))
            data = np.empty(room, np.uint8)
            data[: self.bytes] = self.data[: self.bytes]
            self.data = data
        if self.count + events >= len(self.start):
            room = max(self.count + events, 2 * len(self.start))
            start, heads = np.zeros(room + 1, np.int64), np.empty((3, room), np.int64)
            start[: self.count + 1] = self.start[: self.count + 1]
            heads[:, : self.count] = self.heads[:, : self.count]
            self.start, self.heads = start, heads

    def add(self, event: bytes | memoryview, table: int, transaction: int, ordinal: int) -> None:
        """Take in one event."""
        self.reserve(len(event), 1)
        end = self.bytes + len(event)
        self.data.data[self.bytes : end] = event
        heads, count = self.heads, self.count
        heads[TABLE, count] = table
        heads[TRANSACTION, count] = transaction
        heads[ORDINAL, count] = ordinal
        self.bytes, self.count = end, self.count + 1
        self.start[self.count] = end

    def discard(self, transaction: int) -> int:
        """Take back the events of the last transaction; returns how many there were."""
        before = np.flatnonzero(self.heads[TRANSACTION, : self.count] != transaction)
        kept = int(before[-1]) + 1 if len(before) else 0
        dropped, self.count = self.count - kept, kept
        self.bytes = int(self.start[kept])
        return dropped

    def take(self, tables: Sequence[RoutedTable]) -> dict[int, RowEvents]:
        """The events by the number of their target; then there are none."""
        count = self.count
        if not count:
            return {}
        numbers, kind = _numbered(self.heads[TABLE, :count])
        used = [tables[number] for number in numbers.tolist()]
        targets = np.array([table.slot.target for table in used], np.int64)
        found = (
            {int(targets[0]): self._all(used, kind)}
            if (targets == targets[0]).all()
            else self._dealt(used, targets, kind)
        )
        if len(self.data) > _MOST_BYTES or len(self.start) > _MOST_EVENTS:
            self._make()
        self.count = self.bytes = 0
        return found

    def _all(self, used: Sequence[RoutedTable], kind: Integers) -> RowEvents:
        """The events, all of one target."""
        data = self.data[: self.bytes]
        return RowEvents(
            data if len(self.data) > _MOST_BYTES else data.copy(),
            self.start[: self.count + 1].copy(),
            kind,
            self.heads[TRANSACTION, : self.count].copy(),
            self.heads[ORDINAL, : self.count].copy(),
            tuple(map(_kind, used)),
        )

    def _dealt(
        self, used: Sequence[RoutedTable], targets: Integers, kind: Integers
    ) -> dict[int, RowEvents]:
        """The events, dealt out to their targets."""
        of_target: dict[int, list[int]] = {}
        for number, target in enumerate(targets.tolist()):
            of_target.setdefault(target, []).append(number)
        # Numbers of 16 bits are sorted by their digits, in one pass over them for each.
        number_of_target = np.unique(targets, return_inverse=True)[1].astype(np.uint16)
        order = np.argsort(number_of_target[kind], kind="stable")
        counts = np.bincount(kind, minlength=len(used))
        own = np.zeros(len(used), np.int64)
        found: dict[int, RowEvents] = {}
        begin = 0
        for target in sorted(of_target):
            numbers = of_target[target]
            own[numbers] = np.arange(len(numbers))
            end = begin + int(counts[numbers].sum())
            places = order[begin:end]
            data, start = gather_pieces(self.data, self.start[places], self.start[places + 1])
            found[target] = RowEvents(
                data,
                start,
                own[kind[places]],
                self.heads[TRANSACTION, places],
                self.heads[ORDINAL, places],
                tuple(_kind(used[number]) for number in numbers),
            )
            begin = end
        return found


def _numbered(values: Integers) -> tuple[Integers, Integers]:
    """The different values, in order, and for each of ``values`` its index among them."""
    different = np.flatnonzero(np.bincount(values))
    index = np.zeros(int(different[-1]) + 1, np.int64)
    index[different] = np.arange(len(different))
    return different, index[values]


def _kind(table: RoutedTable) -> RowKind:
    return RowKind(table.slot.member, table.table_map)
