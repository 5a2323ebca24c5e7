"""Every run of a small scope: all interleavings, a crash at every step, states visited once.

One target, two sources, each event a transaction and a chunk of its own, one bucket. Each member
plays a script such as ``RDRD`` (R: a row, D: the next DDL); in which order a source's members do,
is decided as its binlog is read, so all binlogs are covered. The groups and locks are those of
production. A state is left out when one was seen that differs only by names or in what can never
be read again. When rows are written and checkpoints saved matters to nobody before a crash, a
restart or a DDL: so it is decided there, for each source, how far it had come by then (saved at the
earliest or at the latest place possible).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from replicator.sharding.group import Group
from replicator.sharding.items import (
    At,
    Decision,
    GroupState,
    Item,
    MemberState,
    Past,
    Turn,
    boundary,
)
from replicator.sharding.lock import Resolution, TargetLock
from replicator.sharding.resume import Boundary
from tests.simulation.estate import BEGINNING
from tests.simulation.store import BrokenError, Point

Step = tuple[str, str, str]
Scripts = dict[str, dict[str, str]]
"""By source and member."""
Orders = dict[str, tuple[str, ...]]
"""By source, the members in the order of their events: a binlog given beforehand."""
NOWHERE: Point = (0, At(-1, -1))


class Event(NamedTuple):
    """An event of a binlog; ``version`` is how many DDL its member had before it."""

    member: str
    kind: str
    version: int


@dataclass(slots=True)
class SmallSource:
    """A source: its binlog as far as it was ever read, its incarnation, what is saved of it."""

    log: tuple[Event, ...]
    played: dict[str, int]
    applied: frozenset[int]
    point: Point
    saved: Boundary[GroupState]
    turns: tuple[Turn, ...]
    next: int
    group: Group
    boundaries: tuple[Boundary[GroupState], ...]
    limit: int = 0
    queue: tuple[tuple[int, int], ...] = ()
    stopping: bool = False

    def note_limit(self) -> None:
        """The source could be saved up to here, when everything before is applied."""
        free = min((at.transaction for at in self.group.open_items), default=self.next)
        self.limit = max(self.limit, min(free, self.next))

    def ways(self) -> list[str]:
        """What a crash leaves: none or all rows written, saved early or late."""
        late = len(self.savable()) > 1
        found = ["none early", "none late"][: 1 + late]
        if self.queue:
            found += ["all early", "all late"]
        return found

    def savable(self) -> list[Boundary[GroupState]]:
        """Where it may be saved: at the earliest, and at the latest."""
        applied = self.queue[0][0] if self.queue else self.next
        last = [b for b in self.boundaries if b.key <= min(self.limit, applied)][-1]
        return [self.saved] if last.key == self.saved.key else [self.saved, last]


class Small:
    """A state of the small scope."""

    def __init__(self, scripts: Scripts, crashes: int, orders: Orders | None = None) -> None:
        self.scripts = scripts
        self.orders = orders
        self.crashes = crashes
        self.executed = 0
        self.recorded = 0
        self.pending: Resolution | None = None
        self.sources: dict[str, SmallSource] = {}
        self.lock = TargetLock("T", scripts)
        for name, members in scripts.items():
            state = GroupState(0, tuple((m, MemberState(0, BEGINNING)) for m in sorted(members)))
            saved = Boundary(0, state)
            self.sources[name] = SmallSource(
                (),
                dict.fromkeys(members, 0),
                frozenset(),
                NOWHERE,
                saved,
                (),
                0,
                self.lock.start(name, state, boundary(0)),
                (saved,),
            )

    def copy(self) -> Small:
        new = copy.copy(self)
        new.lock = copy.copy(self.lock)
        new.lock.groups = {}
        new.lock._turns = {name: list(turns) for name, turns in self.lock._turns.items()}
        new.sources = {}
        for name, source in self.sources.items():
            mine = new.sources[name] = copy.copy(source)
            mine.played = dict(source.played)
            group = mine.group = copy.copy(source.group)
            group.members = dict(group.members)
            group.items = dict(group.items)
            group.held = group.held.copy()
            if name in self.lock.groups:
                new.lock.groups[name] = group
        return new

    def key(self) -> object:
        """The state without names, and counted from the saved positions."""
        sources = sorted(self._source_key(name) for name in self.sources)
        return (self.crashes, self.executed, self.recorded, self.pending is not None, *sources)

    def _source_key(self, name: str) -> tuple[object, ...]:
        source = self.sources[name]
        names = sorted(source.played)
        keys = [self._named_key(name, dict(zip(names, range(len(names)), strict=True)))]
        if not self.orders and len(set(self.scripts[name].values())) == 1 and len(names) == 2:
            keys.append(self._named_key(name, {names[0]: 1, names[1]: 0}))
        return min(keys)

    def _named_key(self, name: str, number: dict[str, int]) -> tuple[object, ...]:
        source = self.sources[name]
        group = source.group
        first = source.saved.key
        point = source.point
        return (
            source.stopping,
            source.next - first,
            group.known,
            group.base,
            point[0],
            max(point[1].transaction - first, -1),
            tuple((number[e.member], e.kind, e.version) for e in source.log[first:]),
            tuple(sorted((number[m], n) for m, n in source.played.items())),
            tuple(sorted(n - first for n in source.applied if n >= first)),
            tuple(
                (t.version, t.at.transaction - first)
                for t in source.turns
                if t.at >= boundary(first)
            ),
            tuple(sorted((number[m], s.version) for m, s in group.members.items())),
            tuple(sorted((v, n) for v, n in group.held.items() if n)),
            tuple(sorted((v, number[i.member]) for v, items in group.items.items() for i in items)),
            max(group._settled.transaction - first, -1),
            tuple((key - first, version) for key, version in source.queue),
            source.limit - first,
            source.saved.state.base,
        )

    # The steps.

    def steps(self) -> list[Step]:
        """What can happen next, but for crashes.

        While no item is decided, the events of a source that is not ready concern nobody else:
        nothing can be decided without them. So they are not mixed with the steps of others.
        """
        if self.pending is None and not self.lock.agreed:
            for name, source in self.sources.items():
                late = source.stopping or source.group.known < self.recorded
                if not late and not self.lock.ready(name) and (reads := self.reads(name)):
                    return reads
        found = [step for name in self.sources for step in self.source_steps(name)]
        if self.lock.agreed:
            found.append(("resolve", "", ""))
        if self.executed > self.recorded:
            found.append(("finish", "", ""))
        elif self.pending and self.lock.may_execute:
            found.append(("execute", "", ""))
        return found

    def reads(self, name: str) -> list[Step]:
        source = self.sources[name]
        if source.next < len(source.log):
            members = [source.log[source.next].member]
        elif self.orders:
            members = list(self.orders[name][source.next : source.next + 1])
        else:
            members = [m for m, s in self.scripts[name].items() if source.played[m] < len(s)]
        return [("read", name, member) for member in members]

    def source_steps(self, name: str) -> list[Step]:
        source = self.sources[name]
        if source.stopping:
            return [("restart", name, "")]
        if source.group.known < self.recorded:
            return [*self.reads(name), ("tell", name, "")]
        return self.reads(name)

    def crashes_now(self) -> Iterator[Step]:
        """All ways to crash: what was written and saved of each source."""
        if self.crashes:
            ways = [source.ways() for source in self.sources.values()]
            for way in product(*ways):
                yield "crash", " ".join(way), ""

    def do(self, step: Step) -> None:
        kind, name, argument = step
        getattr(self, f"do_{kind}")(*(part for part in (name, argument) if part))

    def do_read(self, name: str, member: str) -> None:
        source = self.sources[name]
        group = source.group
        key = source.next
        if key == len(source.log):
            script = self.scripts[name][member]
            played = source.played[member]
            event = Event(member, script[played], script[:played].count("D"))
            source.log = (*source.log, event)
            source.played[member] += 1
        event = source.log[key]
        source.next += 1
        if event.kind == "R":
            if group.row(member, At(key, 1)) is Decision.APPLY:
                source.queue = (*source.queue, (key, group.known))
        else:
            text = f"d{event.version}"
            group.ddl(Item(text, (text,), member, At(key, 0)))
        source.boundaries = (*source.boundaries, Boundary(key + 1, group.state))
        source.note_limit()
        self.lock.look()

    def apply(self, source: SmallSource, count: int) -> None:
        for key, version in source.queue[:count]:
            if (version, At(key, 1)) > source.point:
                event = source.log[key]
                if not event.version == version == self.executed:
                    raise BrokenError(f"{event} is applied as {version} at {self.executed}")
                if key in source.applied:
                    raise BrokenError(f"{event} is applied twice")
                source.applied |= {key}
                source.point = (version, At(key, 1))
        source.queue = source.queue[count:]

    def barrier(self) -> None:
        """The writer applies what was forwarded."""
        for source in self.sources.values():
            self.apply(source, len(source.queue))

    def save(self, source: SmallSource, where: Boundary[GroupState]) -> None:
        source.saved = where
        for key, event in enumerate(source.log[: source.saved.key]):
            if event.kind == "R" and key not in source.applied:
                raise BrokenError(f"{event} is behind the saved position and not applied")

    def do_resolve(self) -> None:
        resume = {name: boundary(source.limit) for name, source in self.sources.items()}
        self.pending = self.lock.resolve(resume)
        for name, turn in self.pending.turns.items():
            source = self.sources[name]
            source.turns = (*source.turns, turn)

    def do_execute(self) -> None:
        self.barrier()
        self.executed += 1

    def do_finish(self) -> None:
        self.recorded += 1
        self.pending = None
        self.lock.executed()

    def do_tell(self, name: str) -> None:
        source = self.sources[name]
        if source.group.can_adopt:
            source.group.adopt()
            source.note_limit()
            self.lock.look()
        else:
            source.stopping = True

    def do_restart(self, name: str) -> None:
        source = self.sources[name]
        self.apply(source, len(source.queue))
        self.save(source, source.savable()[-1])
        self.lock.stop(name)
        self.start(name)
        self.lock.look()

    def start(self, name: str) -> None:
        source = self.sources[name]
        version, at = source.point
        source.group = self.lock.start(
            name,
            source.saved.state,
            boundary(source.saved.key),
            at if version == self.lock.version and at > NOWHERE[1] else None,
        )
        source.boundaries = (source.saved,)
        source.next = source.limit = source.saved.key
        source.queue = ()
        source.stopping = False

    def do_crash(self, way: str) -> None:
        self.crashes -= 1
        words = iter(way.split())
        for source, rows, place in zip(self.sources.values(), words, words, strict=True):
            self.apply(source, len(source.queue) if rows == "all" else 0)
            self.save(source, source.savable()[-1 if place == "late" else 0])
        if self.executed > self.recorded:
            self.recorded += 1
            self.pending = None
        self.lock = TargetLock(
            "T",
            self.scripts,
            [Past(f"d{version}") for version in range(self.recorded)],
            {name: source.turns for name, source in self.sources.items()},
            self.pending,
        )
        for name in self.sources:
            self.start(name)

    def check_end(self) -> None:
        """Nothing can happen any more: every row must be there."""
        self.barrier()
        for name, source in self.sources.items():
            for key, event in enumerate(source.log):
                if event.kind == "R" and key not in source.applied:
                    raise BrokenError(f"{event} of {name} is lost")


@dataclass(frozen=True, slots=True)
class Explored:
    """What a search has seen; ``failure`` with the ``path`` that leads to it, if there is one."""

    states: int
    transitions: int
    failure: str | None = None
    path: tuple[Step, ...] = ()

    def failed(self, reason: str, path: tuple[Step, ...]) -> Explored:
        return replace(self, failure=reason, path=path)


def explore(scripts: Scripts, crashes: int = 1, orders: Orders | None = None) -> Explored:
    """Visit every state; stops at the first failure. Without ``orders``, with all binlogs."""
    first = Small(scripts, crashes, orders)
    seen = {hash(first.key())}
    waiting: list[tuple[Small, object]] = [(first, None)]
    transitions = 0
    while waiting:
        state, path = waiting.pop()
        steps = state.steps()
        try:
            if not steps:
                state.check_end()
        except BrokenError as error:
            return Explored(len(seen), transitions, str(error), _unroll(path))
        for step in (*steps, *state.crashes_now()):
            new = state.copy()
            transitions += 1
            try:
                new.do(step)
            except (BrokenError, AssertionError, LookupError) as error:
                return Explored(len(seen), transitions, repr(error), _unroll((step, path)))
            key = hash(new.key())
            if key not in seen:
                seen.add(key)
                waiting.append((new, (step, path)))
    return Explored(len(seen), transitions)


def _unroll(path: object) -> tuple[Step, ...]:
    steps: list[Step] = []
    while isinstance(path, tuple):
        step, path = path
        steps.append(step)
    return tuple(reversed(steps))


def scope(a1: str, a2: str, b1: str, b2: str) -> Scripts:
    """Two sources of two members, each with its script; no script, no member."""
    members = {"A": {"a1": a1, "a2": a2}, "B": {"b1": b1, "b2": b2}}
    return {
        source: {name: script for name, script in scripts.items() if script}
        for source, scripts in members.items()
    }


def binlogs(scripts: Scripts) -> Iterator[Orders]:
    """All binlogs of these scripts, but for those that differ by the names of equal members."""
    sources = []
    for members in scripts.values():
        names = sorted(members)
        found = set(_orders({name: len(script) for name, script in members.items()}))
        if len(set(members.values())) == 1:
            found = {order for order in found if not order or order[0] == names[0]}
        sources.append(sorted(found))
    for orders in product(*sources):
        yield dict(zip(scripts, orders, strict=True))


def _orders(left: dict[str, int]) -> Iterator[tuple[str, ...]]:
    if not any(left.values()):
        yield ()
    for name, count in left.items():
        if count:
            for rest in _orders({**left, name: count - 1}):
                yield (name, *rest)
