"""Open locks in the form for the operator, and why one can't be unlocked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic

from replicator.sharding.items import Conflict, Event, Item, Name


@dataclass(frozen=True, slots=True)
class LockView(Generic[Name, Event]):
    """An open lock in the form for the operator.

    Attributes:
        missing: members without the item, by source.
        outside: shards of sources that the task does not have, whose rows the statement would
            remove.
    """

    target: Name
    version: int
    item: Item[Name, Event]
    owner: str | None
    ready: tuple[str, ...]
    missing: Mapping[str, tuple[Name, ...]]
    rows_held: int
    conflict: Conflict[Name, Event] | None
    resolving: bool
    choices: tuple[Choice[Name, Event], ...] = ()
    outside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice(Generic[Name, Event]):
    """One of several different statements that members have as the next item of a target.

    Attributes:
        item: the statement of a member of `source`.
        members: the members with the same statement, by source.
        by_member: whether other members of `source` differ, so that the source does not identify
            the statement.
    """

    source: str
    item: Item[Name, Event]
    members: Mapping[str, tuple[Name, ...]]
    by_member: bool


class UnlockError(Exception):
    """The lock cannot be unlocked as requested; the message gives the reason and the remedy."""


class DisputedError(UnlockError):
    """Members have different statements, and the operator has not named the one to execute."""
