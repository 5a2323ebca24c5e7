"""The saved answers about a target: the entries, and the state that follows from them.

Everything that the next run needs follows from the entries alone, in their order: the members with
their accepted structures, fills, open statements, releases. This state is never derived from the
structures at the saved positions, which are older and would restore dropped columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Generic, TypeVar

from replicator.mysql.session_context.statement_context import NO_CONTEXT, StatementContext
from replicator.sharding.items import Name
from replicator.sharding.optimistic.agreement import Part, agreed, changed_parts
from replicator.sharding.optimistic.answers import JoinVerdict, StatementAnswer, takeable
from replicator.sharding.optimistic.conflicts import Change
from replicator.sharding.optimistic.fills import Fill
from replicator.sharding.optimistic.foreign_keys import agreed_keys
from replicator.sharding.optimistic.shapes import columns_among, wanted_parts
from replicator.sharding.optimistic.shard_states import (
    Action,
    ConflictKind,
    RefusedStep,
    ShardState,
    TargetState,
    after_open_statement,
    with_holders,
)
from replicator.watermark import Place, Watermark

Target = TypeVar("Target")


@dataclass(frozen=True, slots=True)
class Release(Generic[Name]):
    """Permission to apply held rows of a source. Saved when no rows of the source are in flight.

    Attributes:
        number: the version of the source's rows from then on.
        at: rows of members that were not held are applied up to this position.
        members: the members that were held, each with the position of its open statement.
    """

    number: int
    at: Place
    members: tuple[tuple[Name, Place], ...]


class EntryKind(StrEnum):
    """The kind of an entry."""

    MEMBER = "member"
    """A table is a member with this state, without an event."""
    TAKEN = "taken"
    """A statement of the member was accepted; ``run`` is executed for it."""
    OPEN = "open"
    """A statement of the member is open."""
    LEFT = "left"
    """The member's table was dropped, or is no longer replicated to the target."""
    RENAMED = "renamed"
    """Members were renamed."""
    FOLLOWED = "followed"
    """A renaming gave the target its name or took it away; its members, by their former names, are
    in `shard_states`."""
    REFUSED = "refused"
    """The target has refused a step of the member again."""
    STEPPED = "stepped"
    """A refused step of the member has succeeded at a retry: ``run`` is executed for it."""
    AGREED = "agreed"
    """The target gets the parts on which all members agree: ``run`` is executed for it."""
    SAID = "said"
    """The operator has answered the member's open statement, or a refused step."""
    RELEASED = "released"
    """Held rows of a source may be applied."""


@dataclass(frozen=True, slots=True)
class HistoryEntry(Generic[Name]):
    """One entry.

    Attributes:
        shard_state: the member's state after it; None if unchanged.
        fills: the fills after it; None if unchanged.
        granted: as in `JoinVerdict`; for a release, the members whose statements are evaluated
            again.
        gone: the members that have left; if members are renamed, by their new names.
        ceding: as in `JoinVerdict`.
        run: the statements to execute.
        refusal: a refused step, without which the target stays wider than necessary.
        at: position of the statement of the refused step that the entry is about.
        timestamp, context: used for the execution of `run`.
        source: the source of a release.
        parts: parts on which all members agree and that the target has now; after a renaming, parts
            in which it may differ.
        dropped: whether the target was dropped with its last member; it may be created again.
        number: the number of the renaming that the target has followed.
        shard_states: the members of the target after that renaming.
        begins: for each moved member, the position from which on its rows were not read before.
        shard_only, safe_sources: as in `DdlExecution`.
    """

    kind: EntryKind
    member: Name
    shard_state: ShardState | None = None
    fills: Mapping[str, Fill] | None = None
    granted: tuple[Name, ...] = ()
    gone: tuple[Name, ...] = ()
    ceding: frozenset[str] = frozenset()
    run: tuple[str, ...] = ()
    refusal: RefusedStep[Name] | None = None
    at: Place | None = None
    timestamp: int = 0
    context: StatementContext = NO_CONTEXT
    renamed: tuple[tuple[Name, Name], ...] = ()
    action: Action | None = None
    source: str = ""
    release: Release[Name] | None = None
    parts: tuple[Part, ...] = ()
    dropped: bool = False
    number: int = 0
    shard_states: tuple[tuple[Name, ShardState], ...] = ()
    begins: tuple[tuple[Name, Place], ...] = ()
    shard_only: tuple[str, ...] = ()
    safe_sources: tuple[str, ...] = ()


