"""The data of the version rule: items, cutovers, and states."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from replicator.watermark import Place


class Ordered(Protocol):
    """The operations of the rule on the name of a table: hash, compare, format."""

    def __lt__(self, other: Any, /) -> bool: ...
    def __hash__(self) -> int: ...


Name = TypeVar("Name", bound=Ordered)
"""The name of a member, and of a target; opaque to the rule."""
Event = TypeVar("Event")
"""Attached to an item by the code that records it; opaque to the rule."""


TRUNCATION = "truncate table "
"""The beginning of the text of an item that removes all rows and changes no structure."""


MOST_DROPPED = 20
"""Number of dropped members that a group remembers, because some shards are dropped daily."""


class RowDecision(StrEnum):
    """The decision about a row event, by comparing its version with its target's version."""

    APPLY = "apply"
    """Equal: the structure fits. Rows up to the target's watermark are left out later."""
    HOLD = "hold"
    """Greater: the target has not executed this DDL yet. The row is dropped and read again
    later."""
    SKIP = "skip"
    """Smaller: a DDL is executed only after every row of the older version was applied."""


@dataclass(frozen=True, slots=True)
class Item(Generic[Name, Event]):
    """One DDL event of a member, as routed to the target.

    Attributes:
        text: the normalised statement, by which items are compared.
        statements: the statements that would be executed on the target.
        event: the source event of the item.
        discards_rows: whether it removes rows of all members; then it is not forced on members
            without it.
    """

    text: str
    statements: tuple[str, ...]
    member: Name
    at: Place
    event: Event = field(compare=False)
    discards_rows: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class ResolvedItem:
    """An item that was resolved on the target: part of its history.

    Attributes:
        unlocked: whether the operator unlocked it, so that members may differ from it.
        skipped: whether it was not executed.
        late: the source and member (`late_key`) whose statement has shown that an earlier item of
            it is late. The item changes nothing, but gives that member's held rows a version.
    """

    text: str
    unlocked: bool = False
    skipped: bool = False
    late: str = ""


def late_key(source: str, member: Ordered) -> str:
    """Return the value of `ResolvedItem.late` for a member, by its name at its statement."""
    return f"{source} {member}"


@dataclass(frozen=True, slots=True)
class MemberState:
    """A member at a position of its source.

    Attributes:
        version: the number of its items.
        since: position of the statement that gave it its structure; with the name, it identifies
            the structure.
        awaited: items that count as made, by an unlock or because the member was created without
            them after their cutovers, although its own DDL has not arrived yet.
        optional: items that it may already have made, but that its structure does not show; its own
            DDL for them may still arrive.
        idle: texts of statements that changed nothing on the member since its last item. They are
            not items, but if others need such an item, the member has made it.
        had_rows: whether it may have had rows; False if its CREATE was read, but no row yet.
    """

    version: int
    since: Place
    awaited: tuple[int, ...] = ()
    optional: tuple[int, ...] = ()
    idle: tuple[str, ...] = ()
    had_rows: bool = True

    def made(self, text: str, version: int) -> bool:
        """Return whether the member has made item `version`, or its text changed nothing there."""
        return self.version >= version or text in self.idle

    def shows(self, cutover: Cutover) -> MemberState:
        """Return the state after a cutover to an item that the member did not make.

        If the member already shows the item's result, it may still make the item: ADD KEY and DROP
        KEY together leave no trace.
        """
        optional = (*self.optional, cutover.version) if cutover.shown else self.optional
        return replace(self, version=cutover.version, optional=optional)


def made_by_statement(
    state: MemberState, at: Place, version: int, fits: Collection[int] | None
) -> MemberState:
    """Return the state of a member that has made an item by its own statement.

    Optional items become awaited if the structure now lacks their result.
    """
    awaited = {number for number in state.awaited if number > version}
    optional = {number for number in state.optional if number > version}
    if fits is not None:
        lacking = {number for number in optional if number > max(fits, default=version)}
        awaited, optional = awaited | lacking, optional - lacking
    return replace(
        state, since=at, awaited=tuple(sorted(awaited)), optional=tuple(sorted(optional))
    )


@dataclass(frozen=True, slots=True)
class Template(Generic[Name]):
    """The model of a created table: a member, or the target at `version` if `member` is None."""

    version: int
    member: Name | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A dropped member: its version and the text of its structure."""

    version: int
    structure: str


@dataclass(frozen=True, slots=True)
class GroupState(Generic[Name]):
    """A group at a position of its source.

    Attributes:
        base: the minimum version of all members.
        dropped: the most recently dropped members by name. A table that is created again under one
            of these names continues their items.
    """

    base: int
    members: tuple[tuple[Name, MemberState], ...]
    dropped: tuple[tuple[Name, Dropped], ...] = ()


@dataclass(frozen=True, slots=True)
class Cutover:
    """The position in one source's binlog where a target changes its version.

    After ``at``, no member of the group has fewer than ``version`` items: each member has either
    recorded them, or lacks them and they count as made (`forced`) by an unlock. A cutover is saved
    before the item is executed, so each time the binlog is read, a row gets the same version.

    ``shown``: whether members without the item already had its result, which affects none of their
    rows.
    """

    version: int
    at: Place
    forced: bool = False
    shown: bool = False


@dataclass(frozen=True, slots=True)
class Recorded:
    """How a member's DDL was recorded: as its item number ``version``.

    ``awaited``: whether the item counted as made before, so that the member's version stays the
    same.
    """

    version: int
    awaited: bool


@dataclass(frozen=True, slots=True)
class Claim(Generic[Name, Event]):
    """The items of one member of a source, starting with the disputed one."""

    source: str
    items: tuple[Item[Name, Event], ...]


@dataclass(frozen=True, slots=True)
class Conflict(Generic[Name, Event]):
    """Two members have different statements as the same item of a target.

    Has both sequences in full, which show whether they differ only in order.
    """

    version: int
    ours: Claim[Name, Event]
    theirs: Claim[Name, Event]


class HistoryError(Exception):
    """A member's item differs from the one that was executed on the target at its number."""

    def __init__(
        self,
        source: str,
        target: Ordered,
        version: int,
        item: Item[Any, Any],
        resolved: ResolvedItem,
    ) -> None:
        super().__init__(
            f"source {source}, {item.member}: its DDL number {version} is {item.text!r}, but number"
            f" {version} of the target {target} was {resolved.text!r} and is executed already"
        )
        self.resolved = resolved
