"""The shards that a target may have rows of: also those whose tables are gone.

The registry notes every shard that joins a target. A shard whose table is dropped leaves its rows
on the target, so it stays an owner that has *ended*. The changes wait here until they are saved.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from replicator.mysql.names import Member, TableName


class OwnerEvent(StrEnum):
    """What happens to the rows that a target has of a shard."""

    HAS = "has"
    """The target may get rows of the shard."""
    ENDED = "ended"
    """The shard's table is gone, and its rows stay on the target."""
    RENAMED = "renamed"
    """The shard has another name, which owns its rows now."""
    EMPTIED = "emptied"
    """The target loses all rows. The change is of no shard."""
    MOVED = "moved"
    """The shard's target was renamed: ``to`` has the rows of the shards that have ended, too."""


@dataclass(frozen=True, slots=True)
class OwnerChange:
    """A change to be saved."""

    event: OwnerEvent
    target: TableName
    member: Member | None = None
    to: TableName | None = None


class RowOwners:
    """The owners of the rows of all targets, as far as they are not saved. Thread-safe."""

    def __init__(self) -> None:
        self._known: set[tuple[Member, TableName]] = set()
        self._unsaved: list[OwnerChange] = []
        self._lock = threading.Lock()

    def has(self, member: Member, target: TableName) -> None:
        """Note that a target may get rows of a shard."""
        if target.table and member.name.table and (member, target) not in self._known:
            with self._lock:
                self._known.add((member, target))
                self._unsaved.append(OwnerChange(OwnerEvent.HAS, target, member))

    def ended(self, member: Member, target: TableName) -> None:
        """Note that a shard's table is gone, whose rows the target keeps."""
        if target.table and member.name.table:
            with self._lock:
                self._known.add((member, target))
                self._unsaved.append(OwnerChange(OwnerEvent.ENDED, target, member))

    def renamed(self, old: Member, target: TableName) -> None:
        """Note that another name owns the rows of a shard."""
        with self._lock:
            self._known.discard((old, target))
            self._unsaved.append(OwnerChange(OwnerEvent.RENAMED, target, old))

    def emptied(self, target: TableName) -> None:
        """Note that a target loses all rows."""
        with self._lock:
            self._unsaved.append(OwnerChange(OwnerEvent.EMPTIED, target))

    def moved(self, origin: Member, former: TableName, target: TableName) -> None:
        """Note that a target, ``former`` before, was renamed together with its shard ``origin``."""
        with self._lock:
            self._unsaved.append(OwnerChange(OwnerEvent.MOVED, former, origin, target))

    @property
    def unsaved(self) -> Sequence[OwnerChange]:
        """The changes that are not saved, in their order."""
        with self._lock:
            return tuple(self._unsaved)

    def is_unsaved(self, target: TableName) -> bool:
        """Whether an unsaved change concerns the rows of a target."""
        with self._lock:
            return any(target in (change.target, change.to) for change in self._unsaved)

    def saved(self, count: int) -> None:
        """Drop the first ``count`` of the unsaved changes."""
        with self._lock:
            del self._unsaved[:count]
