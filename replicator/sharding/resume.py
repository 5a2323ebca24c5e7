"""The position to save for a source: after the applied rows, before every open item."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass
from typing import Generic, TypeVar

from replicator.watermark import Place, boundary

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Boundary(Generic[State]):
    """A transaction boundary of a source, and the state of all its groups there.

    ``key`` is that of the position; the transaction that begins there comes after it.
    """

    key: int
    state: State


class Resume(Generic[State]):
    """The boundaries of one source that may still become its saved position."""

    def __init__(self, start: Boundary[State]) -> None:
        self._boundaries = [start]

    def applied(self, reached: Boundary[State], open_items: Collection[Place]) -> None:
        """Record that everything before this boundary is applied.

        The state must be the one at the boundary itself: the end of a segment that was cut inside
        a transaction is none. ``open_items`` are those of all groups (`Group.open_items`):
        boundaries that none of them needs are forgotten.
        """
        last = self._boundaries[-1]
        assert reached.key >= last.key, f"{reached.key} is applied after {last.key}"
        if reached.key == last.key:
            return
        known = [*self._boundaries, reached]
        needed = {len(known) - 1, *(_before(known, at) for at in open_items)}
        self._boundaries = [known[index] for index in sorted(needed)]

    def boundary(self, open_items: Collection[Place]) -> Boundary[State]:
        """The boundary to save: the last applied one that precedes every open item."""
        last = len(self._boundaries) - 1
        return self._boundaries[min([last, *(_before(self._boundaries, at) for at in open_items)])]


def _before(boundaries: list[Boundary[State]], at: Place) -> int:
    """The index of the last boundary before a position."""
    earlier = bisect_right(boundaries, at, key=lambda found: boundary(found.key))
    assert earlier, f"saved behind the open item at {at}"
    return earlier - 1
