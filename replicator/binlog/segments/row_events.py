"""Row events as columns: all their bytes in one buffer, with arrays that say where each begins and
what it is. There is no Python object for each event."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from replicator.binlog.events.table_map import TableMap
from replicator.kernels.compiled import Bytes, Integers, Truths
from replicator.kernels.gather import gather_pieces
from replicator.watermark import Place


class RowKind(NamedTuple):
    """What row events that are read alike have in common: their member, and their table map."""

    member: int
    table_map: TableMap


@dataclass(frozen=True, eq=False)
class RowEvents:
    """Row events for one target, in binlog order.

    Event i is ``data[start[i]:start[i + 1]]``: a whole event as the server sent it, from the
    19-byte header on, without its checksum; a compressed one is left compressed. ``kind`` is an
    index into ``kinds``, of which some may have no event. ``transaction`` and ``ordinal`` are
    those of `replicator.watermark.Watermark`.
    """

    data: Bytes
    start: Integers
    kind: Integers
    transaction: Integers
    ordinal: Integers
    kinds: tuple[RowKind, ...]

    def __len__(self) -> int:
        return len(self.ordinal)

    @property
    def first(self) -> Place:
        """Where the first event stands."""
        return Place(int(self.transaction[0]), int(self.ordinal[0]))

    @property
    def last(self) -> Place:
        """Where the last event stands."""
        return Place(int(self.transaction[-1]), int(self.ordinal[-1]))

    @cached_property
    def firsts(self) -> dict[int, int]:
        """The index of the first event of each kind that has one, by the index of the kind."""
        firsts = np.full(len(self.kinds), -1, np.int64)
        # Of several values for one place the last is kept.
        firsts[self.kind[::-1]] = np.arange(len(self) - 1, -1, -1)
        return {kind: first for kind, first in enumerate(firsts.tolist()) if first >= 0}

    @property
    def members(self) -> dict[int, int]:
        """How many events each member has; none without any."""
        found: dict[int, int] = {}
        counts = np.bincount(self.kind, minlength=len(self.kinds)).tolist()
        for kind, count in zip(self.kinds, counts, strict=True):
            if count:
                found[kind.member] = found.get(kind.member, 0) + count
        return found

    def up_to(self, place: Place) -> int:
        """How many events stand at or before a place."""
        transaction, ordinal = place
        ends = np.searchsorted(self.transaction, [transaction, transaction + 1])
        begin, end = int(ends[0]), int(ends[1])
        return begin + int(np.searchsorted(self.ordinal[begin:end], ordinal, side="right"))

    def between(self, begin: int, end: int) -> RowEvents:
        """The events from one index to another."""
        if (begin, end) == (0, len(self)):
            return self
        start = self.start[begin : end + 1]
        return RowEvents(
            self.data[start[0] : start[-1]],
            start - start[0],
            self.kind[begin:end],
            self.transaction[begin:end],
            self.ordinal[begin:end],
            self.kinds,
        )

    def where(self, chosen: Truths) -> RowEvents | None:
        """The events that are chosen, in their order; None where there is none."""
        places = np.flatnonzero(chosen)
        if len(places) == len(self):
            return self
        if not len(places):
            return None
        data, start = gather_pieces(self.data, self.start[places], self.start[places + 1])
        return RowEvents(
            data,
            start,
            self.kind[places],
            self.transaction[places],
            self.ordinal[places],
            self.kinds,
        )
