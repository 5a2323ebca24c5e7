"""Open locks as the operator sees them, and why one can't be unlocked. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic

from replicator.sharding.items import Conflict, Event, Item, Name


@dataclass(frozen=True, slots=True)
class LockView(Generic[Name, Event]):
    """An open lock as the operator sees it. ``missing``: members by source. ``outside``: shards of
    sources that the task does not have, whose rows the statement would remove.
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

    ``item`` is the one of a member of ``source``; ``members`` by source have the same statement.
    ``by_member``: other members of ``source`` have another one, so that it does not tell which.
    """

    source: str
    item: Item[Name, Event]
    members: Mapping[str, tuple[Name, ...]]
    by_member: bool


class UnlockError(Exception):
    """The lock cannot be unlocked as asked. The message says why, and what to do."""


class DisputedError(UnlockError):
    """Members have different statements, and the one to execute was not named."""