def followed_entries(
    number: int,
    moves: Iterable[tuple[Name, Target, Target, Place]],
    histories: Mapping[Target, TargetHistory[Name]],
) -> dict[Target, HistoryEntry[Name]]:
    """Return the entry of each target that receives or loses its name by a renaming.

    Args:
        number: the number of the renaming.
        moves: the members that move, by their former names, each with the former name of its
            target, the new one, and the position of its statement.
        histories: the histories before the renaming.
    """
    found: dict[Target, HistoryEntry[Name]] = {}
    moved = [*moves]
    for member, former, _, _ in moved:
        found[former] = HistoryEntry(EntryKind.FOLLOWED, member, fills={}, number=number)
    left = set(found)
    for target in dict.fromkeys(target for _, _, target, _ in moved):
        coming = [(name, former, place) for name, former, to, place in moved if to == target]
        begins = {name: place for name, _, place in coming}
        # If the target's own shards have left it, the table of that name has another name now.
        there = histories.get(target, TargetHistory()) if target not in left else TargetHistory()
        formers = dict.fromkeys(former for _, former, _ in coming)
        past = [histories.get(former, TargetHistory()) for former in formers]
        fills = {name: fill for history in past for name, fill in history.state.fills.items()}
        members = {n: s for history in past for n, s in history.state.members.items()}
        known = [(n, shard_state) for n, shard_state in members.items() if n in begins]
        changed = there.changed.union(*(history.changed for history in past))
        found[target] = HistoryEntry(
            EntryKind.FOLLOWED,
            coming[0][0],
            fills={**fills, **there.state.fills},
            number=number,
            parts=tuple(sorted(changed)),
            shard_states=(*there.state.members.items(), *known),
            begins=tuple(begins.items()),
        )
    return found


def entry_of(member: Name, verdict: JoinVerdict[Name], run: tuple[str, ...]) -> HistoryEntry[Name]:
    """Return the entry that saves an answer."""
    taken = verdict.answer is StatementAnswer.TAKEN
    return HistoryEntry(
        EntryKind.TAKEN if taken else EntryKind.OPEN,
        member,
        verdict.shard_state,
        verdict.fills,
        verdict.granted,
        ceding=verdict.ceding,
        run=run,
        shard_only=tuple(sorted(verdict.reconciled)),
    )


