"""The sharding group: all members of one target in one source, and the version rule for rows.

A row's version is the number of items that its member had before it. It is compared with the
target's version as the group knows it (`Group.known`). That version stays the same until the group
is rebuilt from saved state, *adopts* the next version, or *releases* it, which means that it
forwards the rows of that version held in memory (`buffer`) before it decides any other row. Row
versions follow from the saved state, the binlog and the saved cutovers alone, however often the
binlog is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import replace
from typing import Any, Generic

from replicator.sharding.hold import HoldBudget, HoldBuffer
from replicator.sharding.items import (
    MOST_DROPPED,
    TRUNCATION,
    Cutover,
    Dropped,
    Event,
    GroupState,
    HistoryError,
    Item,
    MemberState,
    Name,
    Recorded,
    ResolvedItem,
    RowDecision,
    Template,
    late_key,
    made_by_statement,
)
from replicator.watermark import Place


class Group(Generic[Name, Event]):
    """Decides row events, records DDL, and reports when its members are ready for the next item.

    Args:
        state: the saved state at the position ``start``.
        known: the target's version.
        history: the target's items up to ``known``, and the next one if a cutover for it is saved.
        cutovers: the cutovers after ``state``, in order.
        applied: the highest watermark of version ``known``; the binlog was read at least up to it
            before.
    """

    def __init__(
        self,
        source: str,
        target: Name,
        state: GroupState[Name],
        start: Place,
        known: int,
        history: Sequence[ResolvedItem],
        cutovers: Iterable[Cutover] = (),
        applied: Place | None = None,
    ) -> None:
        self.source = source
        self.target = target
        self.base = state.base
        self.known = known
        self.seen = self._resume = start
        self.members = dict(state.members)
        self.dropped = dict(state.dropped)
        self.items: dict[int, tuple[Item[Name, Event], ...]] = {}
        self.added: set[int] = set()
        """The versions of items that the lock has not compared yet."""
        self.held: Counter[int] = Counter()
        self.buffer: HoldBuffer[Any] = HoldBuffer(HoldBudget())
        self.releasing: dict[int, Place] = {}
        """The released versions whose rows are not applied, each with its first position."""
        self.ahead: list[Place] = []
        self._doubted: dict[Place, tuple[str, frozenset[int]]] = {}
        """The doubtful statements (`ddl`), with the member's key and the items that drop its
        columns."""
        self._late: set[Place] = set()
        """The doubtful statements that are not new items."""
        self._shown: dict[Name, tuple[int, str, int, bool]] = {}
        """By member without the item of a version and text, whether it already shows the result."""
        self._waiting: set[Name] = set()
        """Tables ahead that may lack the next item; the group is not ready until they join."""
        self.unmatched: dict[Name, Place] = {}
        """Tables ahead that match no version of the target, with the positions of their CREATE."""
        self._history = tuple(history)
        self.earlier: Sequence[ResolvedItem] = ()
        """The items before the first version, as for the lock."""
        self._cutovers = tuple(cutover for cutover in cutovers if cutover.version > state.base)
        passed = [cutover.at for cutover in self._cutovers if cutover.version <= known]
        self._acted_upon = max([start, *passed, *([applied] if applied else [])])
        assert state.base <= known, f"{self}: saved behind a cutover to {state.base}, unknown yet"
        assert all(m.version <= known for m in self.members.values()), (
            f"{self}: the saved position is behind an open item"
        )
        assert [t.version for t in self._cutovers] == [
            state.base + n for n in range(1, len(self._cutovers) + 1)
        ], f"{self}: cutovers are missing: {self._cutovers}"
        assert len(self._history) == max([known, *(t.version for t in self._cutovers)])
        self._reach(start)

    def __repr__(self) -> str:
        return f"group of {self.source} for {self.target}"

    # Events, in binlog order.

    def row(self, member: Name, at: Place, count: int = 1) -> RowDecision:
        """Decide ``count`` row events of a member, the last of them at ``at``.

        Several events may be decided at once if `next_cutover` is not among them.
        """
        self._approach(at)
        version = self.members[member].version
        assert version >= self.base, f"{self}: a row of {member} at {at} is behind its cutover"
        self._reach(at)
        if version > self.known:
            self.held[version] += count
            if self.members[member].awaited:
                # The target's names of their columns depend on items that are not resolved yet.
                self.buffer.drop_from(version)
            return RowDecision.HOLD
        return RowDecision.APPLY if version == self.known else RowDecision.SKIP

    def note_rows(self, member: Name, *, had: bool) -> bool:
        """Record whether a member may have had rows, and return whether this is new."""
        state = self.members[member]
        if state.had_rows is had:
            return False
        self.members[member] = replace(state, had_rows=had)
        return True

    def ddl(
        self,
        item: Item[Name, Event],
        least: int = 0,
        fits: Collection[int] | None = None,
        drops: Collection[int] = (),
    ) -> Recorded:
        """Record a member's next item, or match it to one that the member has without a DDL.

        A statement is doubtful if it may also be a new item, and rows after it would lose columns
        if it is not. It is recorded as a new item, so that these rows are held, until the member
        itself makes the item that drops the columns: then the statement is `late`.

        Args:
            least: the lowest possible number of the item; the member shows the earlier ones.
            fits: the versions whose structure the member has now, if known.
            drops: for a doubtful statement, the items that drop the columns that it adds.

        Raises HistoryError if an item up to ``known`` differs; `TargetLock` compares later ones.
        """
        self._approach(item.at)
        self._shown.pop(item.member, None)
        state = self.members[item.member]
        version, own = max(state.version + 1, least), late_key(self.source, item.member)
        while (resolved := self.resolved(version)) is not None and resolved.late not in ("", own):
            version += 1
        passed = range(state.version + 1, version)
        shown = tuple(v for v in passed if not ((done := self.resolved(v)) and done.late))
        matched = self._awaited(state, item)
        if matched is not None:
            self._note_late(item.member, matched)
            late = resolved is not None and resolved.late == own
            if not drops or (resolved is not None and not late and item.text != resolved.text):
                self.members[item.member] = made_by_statement(state, item.at, matched, fits)
                self._reach(item.at)
                return Recorded(matched, awaited=True)
            if resolved is None or late:
                made = made_by_statement(state, item.at, matched, fits)
                optional = (*made.optional, *shown)
                self.members[item.member] = replace(made, version=version, optional=optional)
                if version > self.known:
                    self._add(version, item)
                    self._doubted[item.at] = own, frozenset(drops)
                self._reach(item.at)
                return Recorded(matched if late else version, awaited=late)
        if version <= self.known:
            assert resolved is not None
            if item.text != resolved.text and not resolved.unlocked:
                raise HistoryError(self.source, self.target, version, item, resolved)
        else:
            self._add(version, item)
        self.members[item.member] = replace(
            state, version=version, since=item.at, awaited=(), optional=shown, idle=()
        )
        self._reach(item.at)
        return Recorded(version, awaited=False)

    def _add(self, version: int, item: Item[Name, Event]) -> None:
        self.items[version] = (*self.items.get(version, ()), item)
        self.added.add(version)

    def _note_late(self, member: Name, matched: int) -> None:
        """Record which doubtful statements are late, since the member makes an earlier item."""
        for item in (item for items in self.items.values() for item in items):
            _, drops = self._doubted.get(item.at, ("", frozenset[int]()))
            if item.member == member and matched in drops:
                self._late.add(item.at)

    def late(self, item: Item[Name, Event]) -> str:
        """Return the `late_key` of a doubtful item if it is certainly not a new item, otherwise "".

        Its member has dropped the added columns again, as the target had before, or no longer
        exists.
        """
        own, _ = self._doubted.get(item.at, ("", frozenset[int]()))
        return own if item.at in self._late or item.member not in self.members else ""

    def matched(self, item: Item[Name, Event]) -> int | None:
        """Return the item made by this statement, if the member has it without its own DDL."""
        return self._awaited(self.members[item.member], item)

    def show(self, member: Name, text: str, items: int, *, shows: bool) -> None:
        """Record whether a member shows the item after ``known``.

        ``items``: the number of the others' items by which this was decided.
        """
        self._shown[member] = self.known + 1, text, items, shows

    def unlooked(self, text: str, items: int) -> list[Name]:
        """Return the members without the item after ``known`` for which `show` was not called."""
        entry = self.known + 1, text, items
        return [
            name
            for name, state in self.members.items()
            if state.version <= self.known and self._shown.get(name, ())[:3] != entry
        ]

    def owes(self, member: Name, text: str) -> bool:
        """Return whether a member has an item with this text without its own DDL."""
        state = self.members[member]
        return any(text in self._texts(version) for version in (*state.awaited, *state.optional))

    def idle(self, member: Name, text: str, at: Place) -> None:
        """Record a member's statement that has changed nothing on it, and so is not an item."""
        self._approach(at)
        state = self.members[member]
        if text not in state.idle:
            self.members[member] = replace(state, idle=(*state.idle, text))
        self._reach(at)

    def _granted(self, state: MemberState, version: int) -> MemberState:
        """Return a member's state with an item of the history, awaited unless it was idle there."""
        text = self._history[version - 1].text
        if text in state.idle:
            left = tuple(idle for idle in state.idle if idle != text)
            return replace(state, version=version, idle=left)
        return replace(state, version=version, awaited=(*state.awaited, version))

    def _awaited(self, state: MemberState, item: Item[Name, Event]) -> int | None:
        """Return the number of this item, if the member has it without its own DDL, or None.

        This is the item with the same text, or otherwise the first one that counts as made and was
        executed: every shard should get that change, however it is written. A skipped or optional
        item may never arrive.
        """
        given = ((version, self.resolved(version)) for version in state.awaited)
        executed = (version for version, resolved in given if resolved and not resolved.skipped)
        owned = sorted({*state.awaited, *state.optional})
        same = (version for version in owned if item.text in self._texts(version))
        return next(same, None) or next(executed, None)

    def resolved(self, version: int) -> ResolvedItem | None:
        """Return the target's item of a version, or None if it is undecided."""
        if self.lowest < version <= 0:
            return self.earlier[-version]
        return self._history[version - 1] if 0 < version <= len(self._history) else None

    @property
    def lowest(self) -> int:
        """The first known version.

        0, or less if shards lack items that the target was created with.
        """
        return -len(self.earlier)

    def _truncates(self, version: int) -> bool:
        """Return whether an item removes all rows; tables created later never execute it."""
        return any(text.startswith(TRUNCATION) for text in self._texts(version))

    def _texts(self, version: int) -> set[str]:
        if (resolved := self.resolved(version)) is not None:
            return {resolved.text}
        return {item.text for item in self.items.get(version, ())}

    def templates(self, at: Place, floor: int = 0) -> list[Template[Name]]:
        """Return the possible models of a created table; it joins like the first one that it fits.

        They are: the members, newest first; the target at this position; its earlier versions; its
        later ones, unknown when this position was first read. A table that fits only these was
        ahead of the target then, so none of its rows was applied. Before version ``floor``, the
        target was another table.
        """
        self._approach(at)
        found = [(state.version, -len(state.awaited), name) for name, state in self.members.items()]
        by_age = [Template(version, name) for version, _, name in sorted(found)[::-1]]
        past = range(self.base, self.lowest - 1, -1)
        later = range(self.base + 1, len(self._history) + 1)
        target: list[Template[Name]] = [Template(version) for version in (*past, *later)]
        return [one for one in (*by_age, *target) if not floor or one.version >= floor]

    def join(
        self,
        member: Name,
        at: Place,
        template: Template[Name] | None,
        equals: Collection[Template[Name]] = (),
        least: int = 0,
        earliest: int | None = None,
    ) -> MemberState:
        """Add a created table.

        If it also fits an older version, and no version in between differs, it is unknown whether
        it has the items in between. Its own DDL with the text of such an item then counts as that
        item.

        Args:
            template: the first of `templates` that it fits; None for the target at this position.
            equals: all templates that it fits.
            least: the lowest possible version of its rows, which were not read before the target
                had it.
            earliest: items from this version on are just as uncertain, even if versions in between
                differ, because they do not concern columns that the table has.
        """
        self._approach(at)
        assert member not in self.members, f"{self}: {member} joins twice"
        if template is None or template.member is None:
            version = self.base if template is None else template.version
            later = range(version + 1, self.base + 1)
            granted = tuple(v for v in later if not self._truncates(v))
            state = MemberState(max(version, self.base), at, granted)
        else:
            version = template.version
            state = replace(self.members[template.member], since=at, had_rows=True)
        own = min(state.awaited, default=version + 1) - 1
        lowest = self._lowest(own, template, equals)
        possible = range(min(lowest, lowest if earliest is None else earliest) + 1, own + 1)
        optional = (v for v in possible if not self._truncates(v))
        state = replace(state, optional=tuple(sorted({*state.optional, *optional})))
        if state.version < least:
            later = range(state.version + 1, least + 1)
            granted = tuple(v for v in later if not self._truncates(v))
            state = replace(state, version=least, awaited=(*state.awaited, *granted))
        self.members[member] = state
        self.dropped.pop(member, None)
        if state.version > self.known:
            # Later knowledge of the versions in between may show that it has fewer items.
            self.ahead.append(at)
        self._reach(at)
        return state

    def _lowest(
        self, version: int, template: Template[Name] | None, equals: Collection[Template[Name]]
    ) -> int:
        """Return the lowest version, from this one down, at which a table may have been created."""
        if template is None:
            return version
        fitting = {self.made_at(found) for found in equals}
        resolved = range(self.lowest, len(self._history) + 1)
        known = {*resolved, *(m.version for m in self.members.values())}
        while version > self.lowest and (version - 1 in fitting or version - 1 not in known):
            version -= 1
        return version

    def made_at(self, template: Template[Name]) -> int:
        """Return the version of the target whose structure a template has."""
        awaited = self.members[template.member].awaited if template.member is not None else ()
        return min(awaited, default=template.version + 1) - 1

    def join_ahead(self, member: Name, at: Place, *, waits: bool = False) -> None:
        """Add a created table that fits no template yet, because only it has certain items.

        Its rows are held until it is read again and fits another template: a later version, or any
        template if it ``waits`` for something else.
        """
        self._approach(at)
        assert member not in self.members, f"{self}: {member} joins twice"
        self.members[member] = MemberState(self.known + 1, at)
        self.ahead.append(at)
        if waits:
            self._waiting.add(member)
        else:
            self.unmatched[member] = at
        self._reach(at)

    @property
    def waiting(self) -> Set[Name]:
        """The created tables that wait for something else and may join at an earlier version."""
        return self._waiting

    def leave(self, member: Name, at: Place, structure: str = "") -> None:
        """Remove a member whose table is dropped, and remember its structure if it is known.

        Its items remain, because later rows refer to them.
        """
        self._approach(at)
        self.buffer.drop()
        state = self.members.pop(member)
        self._shown.pop(member, None)
        self._waiting.discard(member)
        self.unmatched.pop(member, None)
        self.dropped.pop(member, None)
        if structure and state.since not in self.ahead:
            self.dropped[member] = Dropped(state.version, structure)
            while len(self.dropped) > MOST_DROPPED:
                del self.dropped[next(iter(self.dropped))]
        self._reach(at)

    def again(self, member: Name, at: Place) -> Dropped | None:
        """Return the dropped member of this name, with the version at which it would continue."""
        self._approach(at)
        former = self.dropped.get(member)
        return former and replace(former, version=max(former.version, self.base))

    def come_back(self, member: Name, at: Place, version: int) -> None:
        """Add a created table at this version, continuing the dropped member of its name."""
        assert member not in self.members, f"{self}: {member} joins twice"
        self.dropped.pop(member, None)
        self.members[member] = MemberState(version, at)

    def rename(self, old: Name, new: Name, at: Place) -> None:
        """Give a member an unused name; it keeps its state and its items."""
        self._approach(at)
        assert new not in self.members, f"{self}: {old} is renamed to {new}, which is a member"
        # Rows of both names can't be applied together.
        self.buffer.drop()
        self.members[new] = self.members.pop(old)
        self._shown.pop(old, None)
        if old in self._waiting:
            self._waiting ^= {old, new}
        if old in self.unmatched:
            self.unmatched[new] = self.unmatched.pop(old)
        self.dropped.pop(new, None)
        for version, items in self.items.items():
            self.items[version] = tuple(
                replace(item, member=new) if item.member == old else item for item in items
            )
        self._reach(at)

    # Decisions of the target's lock.

    def cut_over(self, resolved: ResolvedItem, resume: Place, *, forced: bool) -> Cutover:
        """Make ``resolved`` the next item: after the cutover, all members have it.

        With a forced cutover, the item counts as made by the members that lack it, after every row
        that may have been treated as version ``known`` before. ``resume``: the position that would
        be saved for the source now.
        """
        assert self.base <= self.known == len(self._history), f"{self}: a second cutover at once"
        assert forced or self.ready, f"{self}: not ready for {self.known + 1}"
        at = max(self.seen, self._acted_upon) if forced else self.seen
        self._resume = resume
        shown = not forced and any(map(self._shows, self.members))
        cutover = Cutover(self.known + 1, at, forced, shown)
        self._cutovers = (*self._cutovers, cutover)
        self._history = (*self._history, resolved)
        self._reach(self.seen)
        return cutover

    @property
    def can_adopt(self) -> bool:
        """Whether `_at_hand` is true and no rows are held, so nothing must be read again."""
        return self._at_hand and not self.held[self.known + 1]

    def adopt(self) -> None:
        """Use the next version of the target from now on."""
        assert self.can_adopt, f"{self}: rows of version {self.known + 1} were held"
        self.known += 1
        self.items.pop(self.known, None)

    @property
    def can_release(self) -> bool:
        """Whether the next version can be used without reading again, by its rows in `buffer`."""
        held = self.held[self.known + 1]
        return self._at_hand and self.buffer.count_of(self.known + 1) == held

    def release(self) -> list[Any]:
        """Use the next version of the target from now on, and return its held rows.

        They must be forwarded before other rows. The version's items stay open until `released`.
        """
        assert self.can_release, f"{self}: rows of version {self.known + 1} must be read again"
        version = self.known + 1
        parts = self.buffer.take(version)
        if parts:
            self.releasing[version] = min(self._open_at(version))
        self.known = version
        self.items.pop(version, None)
        del self.held[version]
        return parts

    def read_past(self, at: Place) -> None:
        """Pass the cutovers up to a position before which the binlog has no more events."""
        self._reach(max(at, self.seen))

    def released(self, version: int) -> None:
        """Record that the rows forwarded by a release are applied."""
        del self.releasing[version]

    @property
    def _at_hand(self) -> bool:
        """Whether the next cutover is passed and changes no decision of this run.

        It would change one if a table ahead was created, or if an item was doubtful or renumbered.
        """
        version = self.known + 1
        items, resolved = self.items.get(version, ()), self.resolved(version)
        renumbered = resolved is not None and resolved.late and items
        doubtful = any(item.at in self._doubted for item in items)
        return self.base > self.known and not (self.ahead or renumbered or doubtful)

    # Queries.

    @property
    def ready(self) -> bool:
        """Whether each member has the item after ``known``, so that no older row can follow.

        All positions up to which the binlog was read before must have been passed.
        """
        ahead = any(cutover.version > self.base for cutover in self._cutovers)
        return (
            not ahead
            and not self._waiting
            and self.seen >= self._acted_upon
            and all(
                state.version > self.known or state.idle or self._shows(name)
                for name, state in self.members.items()
            )
        )

    def _shows(self, member: Name, text: str | None = None) -> bool:
        version, of, _, shows = self._shown.get(member, (0, "", 0, False))
        return shows and version == self.known + 1 and text in (None, of)

    def made(self, text: str) -> bool:
        """Return whether each member has the item after `known`, if it has this text."""
        return all(
            state.made(text, self.known + 1) or self._shows(name, text)
            for name, state in self.members.items()
        )

    def missing(self, item: Item[Name, Event]) -> tuple[Name, ...]:
        """Return the members that lack this item, which is the one after `known`."""
        next_version = self.known + 1
        lacking = (
            name
            for name, state in self.members.items()
            if not (state.made(item.text, next_version) or self._shows(name, item.text))
        )
        return tuple(sorted(lacking))

    @property
    def rows_held(self) -> int:
        """The number of row events that must be read again."""
        return sum(self.held.values())

    @property
    def open_items(self) -> tuple[Place, ...]:
        """The positions of all open items; the saved position must precede them."""
        known = {*self.items, *(t.version for t in self._cutovers if t.version > self.known)}
        places = [place for version in sorted(known) for place in self._open_at(version)]
        return (*places, *self.ahead, *self.releasing.values())

    def _open_at(self, version: int) -> tuple[Place, ...]:
        items = [item.at for item in self.items.get(version, ())]
        # A group without recent events must not pull the saved position back.
        cutovers = [max(t.at, self._resume) for t in self._cutovers if t.version == version]
        return (*items, *cutovers)

    @property
    def next_cutover(self) -> Place | None:
        """The position of the next cutover that was not passed yet."""
        return next((cutover.at for cutover in self._cutovers if cutover.version > self.base), None)

    @property
    def state(self) -> GroupState[Name]:
        """The state to save with a position; valid at transaction boundaries."""
        members = tuple(sorted(self.members.items()))
        return GroupState(self.base, members, tuple(self.dropped.items()))

    # Positions in the stream of events.

    def _approach(self, at: Place) -> None:
        """Pass the cutovers before an event, which must not precede the last event."""
        assert at >= self.seen, f"{self}: {at} comes after {self.seen}"
        while (ahead := self.next_cutover) is not None and ahead < at:
            self._reach(ahead)

    def _reach(self, at: Place) -> None:
        """Pass the cutovers up to an event."""
        self.seen = at
        for cutover in self._cutovers:
            if self.base < cutover.version and cutover.at <= at:
                self._pass(cutover)

    def _pass(self, cutover: Cutover) -> None:
        assert cutover.version == self.base + 1, f"{self}: {cutover} comes at base {self.base}"
        self.base = cutover.version
        for name, state in self.members.items():
            if state.version < cutover.version:
                resolved = self._history[cutover.version - 1]
                granted = (cutover.forced or resolved.text in state.idle) and not resolved.late
                assert granted or cutover.shown or resolved.late, (
                    f"{self}: {name} comes to {cutover} with version {state.version}"
                )
                assert state.version == cutover.version - 1, f"{self}: {name} misses earlier items"
                self.members[name] = (
                    self._granted(state, cutover.version) if granted else state.shows(cutover)
                )
