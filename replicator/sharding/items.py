"""What the version rule speaks of: positions, items, cutovers, states. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from replicator.watermark import Place

Event = TypeVar("Event")
"""What whoever records an item needs to execute it. The rule never looks into it."""


class Decision(StrEnum):
    """What happens to a row event, by its version against its target's."""

    APPLY = "apply"
    """Equal: the structure fits. (Rows not after the target's watermark are left out later.)"""
    HOLD = "hold"
    """Greater: the target has not got this DDL yet. Nothing is kept, the row is read again."""
    SKIP = "skip"
    """Smaller: a DDL is executed only after every row of the older version was applied."""


@dataclass(frozen=True, slots=True)
class Item(Generic[Event]):
    """One DDL event of a member, as routed to the target.

    ``text`` is the normalised statement, by which items are compared; ``statements`` what would
    be executed on the target. ``event`` is where it comes from, and lives as long as the item.
    """

    text: str
    statements: tuple[str, ...]
    member: str
    at: Place
    event: Event = field(compare=False)


@dataclass(frozen=True, slots=True)
class ResolvedItem:
    """An item that was resolved on the target: part of its history.

    ``unlocked``: by the operator, so that members may differ from it; ``skipped``: not executed.
    """

    text: str
    unlocked: bool = False
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class MemberState:
    """A member at a position of its source.

    ``version`` is how many items it has. ``since`` is the place of the statement that gave it the
    structure it has: with the name it identifies the structure for ever. ``awaited`` are the
    items that an unlock gave it and its own DDL has not brought yet.
    """

    version: int
    since: Place
    awaited: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group at a position of its source. No member's version is below ``base``."""

    base: int
    members: tuple[tuple[str, MemberState], ...]


@dataclass(frozen=True, slots=True)
class Cutover:
    """Where a target's change of version stands in one source's binlog.

    After ``at``, no member of the group has less than ``version`` items: either each has recorded
    them, or (``forced``) an unlock gives them to those that have not. A cutover is saved before the
    item is executed, so that each reading gives each row the same version.
    """

    version: int
    at: Place
    forced: bool = False


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a member's DDL was taken as.

    It is the member's item number ``version``; ``awaited`` where an unlock had given the member
    this item already, so that its version does not change.
    """

    version: int
    awaited: bool


@dataclass(frozen=True, slots=True)
class Claim(Generic[Event]):
    """What one member of a source brought as items, from the one that is disputed."""

    source: str
    items: tuple[Item[Event], ...]


@dataclass(frozen=True, slots=True)
class Conflict(Generic[Event]):
    """Two members brought different statements as the same item of a target.

    The sequences of both are there in full: where one is the other in a different order, this
    shows it.
    """

    version: int
    ours: Claim[Event]
    theirs: Claim[Event]


class HistoryError(Exception):
    """A member's item differs from the one that was executed on the target at its number."""

    def __init__(
        self, source: str, target: str, version: int, item: Item[Any], resolved: ResolvedItem
    ) -> None:
        super().__init__(
            f"source {source}, {item.member}: its DDL number {version} is {item.text!r}, but number"
            f" {version} of the target {target} was {resolved.text!r} and is executed already"
        )
        self.source = source
        self.target = target
        self.version = version
        self.item = item
        self.resolved = resolved