class TargetHistory(Generic[Name]):
    """The state of one target after its entries, applied one after the other."""

    def __init__(self, entries: Iterable[HistoryEntry[Name]] = ()) -> None:
        self.state: TargetState[Name] = TargetState()
        self.refused_steps: tuple[RefusedStep[Name], ...] = ()
        """The reasons why the target is wider than its members."""
        self._releases: dict[str, Release[Name]] = {}
        self._refused: set[Name] = set()
        self.agreed: Mapping[Part, str | None] = {}
        """The parts that do not show in rows, as all members have them (`agreement.agreed`)."""
        self.changed: frozenset[Part] = frozenset()
        """The parts in which the target may differ, since members have changed them."""
        self.entries = 0
        self.followed = 0
        """The number of the last renaming by which the target received or lost its name."""
        for entry in entries:
            self.take(entry)

    def take(self, entry: HistoryEntry[Name]) -> None:
        """Apply the next entry."""
        members, left = dict(self.state.members), dict(self.state.left)
        fills = self.state.fills if entry.fills is None else entry.fills
        match entry.kind:
            case EntryKind.MEMBER | EntryKind.TAKEN | EntryKind.OPEN:
                assert entry.shard_state is not None
                members = {n: replace(s, ceded=s.ceded | entry.ceding) for n, s in members.items()}
                members[entry.member] = entry.shard_state
                for name in entry.granted:
                    members[name] = _granted(members[name])
                if entry.kind is not EntryKind.OPEN:
                    for name in (entry.member, *entry.granted):
                        left.pop(name, None)
            case EntryKind.LEFT:
                staying = self.state.without(entry.gone)
                members, left = dict(staying.members), dict(staying.left)
            case EntryKind.RENAMED:
                for old, new in entry.renamed:
                    if old in members:
                        members[new] = members.pop(old)
                staying = replace(self.state, members=members).without(entry.gone)
                members, left = dict(staying.members), dict(staying.left)
                for source, release in self._releases.items():
                    self._releases[source] = renamed_release(release, entry.renamed)
                names = dict(entry.renamed)
                self.refused_steps = tuple(
                    replace(s, member=names.get(s.member, s.member)) for s in self.refused_steps
                )
            case EntryKind.FOLLOWED:
                # The table that had this name before has another name now.
                members, left, self.followed = dict(entry.shard_states), {}, entry.number
                for source, release in self._releases.items():
                    begins = dict(release.members) | dict(entry.begins)
                    members_of = tuple(sorted(begins.items()))
                    self._releases[source] = replace(release, members=members_of)
                self.refused_steps = ()
                self._refused.clear()
            case EntryKind.SAID if entry.at is None:
                members[entry.member] = _said(members[entry.member], entry.action)
            case EntryKind.SAID | EntryKind.REFUSED | EntryKind.STEPPED:
                found = self._about_refused(entry)
                if found is not None and entry.kind is EntryKind.STEPPED:
                    members = self._stepped(members, found.parts)
            case EntryKind.AGREED:
                self.changed -= set(entry.parts)
            case EntryKind.RELEASED:
                assert entry.release is not None
                self._releases[entry.source] = entry.release
                for name in entry.granted:
                    members[name] = _released(members[name])
        if entry.dropped:
            left, fills = {}, entry.fills or {}
        self._note_refusal(entry)
        members = dict(zip(members, with_holders([*members.values()]), strict=True))
        former = self.state
        self.state = TargetState(members, fills, left)
        if entry.kind is EntryKind.TAKEN and entry.refusal is None:
            # If a member has only left, the target keeps the columns that its rows need.
            self._follow(former)
        if entry.refusal is not None:
            self.refused_steps += (entry.refusal,)
        self._note_changes(entry, former)
        if self.refused_steps:
            shape = self.state.joined()
            self.refused_steps = tuple(
                s for s in self.refused_steps if shape is not None and wanted_parts(shape, s.parts)
            )

    def _note_changes(self, entry: HistoryEntry[Name], former: TargetState[Name]) -> None:
        """Record the parts in which the target may differ from its members from now on."""
        self.entries += 1
        if entry.kind is EntryKind.AGREED:
            return
        before, shard_states = self.agreed, [*self.state.members.values()]
        self.agreed = {**agreed(shard_states), **agreed_keys(shard_states, before)}
        if entry.kind is EntryKind.FOLLOWED:
            before, self.changed = self.agreed, frozenset(entry.parts)
        # At first, a target differs from its shards only as the operator has created it.
        if entry.kind is not EntryKind.MEMBER:
            # A statement gives a new column of the target the same parts as in its shard.
            there = former.fills if entry.run else self.state.fills
            self.changed |= changed_parts(before, self.agreed, there.keys())
        self.changed = frozenset(part for part in self.changed if part in self.agreed)

    @property
    def lagging(self) -> frozenset[Part]:
        """The parts that members have changed, and on which all of them agree."""
        return frozenset(part for part in self.changed if self.agreed[part] is not None)

    def _about_refused(self, entry: HistoryEntry[Name]) -> RefusedStep[Name] | None:
        """Apply an entry about a refused step: the operator's answer, or the step's result."""
        found = next(
            (s for s in self.refused_steps if (s.member, s.at) == (entry.member, entry.at)), None
        )
        self.refused_steps = tuple(s for s in self.refused_steps if s is not found)
        if found is not None and entry.action is not None:
            self.refused_steps += (replace(found, action=entry.action),)
        return found

    def _stepped(
        self, members: Mapping[Name, ShardState], parts: Collection[str]
    ) -> dict[Name, ShardState]:
        """Return the members after the target got these parts: older rows equal the shards'."""
        shape = self.state.joined()
        done = frozenset() if shape is None else columns_among(shape, parts)
        return {name: replace(s, stale=s.stale - done) for name, s in members.items()}

    def _follow(self, former: TargetState[Name]) -> None:
        """Forget the stale columns of members that the target has dropped now."""
        members = self.state.members
        if not any(shard_state.stale for shard_state in members.values()):
            return
        before, after = former.joined(), self.state.joined()
        if before is None or after is None:
            return
        dropped = before.columns.keys() - after.columns.keys()
        found = {name: replace(s, stale=s.stale - dropped) for name, s in members.items()}
        self.state = replace(self.state, members=found)

    def _note_refusal(self, entry: HistoryEntry[Name]) -> None:
        """Record the member whose change the target refuses in its present structure.

        Until the target changes, the rule would give the same answer again.
        """
        if entry.run or entry.kind is EntryKind.LEFT:
            self._refused.clear()
        opened = entry.shard_state.open if entry.shard_state is not None else None
        if opened is not None and opened.conflict is ConflictKind.REFUSED:
            self._refused.add(entry.member)
        else:
            self._refused.discard(entry.member)

    def release(self, source: str) -> Release[Name] | None:
        """Return the newest release of a source's rows."""
        return self._releases.get(source)

    def version(self, source: str) -> int:
        """Return the version of a source's rows that are applied now."""
        release = self._releases.get(source)
        return 0 if release is None else release.number

    def due(
        self, members: Iterable[Name], changes: Mapping[Name, Change[Name]]
    ) -> dict[Name, Place]:
        """Return the given members whose open statements would be answered differently now.

        Args:
            changes: the known statements, as input of the rule. A statement that was not read in
                this run is decided after it has been read.
        """
        found = {}
        for member in members:
            opened = self.state.open_of(member)
            if opened is None or opened.released:
                continue
            put = changes.get(member) if member not in self._refused else None
            known = opened.granted or opened.action is not None
            if known or (put is not None and put.at == opened.at and takeable(self.state, put)):
                found[member] = opened.at
        return found

    def next_release(
        self, source: str, released: Mapping[Name, Place], applied: tuple[int, Place] | None
    ) -> Release[Name]:
        """Return the release of these members' rows, each from its open statement on.

        Args:
            applied: the version and the position of the source's last row on the target. Every row
                of that version up to the position must be applied, and no rows may be in flight.
        """
        former = self._releases.get(source) or Release(0, _BEFORE_ALL, ())
        reached = _BEFORE_ALL
        if applied is not None:
            version, place = applied
            assert version <= former.number, f"rows of {source} are of version {version} already"
            if version == former.number:
                reached = place
        at = max(former.at, reached)
        # A row after the former release that is not applied yet belongs to this one.
        members = {name: max(begin, reached) for name, begin in former.members}
        members |= released
        left = ((name, begin) for name, begin in members.items() if begin != at)
        return Release(former.number + 1, at, tuple(sorted(left)))


