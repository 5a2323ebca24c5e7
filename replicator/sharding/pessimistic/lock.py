"""The lock: the agreement of all sources of a target on its next item.

A `TargetLock` exists as long as the task; a group exists as long as one run of its source. The lock
reads the groups directly, so nothing must be announced, withdrawn or synchronised. All of them run
on one event loop, and no method waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic

from replicator.sharding.items import (
    TRUNCATION,
    Claim,
    Conflict,
    Cutover,
    Event,
    GroupState,
    Item,
    Name,
    ResolvedItem,
)
from replicator.sharding.open_locks import Choice, DisputedError, LockView, UnlockError
from replicator.sharding.pessimistic.group import Group
from replicator.watermark import Place


@dataclass(frozen=True, slots=True)
class Resolution(Generic[Name, Event]):
    """The decision on the target's item `version`, saved before the item is executed.

    Attributes:
        owner: the source of the statement.
        item: the owner's statement.
        cutovers: by source.
    """

    version: int
    owner: str
    item: Item[Name, Event]
    resolved: ResolvedItem
    cutovers: Mapping[str, Cutover]


class TargetLock(Generic[Name, Event]):
    """The items of one target: its version and history, and how the next item is resolved.

    Args:
        sources: all sources of the task.
        history: the items resolved so far.
        cutovers: the saved cutovers by source.
        pending: a saved decision that is not executed yet.
        outside: shards of other sources whose rows the target also has; while there are any, no
            statement that removes rows is executed automatically.
        earlier: the items that led to the target's first structure, the last one first, with the
            numbers 0, -1, … The target had them when it was created, if its first shard was created
            with a newer structure than a later shard.
    """

    def __init__(
        self,
        target: Name,
        sources: Iterable[str],
        history: Sequence[ResolvedItem] = (),
        cutovers: Mapping[str, Sequence[Cutover]] | None = None,
        pending: Resolution[Name, Event] | None = None,
        outside: Sequence[str] = (),
        earlier: Sequence[ResolvedItem] = (),
        shown: Mapping[tuple[str, Place], frozenset[int]] | None = None,
    ) -> None:
        self.target = target
        self.outside = tuple(outside)
        self.sources = tuple(sources)
        self.history = tuple(history)
        self.earlier = list(earlier)
        self.groups: dict[str, Group[Name, Event]] = {}
        self.left_out: set[tuple[str, Place]] = set()
        """By source, the TRUNCATEs that are not items of their members."""
        self.shown = dict(shown or {})
        """By source and position of a member's item, the earlier items that the member shows."""
        self.owner: str | None = pending.owner if pending else None
        self.pending = pending
        self._cutovers = {source: list((cutovers or {}).get(source, ())) for source in self.sources}
        self._disputed: set[int] = set()

    def __repr__(self) -> str:
        return f"lock of {self.target}"

    @property
    def version(self) -> int:
        """The number of items resolved on the target."""
        return len(self.history)

    # Sources start and stop.

    def start(
        self, source: str, state: GroupState[Name], start: Place, applied: Place | None = None
    ) -> Group[Name, Event]:
        """Start the group of a source from saved state; it knows the current version.

        `applied`: as for `Group`; None if the highest watermark is of an older version.
        """
        assert source not in self.groups, f"{self}: {source} starts twice"
        history = (*self.history, self.pending.resolved) if self.pending else self.history
        group = self.groups[source] = Group(
            source,
            self.target,
            state,
            start,
            self.version,
            history,
            self._cutovers[source],
            applied,
        )
        group.earlier = self.earlier
        return group

    def stop(self, source: str) -> None:
        """Stop the group of a source; nothing can be resolved until it starts again."""
        del self.groups[source]
        if self.owner == source and self.pending is None:
            self.owner = None

    # The next item.

    def candidates(self, source: str) -> tuple[Item[Name, Event], ...]:
        """Return the next items of a source's members, in binlog order."""
        group = self.groups.get(source)
        items = group.items.get(self.version + 1, ()) if group else ()
        return tuple(sorted(items, key=lambda item: item.at))

    def ready(self, source: str) -> bool:
        """Return whether a source is ready for the next item; it may have no members."""
        group = self.groups.get(source)
        return group is not None and group.known == self.version and group.ready

    @property
    def leads(self) -> bool:
        """Whether a member has the next item of the target, or a source is not being read."""
        read = all(
            source in self.groups and self.groups[source].known == self.version
            for source in self.sources
        )
        return not read or self.pending is not None or any(map(self.candidates, self.sources))

    def look(self) -> None:
        """Make the first ready source the owner, after a change in a group."""
        if self.pending is None and (self.owner is None or not self.candidates(self.owner)):
            ready = (s for s in self.sources if self.ready(s) and self.candidates(s))
            self.owner = next(ready, None)

    @property
    def agreed(self) -> bool:
        """Whether all sources are ready, with the same item."""
        items = [item for source in self.sources for item in self.candidates(source)]
        if self.outside and any(item.discards_rows for item in items):
            return False
        texts = {item.text for item in items}
        if self.pending is not None or len(texts) != 1 or not all(map(self.ready, self.sources)):
            return False
        (text,) = texts
        return all(group.made(text) for group in self.groups.values())

    def resolve(self, resume: Mapping[str, Place]) -> Resolution[Name, Event]:
        """Decide the agreed item. The caller saves the result with all cutovers, then executes it.

        ``resume``: by source, the position that would be saved now.
        """
        assert self.agreed, f"{self}: not agreed"
        self.look()
        assert self.owner is not None
        item = self.candidates(self.owner)[0]
        return self._decide(self.owner, item, ResolvedItem(item.text), resume, forced=False)

    @property
    def late(self) -> tuple[str, Item[Name, Event]] | None:
        """A doubtful item that is not a new item, with its source, or None.

        Its member has shown by a later statement that the item is late. None while a source is not
        being read.
        """
        if self.pending is not None or any(
            source not in self.groups or self.groups[source].known != self.version
            for source in self.sources
        ):
            return None
        items = ((source, item) for source in self.sources for item in self.candidates(source))
        return next(((s, item) for s, item in items if self.groups[s].late(item)), None)

    def resolve_late(self, resume: Mapping[str, Place]) -> Resolution[Name, Event]:
        """Decide the `late` item, which gives its member's held rows a version.

        `resume` as for `resolve`. The caller saves the result with all cutovers; nothing is
        executed.
        """
        assert self.late is not None, f"{self}: no item is late"
        source, item = self.late
        key = self.groups[source].late(item)
        resolved = ResolvedItem(f"(made late) {item.text}", skipped=True, late=key)
        return self._decide(source, item, resolved, resume, forced=True)

    def unlock(
        self,
        resume: Mapping[str, Place],
        *,
        owner: str | None = None,
        member: Name | None = None,
        skip: bool = False,
    ) -> Resolution[Name, Event]:
        """Decide the next item for all sources, including members that lack it or differ.

        The caller saves the result with all cutovers, then executes it unless it is skipped.

        Args:
            resume: as for `resolve`.
            owner: the source whose statement to use.
            member: the member of that source whose statement to use.

        Raises UnlockError, or DisputedError if there are several statements to choose from.
        """
        name = f"the lock on item {self.version + 1} of {self.target}"
        if self.pending is not None:
            raise UnlockError(f"{name} is already being resolved: wait until it is done")
        away = [s for s in self.sources if s not in self.groups]
        late = [s for s, group in self.groups.items() if group.known < self.version]
        having = [source for source in self.sources if self.candidates(source)]
        if not having:
            raise UnlockError(f"there is no lock on {self.target}")
        if away or late:
            raise UnlockError(
                f"{name} can't be unlocked while sources restart or are blocked"
                f" ({', '.join(away + late)}): try again when they run"
            )
        chosen = owner or self.owner or having[0]
        if chosen not in having:
            raise UnlockError(
                f"source {chosen} has no statement for {name}; these have: {', '.join(having)}"
            )
        item = self._chosen(name, chosen, owner, member, skip=skip)
        if item.discards_rows and not skip and not self.agreed:
            whose, run = "have not run it", "run it on them, or "
            if self.outside:
                # No shard of the task can resolve the lock.
                whose, run = "are retired, or whose source is not in the task file", ""
            raise UnlockError(
                f"{name} removes rows, also those of shards that {whose} ({item.text!r}):"
                f" {run}unlock it with --action skip: the target then keeps the rows"
            )
        resolved = ResolvedItem(item.text, unlocked=True, skipped=skip)
        return self._decide(chosen, item, resolved, resume, forced=True)

    def _chosen(
        self, name: str, source: str, owner: str | None, member: Name | None, *, skip: bool
    ) -> Item[Name, Event]:
        """Return the statement to execute.

        Without ``owner`` and ``member``, it must be the only one.
        """
        items = self.candidates(source)
        if member is not None:
            items = tuple(item for item in items if item.member == member)
            if not items:
                raise UnlockError(f"{member} of source {source} has no statement for {name}")
        left = self.choices() if owner is None else {item.text for item in items}
        if len(left) > 1 and not skip:
            whose = "shards" if owner is None else f"shards of source {source}"
            raise DisputedError(f"{whose} have different statements for {name}")
        return items[0]

    def choices(self) -> tuple[Choice[Name, Event], ...]:
        """Return the different statements that members have as the next item, if they differ."""
        having: dict[str, list[tuple[str, Item[Name, Event]]]] = {}
        texts: dict[str, set[str]] = {}
        for source in self.sources:
            for item in self.candidates(source):
                having.setdefault(item.text, []).append((source, item))
                texts.setdefault(source, set()).add(item.text)
        if len(having) < 2:
            return ()
        return tuple(self._choice(found, texts) for found in having.values())

    @staticmethod
    def _choice(
        found: Sequence[tuple[str, Item[Name, Event]]], texts: Mapping[str, set[str]]
    ) -> Choice[Name, Event]:
        """Return the choice of a statement; ``texts``: by source, all texts."""
        alone = ((source, item) for source, item in found if len(texts[source]) == 1)
        source, item = next(alone, found[0])
        members: dict[str, list[Name]] = {}
        for holder, held in found:
            members.setdefault(holder, []).append(held.member)
        return Choice(
            source,
            item,
            {holder: tuple(names) for holder, names in members.items()},
            by_member=len(texts[source]) > 1,
        )

    def _decide(
        self,
        owner: str,
        item: Item[Name, Event],
        resolved: ResolvedItem,
        resume: Mapping[str, Place],
        *,
        forced: bool,
    ) -> Resolution[Name, Event]:
        cutovers = {
            source: group.cut_over(resolved, resume[source], forced=forced)
            for source, group in self.groups.items()
        }
        assert cutovers.keys() == set(self.sources), f"{self}: decided without {self.sources}"
        for source, cutover in cutovers.items():
            self._cutovers[source].append(cutover)
        self.owner = owner
        self.pending = Resolution(self.version + 1, owner, item, resolved, cutovers)
        return self.pending

    @property
    def pending_item(self) -> Item[Name, Event]:
        """The pending item as it was decided, with the event that its owner last read."""
        assert self.pending is not None, f"{self}: nothing was decided"
        decided = self.pending.item
        read = (item for item in self.candidates(self.pending.owner) if item.at == decided.at)
        # Only the event is replaced: the member may have been renamed, and the saved item has the
        # old name.
        return replace(decided, event=next(read, decided).event)

    @property
    def may_execute(self) -> bool:
        """Whether all sources have passed their cutovers, so that no older row can follow.

        The item may be executed when the writer has applied all rows that the groups have
        forwarded.
        """
        return self.pending is not None and all(
            source in self.groups and self.groups[source].base > self.version
            for source in self.sources
        )

    def executed(self) -> None:
        """Record that the pending item is executed on the target and recorded as done.

        The caller makes groups that `Group.can_adopt` adopt the version, and restarts the sources
        of the others. Until then, these groups use the version that they know.
        """
        assert self.pending is not None, f"{self}: nothing was decided"
        self.history = (*self.history, self.pending.resolved)
        self.pending = None
        self.owner = None

    def leave_out_truncations(self) -> frozenset[str]:
        """Stop counting TRUNCATEs of members as items if others have another statement instead.

        Returns the sources that must restart, because the versions of their later rows are one
        lower.
        """
        left_out = {
            (source, item.at)
            for version in self._disputed_versions()
            for source, item in self._items_of(version)
            if item.text.startswith(TRUNCATION)
        }
        self.left_out |= left_out
        return frozenset(source for source, _ in left_out)

    def _items_of(self, version: int) -> list[tuple[str, Item[Name, Event]]]:
        """Return the open items of a version, with their sources.

        Excludes items of tables ahead, whose numbers may change when these tables join.
        """
        groups = ((source, self.groups.get(source)) for source in self.sources)
        return [
            (source, item)
            for source, group in groups
            if group is not None
            for item in group.items.get(version, ())
            if item.member not in group.unmatched and item.member not in group.waiting
        ]

    def _disputed_versions(self) -> list[int]:
        """Return the versions of open items on which members differ, however far ahead, in order.

        Compares only new items, because there may be thousands of open ones.
        """
        added = set().union(*(group.added for group in self.groups.values()))
        for group in self.groups.values():
            group.added.clear()
        decided = self.version + (self.pending is not None)
        self._disputed = {
            version
            for version in self._disputed | added
            if version > decided and len({item.text for _, item in self._items_of(version)}) > 1
        }
        return sorted(self._disputed)

    # The operator's view.

    def conflict(self) -> Conflict[Name, Event] | None:
        """Return the first item, however far ahead, on which members differ."""
        if not (disputed := self._disputed_versions()):
            return None
        version = disputed[0]
        (ours, our_item), *others = self._items_of(version)
        theirs, their_item = next(found for found in others if found[1].text != our_item.text)
        return Conflict(
            version,
            Claim(ours, self._sequence(ours, our_item, version)),
            Claim(theirs, self._sequence(theirs, their_item, version)),
        )

    def _sequence(
        self, source: str, item: Item[Name, Event], version: int
    ) -> tuple[Item[Name, Event], ...]:
        items = self.groups[source].items
        later = [i for v in sorted(items) if v > version for i in items[v]]
        return (item, *(i for i in later if i.member == item.member))

    def view(self) -> LockView[Name, Event] | None:
        """Return the lock on the next item, or None if no member has it."""
        items = [item for source in self.sources for item in self.candidates(source)]
        if self.pending is not None:
            items = [self.pending.item]
        elif self.owner is not None:
            items = list(self.candidates(self.owner))
        if not items:
            return None
        return LockView(
            target=self.target,
            version=self.version + 1,
            item=items[0],
            owner=self.owner,
            ready=tuple(source for source in self.sources if self.ready(source)),
            missing={
                s: found for s, group in self.groups.items() if (found := group.missing(items[0]))
            },
            rows_held=sum(group.rows_held for group in self.groups.values()),
            conflict=self.conflict(),
            resolving=self.pending is not None,
            choices=() if self.pending is not None else self.choices(),
            outside=self.outside if items[0].discards_rows and self.pending is None else (),
        )
