"""Held rows in memory, which allow a lock to be resolved without a restart of its sources.

For each version, a buffer has the rows that a restarted source would read again: all rows of this
run, in the order of the binlog. If it can't keep them all, it gives up this version and all later
ones, and the source restarts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Part = TypeVar("Part")


class HoldBudget:
    """The number of bytes that all buffers of a task may use together.

    Above the limit, the largest buffer gives up its newest version. So the version that is released
    next is kept, and a long-lived lock takes no memory from short-lived ones.
    """

    def __init__(self, limit: int = sys.maxsize) -> None:
        self._limit = limit
        self._buffers: list[HoldBuffer[Any]] = []
        self._used = 0

    def register(self, buffer: HoldBuffer[Any]) -> None:
        """Add an empty buffer."""
        self._buffers.append(buffer)

    def remove(self, buffer: HoldBuffer[Any]) -> None:
        """Remove a buffer."""
        self._used -= buffer.size
        self._buffers.remove(buffer)

    def count(self, size: int) -> None:
        """Add bytes, which may be negative; give up versions while the limit is exceeded."""
        self._used += size
        while self._used > self._limit:
            max(self._buffers, key=lambda buffer: buffer.size).give_up_newest()


@dataclass(frozen=True, slots=True)
class HeldPart(Generic[Part]):
    """Some held rows of one version.

    Attributes:
        count: number of rows.
        size: bytes of the rows.
        section: parts of the same section have no statement between them and may be joined.
    """

    rows: Part
    count: int
    size: int
    section: int = 0


class HoldBuffer(Generic[Part]):
    """The held rows of one group, by version.

    `joined`: joins the rows of two parts, so that many small parts need no more memory than few.
    """

    def __init__(
        self, budget: HoldBudget, joined: Callable[[Part, Part], Part] | None = None
    ) -> None:
        self.size = 0
        self._lost: int | None = None
        self._budget = budget
        self._joined = joined
        self._parts: dict[int, list[HeldPart[Part]]] = {}
        budget.register(self)

    def add(self, version: int, part: HeldPart[Part]) -> None:
        """Add rows of a version, which follow all rows of it that were added before."""
        if self.has_lost(version):
            return
        parts = self._parts.setdefault(version, [])
        parts.append(part)
        while self._joined and len(parts) > 1 and _may_join(*parts[-2:]):
            last, before = parts.pop(), parts.pop()
            rows = self._joined(before.rows, last.rows)
            count, size = before.count + last.count, before.size + last.size
            parts.append(HeldPart(rows, count, size, last.section))
        self._count(part.size)

    def has_lost(self, version: int) -> bool:
        """Return whether rows of a version were given up; keeping further rows is useless."""
        return self._lost is not None and version >= self._lost

    def count_of(self, version: int) -> int:
        """Return the number of rows of a version."""
        return sum(part.count for part in self._parts.get(version, ()))

    def size_of(self, version: int) -> int:
        """Return the bytes of a version's rows."""
        return sum(part.size for part in self._parts.get(version, ()))

    def take(self, version: int) -> list[Part]:
        """Remove and return the rows of a version."""
        parts = self._parts.pop(version, [])
        self._count(-sum(part.size for part in parts))
        return [part.rows for part in parts]

    def drop(self) -> None:
        """Give up all versions with rows."""
        if self._parts:
            self.drop_from(min(self._parts))

    def give_up_newest(self) -> None:
        """Give up the newest version with rows."""
        self.drop_from(max(self._parts))

    def drop_from(self, version: int) -> None:
        """Give up a version and all later ones."""
        self._lost = version if self._lost is None else min(version, self._lost)
        for later in [held for held in self._parts if held >= version]:
            self.take(later)

    def _count(self, size: int) -> None:
        self.size += size
        self._budget.count(size)


def _may_join(before: HeldPart[Any], last: HeldPart[Any]) -> bool:
    """Return whether to join two parts: each row is copied only when the size has doubled."""
    return before.section == last.section and before.size <= 2 * last.size