_BEFORE_ALL = Place(-1, 0)


@dataclass(frozen=True, slots=True)
class MovedPlaces:
    """The positions on a server that has replaced ``source``, for positions on the former server.

    Attributes:
        exact: returns the position of the same event.
        near: returns that position, or the position of the last known statement before it.
        applied: all rows of the source up to this position are on the target; None if that is not
            known.
    """

    source: str
    exact: Callable[[Place], Place]
    near: Callable[[Place], Place]
    applied: Watermark | None

    def has_passed(self, release: Release[Name]) -> bool:
        """Return whether all rows that belong to this release or an earlier one are applied.

        If they are, only the `near` positions are needed, since each later row also follows these.
        """
        places = (release.at, *(place for _, place in release.members))
        return self.applied is not None and self.applied >= (release.number, *max(places))


def moved_entries(
    entries: Sequence[HistoryEntry[Name]], own: Callable[[Name], bool], moves: MovedPlaces
) -> Sequence[HistoryEntry[Name]]:
    """Return the entries of a target with the positions of another server.

    The positions of open statements are exact, and so are the newest release's until it has been
    passed. No other positions affect decisions about rows any more. Raises the errors of
    `MovedPlaces.exact`.

    Args:
        own: returns whether a member belongs to the source that the server has replaced.
    """
    history = TargetHistory(entries)
    shard_states = history.state.members.values()
    open_places = {
        shard_state.open.at for shard_state in shard_states if shard_state.open is not None
    }
    newest = history.release(moves.source)
    return [_moved(entry, own, moves, open_places, newest) for entry in entries]


