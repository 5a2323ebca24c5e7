"""Row events as columns: their bytes in one buffer, with arrays of their bounds and properties.

There is no Python object for each event. The reader of a binlog passes this table to the task that
decodes its rows. Choosing some events copies none of their bytes; only `joined` copies, to send
several tables as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from replicator.binlog.events.table_map import TableMap
from replicator.binlog.positions.position import begin_of
from replicator.kernels.compiled import Bytes, Integers, Truths
from replicator.kernels.gather import copy_pieces, gather_pieces
from replicator.watermark import Place

OWN_ROWS = -1
"""The `RowKind.parent` of a table's own rows."""


class RowKind(NamedTuple):
    """The properties that row events share if they are read alike.

    Attributes:
        member: the member whose rows the events change.
        table_map: the table map of the events.
        parent: `OWN_ROWS`, or the member to which the events belong, if they may change rows of
            ``member`` by foreign keys.
    """

    member: int
    table_map: TableMap
    parent: int = OWN_ROWS


@dataclass(frozen=True, eq=False)
class RowEvents:
    """Row events of one source in binlog order.

    Event i is ``data[begin[i]:end[i]]``: a complete event as the server sent it, including its
    19-byte header, without its checksum; a compressed event is left compressed. There may be other
    bytes between events. ``kind`` is an index into ``kinds``, which may include kinds without
    events. In a batch, which has no ``kinds``, it is the number of the event's plan.
    ``transaction`` and ``ordinal`` are as in `replicator.watermark.Watermark`.
    """

    data: Bytes
    begin: Integers
    end: Integers
    kind: Integers
    transaction: Integers
    ordinal: Integers
    kinds: tuple[RowKind, ...] = ()

    def __len__(self) -> int:
        return len(self.ordinal)

    @property
    def size(self) -> int:
        """The bytes of all events together."""
        return int(self.end.sum() - self.begin.sum())

    @property
    def first(self) -> Place:
        """The place of the first event."""
        return Place(int(self.transaction[0]), int(self.ordinal[0]))

    @property
    def last(self) -> Place:
        """The place of the last event."""
        return Place(int(self.transaction[-1]), int(self.ordinal[-1]))

    @cached_property
    def firsts(self) -> dict[int, int]:
        """The index of the first event of each kind that has events, by the index of the kind."""
        firsts = np.full(len(self.kinds), -1, np.int64)
        # NumPy keeps the last of several values for one index.
        firsts[self.kind[::-1]] = np.arange(len(self) - 1, -1, -1)
        return {kind: first for kind, first in enumerate(firsts.tolist()) if first >= 0}

    @property
    def members(self) -> dict[int, int]:
        """The number of events of each member that has any."""
        found: dict[int, int] = {}
        counts = np.bincount(self.kind, minlength=len(self.kinds)).tolist()
        for kind, count in zip(self.kinds, counts, strict=True):
            if count:
                found[kind.member] = found.get(kind.member, 0) + count
        return found

    def up_to(self, place: Place) -> int:
        """Return the number of events at or before a place."""
        transaction, ordinal = place
        ends = np.searchsorted(self.transaction, [transaction, transaction + 1])
        begin, end = int(ends[0]), int(ends[1])
        return begin + int(np.searchsorted(self.ordinal[begin:end], ordinal, side="right"))

    def begin_key(self, index: int) -> int:
        """Return the key of an event's beginning; 0 if it has no position of its own."""
        event = self.data[self.begin[index] : self.end[index]].tobytes()
        return begin_of(event, int(self.transaction[index]))

    def between(self, begin: int, end: int) -> RowEvents:
        """Return the events from one index to another."""
        return self if (begin, end) == (0, len(self)) else self._part(slice(begin, end))

    def where(self, chosen: Truths) -> RowEvents | None:
        """Return the chosen events, in their order; None if there are none."""
        places = np.flatnonzero(chosen)
        if len(places) == len(self):
            return self
        return self.at(places) if len(places) else None

    def at(self, indexes: Integers) -> RowEvents:
        """Return the events with these indexes."""
        if len(indexes) == len(self) and np.array_equal(indexes, np.arange(len(self))):
            return self
        return self._part(indexes)

    def _part(self, chosen: Integers | slice) -> RowEvents:
        return RowEvents(
            self.data,
            self.begin[chosen],
            self.end[chosen],
            self.kind[chosen],
            self.transaction[chosen],
            self.ordinal[chosen],
            self.kinds,
        )

    def of_plans(self, plans: Integers) -> RowEvents:
        """Return the events in the form for a batch; ``plans``: by kind, the number of the plan."""
        return self.of_kinds(plans[self.kind], ())

    def of_kinds(self, kind: Integers, kinds: tuple[RowKind, ...]) -> RowEvents:
        """Return the events with other numbers of kinds."""
        return RowEvents(
            self.data, self.begin, self.end, kind, self.transaction, self.ordinal, kinds
        )

    def split(self) -> list[bytes]:
        """Return the events one by one."""
        data = self.data.data
        spans = zip(self.begin.tolist(), self.end.tolist(), strict=True)
        return [bytes(data[begin:end]) for begin, end in spans]

    def gathered(self) -> RowEvents:
        """Return the same events with nothing between them."""
        if len(self.data) == self.size:
            return self
        data, starts = gather_pieces(self.data, self.begin, self.end)
        return replace(self, data=data, begin=starts[:-1], end=starts[1:])


def merged(tables: Sequence[RowEvents]) -> RowEvents:
    """Return the events of several tables in sequence, with common kinds.

    No structure changes between the tables, so events of equal kinds are read alike.
    """
    kinds: dict[RowKind, int] = {}
    numbered = []
    for table in tables:
        numbers = [kinds.setdefault(kind, len(kinds)) for kind in table.kinds]
        numbered.append(table.of_kinds(np.array(numbers, np.int64)[table.kind], ()))
    return replace(joined(numbered), kinds=tuple(kinds))


def chained(tables: Sequence[RowEvents]) -> RowEvents:
    """Return the events of several tables in sequence, with separate kinds.

    The structure of a member may change between two tables.
    """
    if len(tables) == 1:
        return tables[0]
    kinds: list[RowKind] = []
    numbered = []
    for table in tables:
        numbered.append(table.of_kinds(table.kind + len(kinds), ()))
        kinds += table.kinds
    return replace(joined(numbered), kinds=tuple(kinds))


def joined(tables: Sequence[RowEvents]) -> RowEvents:
    """Return the events of several tables of a batch in sequence, with nothing between them."""
    if len(tables) == 1:
        return tables[0].gathered()
    sizes = np.concatenate([np.zeros(1, np.int64), *(table.end - table.begin for table in tables)])
    starts = np.cumsum(sizes)
    data = np.empty(int(starts[-1]), np.uint8)
    at = 0
    for table in tables:
        copy_pieces(table.data, table.begin, starts[at : at + len(table) + 1], data)
        at += len(table)
    kind, transaction, ordinal = (
        np.concatenate([np.empty(0, np.int64), *(getattr(table, name) for table in tables)])
        for name in ("kind", "transaction", "ordinal")
    )
    return RowEvents(data, starts[:-1], starts[1:], kind, transaction, ordinal)
