"""The shards that a target may have rows of, including shards whose tables are gone.

The registry records every shard that joins a target. A shard whose table is dropped leaves its rows
on the target, so it remains an owner, but an *ended* one. Changes are kept here until they are
saved.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from replicator.mysql.names import Member, TableName


class OwnerEvent(StrEnum):
    """A change to the rows that a target has of a shard."""

    HAS = "has"
    """The target may get rows of the shard."""
    ENDED = "ended"
    """The shard's table is gone, but the target keeps its rows."""
    RENAMED = "renamed"
    """The shard was renamed, and its new name owns the rows."""
    EMPTIED = "emptied"
    """The target loses all rows; no shard is named."""
    MOVED = "moved"
    """The shard's target was renamed to ``to``, which also has the rows of ended shards."""


@dataclass(frozen=True, slots=True)
class OwnerChange:
    """A change that has to be saved."""

    event: OwnerEvent
    target: TableName
    member: Member | None = None
    to: TableName | None = None


class RowOwners:
    """The unsaved changes of the owners of all targets' rows. Thread-safe."""

    def __init__(self) -> None:
        self._known: set[tuple[Member, TableName]] = set()
        self._unsaved: list[OwnerChange] = []
        self._lock = threading.Lock()

    def has(self, member: Member, target: TableName) -> None:
        """Record that a target may get rows of a shard."""
        if target.table and member.name.table and (member, target) not in self._known:
            with self._lock:
                self._known.add((member, target))
                self._unsaved.append(OwnerChange(OwnerEvent.HAS, target, member))

    def ended(self, member: Member, target: TableName) -> None:
        """Record that a shard's table is gone but the target keeps its rows."""
        if target.table and member.name.table:
            with self._lock:
                self._known.add((member, target))
                self._unsaved.append(OwnerChange(OwnerEvent.ENDED, target, member))

    def renamed(self, old: Member, target: TableName) -> None:
        """Record that another name owns the rows of a shard."""
        with self._lock:
            self._known.discard((old, target))
            self._unsaved.append(OwnerChange(OwnerEvent.RENAMED, target, old))

    def emptied(self, target: TableName) -> None:
        """Record that a target loses all rows."""
        with self._lock:
            self._unsaved.append(OwnerChange(OwnerEvent.EMPTIED, target))

    def moved(self, origin: Member, former: TableName, target: TableName) -> None:
        """Record that the target ``former`` was renamed to ``target`` with its shard ``origin``."""
        with self._lock:
            self._unsaved.append(OwnerChange(OwnerEvent.MOVED, former, origin, target))

    @property
    def unsaved(self) -> Sequence[OwnerChange]:
        """The unsaved changes, in their order."""
        with self._lock:
            return tuple(self._unsaved)

    def is_unsaved(self, target: TableName) -> bool:
        """Return whether an unsaved change concerns the rows of a target."""
        with self._lock:
            return any(target in (change.target, change.to) for change in self._unsaved)

    def saved(self, count: int) -> None:
        """Drop the first `count` unsaved changes."""
        with self._lock:
            del self._unsaved[:count]
