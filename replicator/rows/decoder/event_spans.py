"""Row events where they lie: the bytes of many in one buffer, and where each begins and ends."""

from __future__ import annotations

from dataclasses import dataclass

from replicator.kernels.compiled import Bytes, Integers
from replicator.kernels.gather import gather_pieces


@dataclass(frozen=True, slots=True)
class EventSpans:
    """Whole events, from their 19-byte headers on, without checksums.

    Event i is ``data[begins[i]:ends[i]]``; there may be other bytes between them.
    """

    data: Bytes
    begins: Integers
    ends: Integers

    def __len__(self) -> int:
        return len(self.begins)

    def one(self, index: int) -> EventSpans:
        """One of the events."""
        return EventSpans(self.data, self.begins[index : index + 1], self.ends[index : index + 1])

    def split(self) -> list[bytes]:
        """The events one by one."""
        data = self.data.data
        spans = zip(self.begins.tolist(), self.ends.tolist(), strict=True)
        return [bytes(data[begin:end]) for begin, end in spans]

    def gathered(self) -> EventSpans:
        """The same events with nothing between them."""
        data, starts = gather_pieces(self.data, self.begins, self.ends)
        return EventSpans(data, starts[:-1], starts[1:])