def _moved(
    entry: HistoryEntry[Name],
    own: Callable[[Name], bool],
    moves: MovedPlaces,
    open_places: Collection[Place],
    newest: Release[Name] | None,
) -> HistoryEntry[Name]:
    shard_state, release, refusal = entry.shard_state, entry.release, entry.refusal
    if own(entry.member):
        if shard_state is not None and shard_state.open is not None:
            move = moves.exact if shard_state.open.at in open_places else moves.near
            opened = replace(shard_state.open, at=move(shard_state.open.at))
            entry = replace(entry, shard_state=replace(shard_state, open=opened))
        if refusal is not None:
            entry = replace(entry, refusal=replace(refusal, at=moves.near(refusal.at)))
        if entry.at is not None:
            entry = replace(entry, at=moves.near(entry.at))
    if release is not None and entry.source == moves.source:
        exact = release == newest and not moves.has_passed(release)
        move = moves.exact if exact else moves.near
        members = tuple((name, _begun(place, move)) for name, place in release.members)
        moved = replace(release, at=_begun(release.at, move), members=members)
        entry = replace(entry, release=moved)
    return entry


def _begun(place: Place, move: Callable[[Place], Place]) -> Place:
    return place if place == _BEFORE_ALL else move(place)


def begin_of(release: Release[Name] | None, member: Name) -> Place:
    """Return the position after which a member's rows have a release's version."""
    if release is None:
        return _BEFORE_ALL
    return dict(release.members).get(member, release.at)


def renamed_release(release: Release[Name], renamed: Sequence[tuple[Name, Name]]) -> Release[Name]:
    """Return a release with new names of its members.

    Rows by the new names begin at the same positions as by the former ones.
    """
    begins = dict(release.members)
    begins |= {new: begins[old] for old, new in renamed if old in begins}
    return replace(release, members=tuple(sorted(begins.items())))


def _granted(shard_state: ShardState) -> ShardState:
    assert shard_state.open is not None
    behind, opened = after_open_statement(shard_state), replace(shard_state.open, granted=True)
    return replace(behind, ceded=shard_state.ceded, open=opened)


def _released(shard_state: ShardState) -> ShardState:
    assert shard_state.open is not None
    return replace(shard_state, open=replace(shard_state.open, released=True))


def _said(shard_state: ShardState, action: Action | None) -> ShardState:
    if shard_state.open is None:
        return shard_state
    return replace(shard_state, open=replace(shard_state.open, action=action))
