"""Row events as columns: all their bytes in one buffer, with arrays that say where each begins and
what it is. So they go to an executor without an object for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from replicator.binlog.positions.position import begin_of
from replicator.binlog.segments.row_events import RowEvents
from replicator.kernels.compiled import Bytes, Integers, Truths
from replicator.kernels.gather import gather_pieces
from replicator.rows.decoder.event_spans import EventSpans
from replicator.watermark import Watermark


class RowPlace(NamedTuple):
    """Where the row event stands that a fault is about.

    ``transaction`` and ``ordinal`` as in a `replicator.watermark.Watermark`; ``event`` is the key
    of the position at which the event itself begins, 0 where it has none of its own, as in a
    compressed transaction. Without a ``member`` it is an event of the source at or before this
    one.
    """

    source: str
    member: str
    transaction: int
    ordinal: int
    event: int


@dataclass(frozen=True, slots=True)
class EventColumns:
    """What row events are, without their bytes: the same columns as those of `RawEvents`."""

    plan: Integers
    source: Integers
    version: Integers
    transaction: Integers
    ordinal: Integers

    def later_than(self, watermarks: Sequence[Watermark | None]) -> Truths:
        """Which events are behind the watermarks: one for each source, None for those of no event.

        They compare as watermarks do.
        """
        version, transaction, ordinal = (
            np.array([0 if mark is None else mark[part] for mark in watermarks], np.int64)[
                self.source
            ]
            for part in range(3)
        )
        same_transaction = (self.transaction == transaction) & (self.ordinal > ordinal)
        same_version = (self.transaction > transaction) | same_transaction
        later: Truths = (self.version > version) | (self.version == version) & same_version
        return later

    def before(self, transactions: Sequence[int]) -> Truths:
        """Which events are of a transaction before the one given for their source."""
        return self.transaction < np.array(transactions, np.int64)[self.source]


@dataclass(frozen=True, slots=True)
class RawEvents:
    """Row events in the order of arrival.

    Event i is ``data[start[i]:start[i + 1]]``; ``plan`` and ``source`` are indexes into those of
    the batch; ``version``, ``transaction`` and ``ordinal`` make its watermark.
    """

    data: Bytes
    start: Integers
    plan: Integers
    source: Integers
    version: Integers
    transaction: Integers
    ordinal: Integers

    def __len__(self) -> int:
        return len(self.plan)

    def where(self, chosen: Truths) -> RawEvents:
        """The events that are chosen, in their order."""
        places = np.flatnonzero(chosen)
        data, start = gather_pieces(self.data, self.start[places], self.start[places + 1])
        columns = (self.plan, self.source, self.version, self.transaction, self.ordinal)
        return RawEvents(data, start, *(column[places] for column in columns))

    def heads(self, indexes: Integers) -> EventColumns:
        """What some of the events are."""
        columns = (self.plan, self.source, self.version, self.transaction, self.ordinal)
        return EventColumns(*(column[indexes] for column in columns))

    def place(self, index: int, source: str, member: str) -> RowPlace:
        """The place of one of the events."""
        transaction = int(self.transaction[index])
        event = self.data[self.start[index] : self.start[index + 1]].tobytes()
        begin = begin_of(event, transaction)
        return RowPlace(source, member, transaction, int(self.ordinal[index]), begin)

    def spans(self, indexes: Integers) -> EventSpans:
        """Where some of the events are."""
        return EventSpans(self.data, self.start[indexes], self.start[indexes + 1])


def joined(parts: Sequence[RawEvents]) -> RawEvents:
    """The events of several parts, one part behind the other."""
    if len(parts) == 1:
        return parts[0]
    begins = np.cumsum([0, *(len(part.data) for part in parts)]).tolist()
    starts = [part.start[:-1] + begin for part, begin in zip(parts, begins, strict=False)]
    return RawEvents(
        np.concatenate([np.empty(0, np.uint8), *(part.data for part in parts)]),
        np.concatenate([*starts, np.array(begins[-1:], np.int64)]),
        *(
            np.concatenate([np.empty(0, np.int64), *(getattr(part, column) for part in parts)])
            for column in ("plan", "source", "version", "transaction", "ordinal")
        ),
    )


def of_part(rows: RowEvents, plans: Integers, source: int, version: int) -> RawEvents:
    """Row events of one source and one version; ``plans`` has the plan of each of their kinds."""
    return RawEvents(
        rows.data,
        rows.start,
        plans[rows.kind],
        np.full(len(rows), source, np.int64),
        np.full(len(rows), version, np.int64),
        rows.transaction,
        rows.ordinal,
    )
