"""Which changes a target has had without coordination, and which of them each member has brought.

Pure. Members make the same changes, one after the other. Whoever comes first changes the target,
and the others find it made. To look at the target is not enough: a column that was dropped and
added again looks as before, and dropping it a second time would empty what was written since.

So each *part* of a table (a column, an index) has a *level*: the number of the last change of the
target that touched it. A member has a level of each part, too: that of the last change it brought.
A member's statement is the first change of the same text that is above the member's levels in all
that it touches. So changes of different parts may come in any order, those of one part may not, and
the k-th of several statements of one text is told from the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic

from replicator.sharding.items import Name

FIRST = 0
"""The level of a part that no change has touched since the target was first seen."""
BEFORE_FIRST = -1
"""The level of a member in a part that it has not as the target had it first."""

_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """A member's statement. ``text`` is its normalised form, by which statements are compared.

    ``touches``: the parts that it makes, changes or removes. ``takes``: those of them whose values
    it takes away, exchanges or converts. ``adds``: those that the member did not have before.
    """

    text: str
    touches: frozenset[str]
    takes: frozenset[str] = _NOTHING
    adds: frozenset[str] = _NOTHING


@dataclass(frozen=True, slots=True)
class Comparison:
    """What structures tell of a change, beside the history.

    ``lacking``: the target is not as the change leaves the member. ``telling``: the member's
    structure changes, so that the opposite means something. ``present``: the parts that the target
    has. ``missing``: parts that the target had at first and the member has not. ``foreign``: parts
    that the target has as another member has them, and this one has otherwise. ``fitting``: parts
    that the target has as the change leaves them.
    """

    lacking: bool = False
    telling: bool = False
    present: frozenset[str] = _NOTHING
    missing: frozenset[str] = _NOTHING
    foreign: frozenset[str] = _NOTHING
    fitting: frozenset[str] = _NOTHING


@dataclass(frozen=True, slots=True)
class Entry(Generic[Name]):
    """What one event of a member was to its target, as it is saved; what it was not, is empty.

    ``changed``: it is a change of the target, whose number is the entry's. ``ran``: something was
    executed. ``levels``: the member's in these parts from here on, unless ``changed``. ``dropped``:
    parts whose values it removes; ``exchanged``: names of parts whose values get another name, or
    come from one. ``joined``: the member is new, and has these levels alone. ``renamed``: members
    got other names, in this order. ``reset``: the target is another table from here on. ``first``:
    the target's parts before the first entry, and ``members`` those that it had then.
    ``settings``: those of its session on which the values depend that it leaves in rows.
    """

    member: Name
    text: str = ""
    touches: frozenset[str] = _NOTHING
    changed: bool = False
    ran: bool = True
    levels: tuple[tuple[str, int], ...] = ()
    dropped: frozenset[str] = _NOTHING
    exchanged: frozenset[str] = _NOTHING
    joined: bool = False
    renamed: tuple[tuple[Name, Name], ...] = ()
    reset: bool = False
    first: frozenset[str] | None = None
    members: frozenset[Name] = frozenset()
    settings: str = ""


class Reading(StrEnum):
    """What a statement is to the target."""

    NEW = "new"
    """A change that it has not had."""
    APPLIED = "already-applied"
    """One that it has had: not to be executed."""
    REPEATED = "repeated"
    """One that it should have had, and has not (it was changed by hand): to be executed again."""
    TAKEN_OVER = "taken over"
    """Not one of its changes, but the member comes to be as the target is. No harm in executing."""
    UNCLEAR = "unclear"
    """It takes away a part of which the target has a newer state, or another one, than the member:
    a change of its own, or one that others made in other words."""


@dataclass(frozen=True, slots=True)
class StatementVerdict:
    """How a statement is read. ``same``: the number of the change that it repeats, if any.

    ``levels`` are the member's behind it. For UNCLEAR, ``part`` is what it takes away.
    """

    reading: Reading
    levels: tuple[tuple[str, int], ...] = ()
    same: int | None = None
    part: str = ""


@dataclass(frozen=True, slots=True)
class Former:
    """A part that a member has as the target had it before its change ``number``.

    ``exchanged``: what the member has in it, the target may have under another name.
    """

    part: str
    number: int
    exchanged: bool


@dataclass(slots=True)
class _Standing:
    """The levels of a member; ``otherwise`` in parts that it has no level of its own in."""

    levels: dict[str, int] = field(default_factory=dict)
    otherwise: int = FIRST


class ChangeHistory(Generic[Name]):
    """The entries of one target, by their numbers, in order."""

    def __init__(self, entries: Iterable[tuple[int, Entry[Name]]]) -> None:
        self.first: frozenset[str] | None = None
        """The parts of the target before its first entry; None where there is no entry."""
        self._changes: dict[int, Entry[Name]] = {}
        self._members: dict[Name, _Standing] = {}
        self._known: set[Name] = set()
        self._tops: dict[str, int] = {}
        for number, entry in entries:
            self._take(number, entry)

    def change(self, number: int) -> Entry[Name] | None:
        """The change of the target with this number."""
        return self._changes.get(number)

    def last(self, part: str) -> Entry[Name] | None:
        """The last change that touched a part."""
        return self._changes.get(self._tops.get(part, FIRST))

    def level(self, member: Name, part: str, missing: frozenset[str] = _NOTHING) -> int:
        """A member's level in a part; ``missing`` as in `Comparison`."""
        standing = self._members.get(member, _Standing())
        otherwise = BEFORE_FIRST if part in missing else standing.otherwise
        return standing.levels.get(part, otherwise)

    def tops(self, parts: Iterable[str]) -> tuple[tuple[str, int], ...]:
        """The target's level in each of these parts."""
        return tuple((part, self._tops.get(part, FIRST)) for part in sorted(parts))

    def levels_of_new(
        self, alike: Iterable[str], unlike: frozenset[str]
    ) -> tuple[tuple[str, int], ...]:
        """The levels of a new member, which has brought all that its structure shows.

        ``alike`` are parts that it has, or has not, as the target; in those of ``unlike`` it is
        behind.
        """
        return self.tops(({*self._tops} | {*alike}) - unlike)

    def former(self, member: Name, parts: Iterable[str]) -> list[Former]:
        """Those of a member's parts that the target has dropped or renamed since it had them so.

        Where it has parts of these names, they are other ones: the member's values are not theirs.
        """
        found = []
        for part in parts:
            level = self.level(member, part)
            later = [n for n, entry in self._changes.items() if n > level and part in entry.touches]
            entries = [self._changes[n] for n in later]
            exchanged = any(part in entry.exchanged for entry in entries)
            if exchanged or any(part in entry.dropped for entry in entries):
                found.append(Former(part, later[0], exchanged))
        return found

    def followed(self, part: str, number: int) -> str | None:
        """Which part has by now what this one had behind the change with this number.

        None where it was dropped, or several parts exchanged their names.
        """
        for n, entry in sorted(self._changes.items()):
            if n > number and part in entry.exchanged:
                others = entry.exchanged - {part}
                if len(others) > 1:
                    return None
                [part] = others
            elif n > number and part in entry.dropped:
                return None
        return part

    def have_all(self, members: Iterable[Name]) -> bool:
        """Whether these members have brought all that the target has had."""
        tops = self._tops.items()
        return all(self.level(member, part) == top for member in members for part, top in tops)

    def knows(self, member: Name) -> bool:
        """Whether a member's levels are known: it was there first, or has joined since."""
        return self.first is None or member in self._known

    def read(self, member: Name, change: HistoryChange, found: Comparison) -> StatementVerdict:
        """What a statement is."""
        same = self._same(member, change, found)
        if same is not None:
            number, touched = same
            followed = any(self._tops.get(part, FIRST) > number for part in touched)
            reading = Reading.REPEATED if found.lacking and not followed else Reading.APPLIED
            return StatementVerdict(
                reading, tuple((part, number) for part in sorted(touched)), number
            )
        behind = {
            part
            for part in change.touches
            if part in found.foreign
            or self.level(member, part, found.missing) < self._tops.get(part, FIRST)
        }
        lost = sorted(behind & change.takes & found.present - found.fitting)
        if lost:
            return StatementVerdict(Reading.UNCLEAR, part=lost[0])
        if behind and found.telling and not found.lacking:
            return StatementVerdict(Reading.TAKEN_OVER, self.tops(change.touches))
        return StatementVerdict(Reading.NEW)

    def _same(
        self, member: Name, change: HistoryChange, found: Comparison
    ) -> tuple[int, frozenset[str]] | None:
        """The number of the change that a statement is, and what that touches."""

        def above(number: int, parts: frozenset[str]) -> bool:
            return all(self.level(member, part, found.missing) < number for part in parts)

        had = change.adds and not change.takes and change.adds <= (self.first or _NOTHING)
        if had and above(FIRST, change.adds):
            # What the target had at first: the member was late already then.
            return FIRST, change.adds
        for number, entry in self._changes.items():
            if entry.text == change.text and above(number, entry.touches):
                return number, entry.touches
        return None

    def _take(self, number: int, entry: Entry[Name]) -> None:
        if entry.reset:
            self.first = None
            self._changes, self._members, self._known, self._tops = {}, {}, set(), {}
        if entry.first is not None and self.first is None:
            self.first = entry.first
            self._known |= entry.members
        for old, new in entry.renamed:
            self._members[new] = self._members.pop(old, _Standing())
            self._known.discard(old)
            self._known.add(new)
        if not entry.renamed:
            self._known.add(entry.member)
        if entry.joined:
            self._members[entry.member] = _Standing(dict(entry.levels), BEFORE_FIRST)
            return
        levels = dict.fromkeys(entry.touches, number) if entry.changed else dict(entry.levels)
        if levels:
            self._members.setdefault(entry.member, _Standing()).levels |= levels
        if entry.changed:
            self._changes[number] = entry
            self._tops |= levels
