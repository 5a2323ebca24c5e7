"""A source of the small scopes: its binlog, what is applied and saved of it, its group.

Each event is a transaction and a segment of its own. Each member plays a script such as ``RDRD``
(R: a row, D: the next DDL); in which order the members do is decided as the binlog is read, so all
binlogs are covered. When rows are written and checkpoints saved matters to nobody before a crash, a
restart or a DDL: so it is decided there how far both had come by then.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

from actors.writing.segment_tracker import Boundary
from replicator.sharding.hold import HeldPart, HoldBudget, HoldBuffer
from replicator.sharding.items import Cutover, GroupState, Item, MemberState, RowDecision
from replicator.sharding.pessimistic.group import Group
from replicator.sharding.pessimistic.lock import TargetLock
from replicator.watermark import Place, boundary
from tests.simulation.estate import BEGINNING
from tests.simulation.store import BrokenError, Watermark

Scripts = tuple[str, ...]
"""Of the members of one source, which are called by their numbers."""
NOWHERE: Watermark = (0, Place(-1, -1))


class Event(NamedTuple):
    """An event of a binlog; ``version`` is how many DDL its member had before it."""

    member: int
    kind: str
    version: int


class Left(NamedTuple):
    """What a crash leaves: so many of the waiting rows are written, saved at this boundary."""

    rows: int
    saved: Boundary[GroupState[str]]


@dataclass(slots=True)
class SmallSource:
    """A source. ``log`` is its binlog as far as anything depends on it; ``queue`` are the rows
    that the writer has, by place and version; ``limit`` is where it might be saved if they were
    applied; ``cutovers`` include one that is decided and not saved yet.
    """

    scripts: Scripts
    saved: Boundary[GroupState[str]]
    group: Group[str, None]
    boundaries: tuple[Boundary[GroupState[str]], ...]
    log: tuple[Event, ...] = ()
    next: int = 0
    applied: frozenset[int] = frozenset()
    watermark: Watermark = NOWHERE
    cutovers: tuple[Cutover, ...] = ()
    queue: tuple[tuple[int, int], ...] = ()
    limit: int = 0
    stopping: bool = False

    def copy(self) -> SmallSource:
        """A source that can go another way: with a group of its own."""
        new = copy.copy(self)
        group = new.group = Group.__new__(Group)
        vars(group).update(vars(self.group))
        group.members = dict(group.members)
        group.items = dict(group.items)
        group.added = set(group.added)
        group.held = group.held.copy()
        group.releasing = dict(group.releasing)
        group.buffer = _copied(group.buffer)
        return new

    # Which states are the same.

    def key(self) -> tuple[object, ...]:
        """All that can matter later, whichever of the members with equal scripts it is.

        Counted from the saved position: nothing before it is read again. How many rows are held is
        only shown; whether there are any matters. ``since`` goes with a member and is never asked.
        """
        numbers = range(len(self.scripts))
        return min(
            self._numbered(order)
            for order in permutations(numbers)
            if all(self.scripts[order[n]] == self.scripts[n] for n in numbers)
        )

    def _numbered(self, number: tuple[int, ...]) -> tuple[object, ...]:
        group = self.group
        first = self.saved.key

        def place(at: Place) -> tuple[int, int]:
            return (at.transaction - first, at.ordinal) if at >= boundary(first) else (-1, -1)

        return (
            self.scripts,
            self.stopping,
            self.next - first,
            self.limit - first,
            group.known,
            group.base,
            place(group.seen),
            place(group._acted_upon),
            place(group._resume),
            (self.watermark[0], place(self.watermark[1])),
            tuple((number[e.member], e.kind, e.version) for e in self.log[first:]),
            tuple(sorted((number[m], self.played(m)) for m in range(len(self.scripts)))),
            tuple(sorted(n - first for n in self.applied if n >= first)),
            tuple((t.version, place(t.at)) for t in self.cutovers if t.version > self._base),
            tuple(sorted((number[int(m)], s.version) for m, s in group.members.items())),
            tuple(sorted(version for version, count in group.held.items() if count)),
            tuple(
                sorted(
                    (version, tuple(part.rows - first for part in parts))
                    for version, parts in group.buffer._parts.items()
                )
            ),
            tuple(
                sorted(
                    (version, number[int(item.member)], place(item.at))
                    for version, items in group.items.items()
                    for item in items
                )
            ),
            tuple((key - first, version) for key, version in self.queue),
            tuple((b.key - first, b.state.base) for b in self.boundaries),
        )

    @property
    def _base(self) -> int:
        return self.saved.state.base

    def played(self, member: int) -> int:
        """How many events of a member are in the binlog."""
        return sum(event.member == member for event in self.log)

    # What it does by itself.

    def events(self) -> list[int]:
        """The members that the next event may be of."""
        if self.next < len(self.log):
            return [self.log[self.next].member]
        return [m for m, script in enumerate(self.scripts) if self.played(m) < len(script)]

    def read(self, member: int) -> None:
        """The group decides the next event."""
        group = self.group
        key = self.next
        if key == len(self.log):
            script, played = self.scripts[member], self.played(member)
            version = script[:played].count("D")
            self.log = (*self.log, Event(member, script[played], version))
        event = self.log[key]
        self.next += 1
        if event.kind == "R":
            decision = group.row(str(member), Place(key, 1))
            if decision is RowDecision.APPLY:
                self.queue = (*self.queue, (key, group.known))
            elif decision is RowDecision.HOLD:
                version = group.members[str(member)].version
                group.buffer.add(version, HeldPart(key, 1, 1))
        else:
            text = f"d{event.version}"
            group.ddl(Item(text, (text,), str(member), Place(key, 0), None))
        self.boundaries = (*self.boundaries, Boundary(key + 1, group.state))
        self.note_limit()

    def release(self) -> None:
        """The rows of the next version go to the writer, from memory.

        The writer applies them in order, and nothing is saved behind the first that is not applied:
        so the version's items need not stay open.
        """
        group = self.group
        rows = group.release()
        self.queue = (*self.queue, *((key, group.known) for key in rows))
        if group.known in group.releasing:
            group.released(group.known)

    def note_limit(self) -> None:
        """It may be saved up to here, once everything before is applied."""
        free = min((at.transaction for at in self.group.open_items), default=self.next)
        self.limit = max(self.limit, min(free, self.next))

    def apply(self, count: int, executed: int) -> None:
        """The writer applies the first rows that it has, to a target of this version."""
        for key, version in self.queue[:count]:
            if not self.has((version, Place(key, 1))):
                event = self.log[key]
                if not event.version == version == executed:
                    raise BrokenError(f"{event} is applied as {version} at {executed}")
                if key in self.applied:
                    raise BrokenError(f"{event} is applied twice")
                self.applied |= {key}
                self.watermark = (version, Place(key, 1))
        self.queue = self.queue[count:]

    def has(self, watermark: Watermark) -> bool:
        """Whether the target's own watermark says that it has this row."""
        return watermark <= self.watermark

    def restart(self, name: str, lock: TargetLock[str, None], executed: int) -> None:
        """Everything is applied and saved, and reading restarts from there."""
        self.apply(len(self.queue), executed)
        self.save(self.savable(0)[-1])
        lock.stop(name)
        self.start(name, lock)

    def savable(self, rows: int) -> list[Boundary[GroupState[str]]]:
        """Where it may have been saved last, when so many rows are applied."""
        applied = self.queue[rows][0] if rows < len(self.queue) else self.next
        last = min(self.limit, applied)
        return [found for found in self.boundaries if found.key <= last]

    def save(self, where: Boundary[GroupState[str]]) -> None:
        """Nothing before the place is ever read again: all rows must be applied."""
        self.saved = where
        self.check_applied(where.key)

    def check_applied(self, end: int) -> None:
        """Raises BrokenError if a row before ``end`` is not applied."""
        for key, event in enumerate(self.log[:end]):
            if event.kind == "R" and key not in self.applied:
                raise BrokenError(f"{event} at {key} is lost")

    def start(self, name: str, lock: TargetLock[str, None]) -> None:
        """A new incarnation, from what is saved."""
        version, at = self.watermark
        applied = at if version == lock.version and at > NOWHERE[1] else None
        state, key = self.saved.state, self.saved.key
        self.group = lock.start(name, state, boundary(key), applied)
        self.boundaries = (self.saved,)
        self.next = self.limit = key
        self.queue = ()
        self.stopping = False

    # What a crash leaves.

    def ways(self) -> Iterator[Left]:
        """All that a crash may leave: some of the rows, saved somewhere behind what is applied."""
        for rows in range(len(self.queue) + 1):
            for where in self.savable(rows):
                yield Left(rows, where)

    def crash(self, left: Left, executed: int, *, decided: bool) -> None:
        """Only what is saved remains; ``decided``: the last cutover is not."""
        self.apply(left.rows, executed)
        self.save(left.saved)
        self.cutovers = self.cutovers[: len(self.cutovers) - decided]
        self.forget()

    def forget(self) -> None:
        """What was read of the binlog and left no trace is open again.

        It will be read as something else too: that run is the one where the binlog was that from
        the beginning.
        """
        traces = [*self.applied, *(cutover.at.transaction for cutover in self.cutovers)]
        self.log = self.log[: max([self.saved.key, *(key + 1 for key in traces)])]


def _copied(buffer: HoldBuffer[int]) -> HoldBuffer[int]:
    new: HoldBuffer[int] = HoldBuffer(HoldBudget())
    new._parts = {version: list(parts) for version, parts in buffer._parts.items()}
    new._lost = buffer._lost
    return new


def new_source(name: str, scripts: Scripts, lock: TargetLock[str, None]) -> SmallSource:
    """A source at the beginning."""
    members = tuple((str(number), MemberState(0, BEGINNING)) for number in range(len(scripts)))
    saved = Boundary(0, GroupState(0, members))
    group = lock.start(name, saved.state, boundary(0))
    return SmallSource(scripts, saved, group, (saved,))
