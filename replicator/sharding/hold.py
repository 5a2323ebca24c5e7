"""Held rows in memory: a lock that is resolved then needs no restart of its sources.

What a buffer has of a version is what a restarted source would read of it again: all rows that this
run has read, in the order of the binlog. If it can't keep that, it gives up the version and all
later ones, and the source restarts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Part = TypeVar("Part")


class HoldBudget:
    """The bytes that all buffers of a task may have.

    Above it, the largest buffer gives up its newest version: the version that is released next
    stays, and a lock that is open for long takes no memory from short ones.
    """

    def __init__(self, limit: int = sys.maxsize) -> None:
        self._limit = limit
        self._buffers: list[HoldBuffer[Any]] = []
        self._used = 0

    def register(self, buffer: HoldBuffer[Any]) -> None:
        """Count a buffer, which is empty."""
        self._buffers.append(buffer)

    def remove(self, buffer: HoldBuffer[Any]) -> None:
        """Count a buffer no longer."""
        self._used -= buffer.size
        self._buffers.remove(buffer)

    def count(self, size: int) -> None:
        """Count more bytes, or fewer, and have given up what there is no room for."""
        self._used += size
        while self._used > self._limit:
            max(self._buffers, key=lambda buffer: buffer.size).give_up_newest()


@dataclass(frozen=True, slots=True)
class HeldPart(Generic[Part]):
    """Held rows of one version: how many, of how many bytes. ``section``: parts of the same section
    have no statement between them, and may be joined."""

    rows: Part
    count: int
    size: int
    section: int = 0


class HoldBuffer(Generic[Part]):
    """The held rows of one group, by version.

    Args:
        joined: joins the rows of two parts, so that many small ones take no more room than few.
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
        """Add rows of a version, which come after all rows that it has of it."""
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
        """Whether rows of a version are missing, and more of them are no use."""
        return self._lost is not None and version >= self._lost

    def count_of(self, version: int) -> int:
        """Return how many rows it has of a version."""
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
        """Give up a version, and all later ones."""
        self._lost = version if self._lost is None else min(version, self._lost)
        for later in [held for held in self._parts if held >= version]:
            self.take(later)

    def _count(self, size: int) -> None:
        self.size += size
        self._budget.count(size)


def _may_join(before: HeldPart[Any], last: HeldPart[Any]) -> bool:
    """Whether to join two parts: each row is copied only as often as the size doubles."""
    return before.section == last.section and before.size <= 2 * last.size
