"""Row events as columns: all their bytes in one buffer, with arrays that say where each begins and
what it is. So they go to an executor without an object for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from replicator.pipeline.batch import Batch


@dataclass(frozen=True, slots=True)
class RawEvents:
    """Row events in the order of arrival.

    Event i is ``data[start[i]:start[i + 1]]``; ``plan`` and ``source`` are indexes into those of
    the batch; ``version``, ``transaction`` and ``ordinal`` make its watermark.
    """

    data: npt.NDArray[np.uint8]
    start: npt.NDArray[np.int64]
    plan: npt.NDArray[np.int32]
    source: npt.NDArray[np.int32]
    version: npt.NDArray[np.int32]
    transaction: npt.NDArray[np.int64]
    ordinal: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.plan)

    def as_bytes(self, indexes: Sequence[int]) -> list[bytes]:
        """Some of the events, one by one."""
        data, start = self.data.data, self.start.tolist()
        return [bytes(data[start[i] : start[i + 1]]) for i in indexes]


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
        np.array(of_these(batch.plan), np.int32),
        np.array(of_these(batch.source), np.int32),
        np.array(of_these(batch.version), np.int32),
        np.array(of_these(batch.transaction), np.int64),
        np.array(of_these(batch.ordinal), np.int64),
    )
