"""Row events as columns: all their bytes in one buffer, with arrays that say where each begins and
what it is. So they go to an executor without an object for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from replicator.pipeline.batch import Batch
from replicator.rows.compiled import Bytes, Integers, Truths
from replicator.rows.event_spans import EventSpans
from replicator.watermark import Watermark


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

    def spans(self, indexes: Integers) -> EventSpans:
        """Where some of the events are."""
        return EventSpans(self.data, self.start[indexes], self.start[indexes + 1])


def raw_events(batch: Batch, plans: frozenset[int] | None = None) -> RawEvents:
    """The events of a batch, or those of some of its plans."""
    if plans is None:
        at: Sequence[int] = range(len(batch))
        events = batch.event
    else:
        at = [index for index, plan in enumerate(batch.plan) if plan in plans]
        events = [batch.event[index] for index in at]
    start = np.zeros(len(at) + 1, np.int64)
    np.cumsum([len(event) for event in events], out=start[1:])

    def of_these(values: list[int]) -> list[int]:
        return values if plans is None else [values[index] for index in at]

    return RawEvents(
        np.frombuffer(b"".join(events), np.uint8),
        start,
        np.array(of_these(batch.plan), np.int64),
        np.array(of_these(batch.source), np.int64),
        np.array(of_these(batch.version), np.int64),
        np.array(of_these(batch.transaction), np.int64),
        np.array(of_these(batch.ordinal), np.int64),
    )
