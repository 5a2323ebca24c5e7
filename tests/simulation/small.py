"""Every run of a small scope: all interleavings, a crash at every step, states visited once.

One target, a few sources (`tests.simulation.small_source`), and the lock: groups and lock are those
of production. A state is the sources' and what they share (`Centre`); two are the same if they
differ only by names or in what can never be read again. `explore` goes through all of them one by
one; `tests.simulation.decoupled` does so for larger scopes, in sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import product
from typing import NamedTuple

from replicator.sharding.items import HistoryError, Item, ResolvedItem
from replicator.sharding.pessimistic.lock import Resolution, TargetLock
from replicator.watermark import boundary
from tests.simulation.small_source import Scripts, SmallSource, new_source
from tests.simulation.store import BrokenError

Scope = tuple[Scripts, ...]
"""The scripts of each source's members."""
Step = tuple[str, ...]
Failed = (BrokenError, AssertionError, LookupError, HistoryError)
NAMES = "ABCD"


class Stage(IntEnum):
    """Of the next item: each is a step that a crash may come before or after."""

    OPEN = 0
    DECIDED = 1
    SAVED = 2
    EXECUTED = 3


class Centre(NamedTuple):
    """What the sources share; ``recorded`` items are known to be executed, one more may be."""

    crashes: int
    recorded: int
    stage: Stage

    @property
    def executed(self) -> int:
        return self.recorded + (self.stage is Stage.EXECUTED)


@dataclass(slots=True)
class Small:
    """A state, as it is when the process has these sources; a source that is None is away."""

    centre: Centre
    sources: list[SmallSource | None]
    lock: TargetLock[str, None] = field(init=False)

    def __post_init__(self) -> None:
        self.lock = self.new_lock()
        for name, source in self.named():
            self.lock.groups[name] = source.group
        self.lock.look()

    def named(self) -> Iterator[tuple[str, SmallSource]]:
        """The sources that are not away."""
        return ((n, s) for n, s in zip(NAMES, self.sources, strict=False) if s is not None)

    def new_lock(self) -> TargetLock[str, None]:
        """The lock of what is recorded, without any source."""
        version = self.centre.recorded
        cutovers = {name: list(source.cutovers) for name, source in self.named()}
        pending = None
        if self.centre.stage is not Stage.OPEN:
            text = f"d{version}"
            last = {name: source.cutovers[-1] for name, source in self.named()}
            owner = next(iter(last))
            item = Item(text, (text,), "0", last[owner].at, None)
            pending = Resolution(version + 1, owner, item, ResolvedItem(text), last)
        names = NAMES[: len(self.sources)]
        return TargetLock(
            "T", names, [ResolvedItem(f"d{v}") for v in range(version)], cutovers, pending
        )

    # The steps of one source: nobody else is asked or changed.

    def own_steps(self, index: int) -> list[Step]:
        """What one source can do."""
        source = self.source(index)
        if source.stopping:
            return [("restart",)]
        found: list[Step] = [("read", str(member)) for member in source.events()]
        if source.group.known < self.centre.recorded:
            found.append(("tell",))
            if source.group.can_release and not source.group.can_adopt:
                # There was no room in memory for the rows.
                found.append(("drop",))
        return found

    def source(self, index: int) -> SmallSource:
        """One that is not away."""
        source = self.sources[index]
        assert source is not None
        return source

    def do_own(self, index: int, step: Step) -> None:
        """One source takes a step."""
        source = self.source(index)
        if step[0] == "read":
            source.read(int(step[1]))
        elif step[0] == "restart":
            source.restart(NAMES[index], self.lock, self.centre.executed)
        elif source.group.can_adopt:
            source.group.adopt()
            source.note_limit()
        elif source.group.can_release and step[0] == "tell":
            source.release()
            source.note_limit()
        else:
            source.stopping = True
        self.lock.look()

    # The steps of all sources together, but for a crash.

    def shared_step(self) -> Step | None:
        """What the lock can do, if anything."""
        stage = self.centre.stage
        if stage is Stage.OPEN:
            return ("decide",) if self.lock.agreed else None
        if stage is Stage.SAVED:
            return ("execute",) if self.lock.may_execute else None
        return ("save",) if stage is Stage.DECIDED else ("finish",)

    def do_shared(self, step: Step) -> None:
        """The lock takes its step."""
        crashes, recorded, stage = self.centre
        if step == ("finish",):
            self.lock.executed()
            self.centre = Centre(crashes, recorded + 1, Stage.OPEN)
            return
        if step == ("decide",):
            self.decide()
        elif step == ("execute",):
            self.barrier()
        self.centre = Centre(crashes, recorded, Stage(stage + 1))

    def barrier(self) -> None:
        """The writer applies what the groups have forwarded."""
        for _, source in self.named():
            source.apply(len(source.queue), self.centre.executed)

    def decide(self) -> None:
        """All cutovers are noted; they are not saved yet."""
        resume = {name: boundary(source.limit) for name, source in self.named()}
        decided = self.lock.resolve(resume)
        if decided.resolved != ResolvedItem(f"d{self.centre.recorded}"):
            raise BrokenError(f"{decided.resolved} is decided as item {decided.version}")
        for name, source in self.named():
            source.cutovers = (*source.cutovers, decided.cutovers[name])

    def check_end(self) -> None:
        """Nothing can happen any more: every row must be there, and nothing wait."""
        if self.lock.view() is not None:
            raise BrokenError(f"waits for ever: {self.lock.view()}")
        self.barrier()
        for _, source in self.named():
            source.check_applied(len(source.log))


def crashed(centre: Centre) -> Centre:
    """What a crash makes of it: the fingerprint tells that an item was executed."""
    crashes, recorded, stage = centre
    kept = Stage.SAVED if stage is Stage.SAVED else Stage.OPEN
    return Centre(crashes - 1, recorded + (stage is Stage.EXECUTED), kept)


def after_crash(centre: Centre, before: SmallSource, count: int, index: int) -> list[SmallSource]:
    """What a crash may make of one of ``count`` sources."""
    found = []
    for left in before.ways():
        source = before.copy()
        source.crash(left, centre.executed, decided=centre.stage is Stage.DECIDED)
        sources: list[SmallSource | None] = [None] * count
        sources[index] = source
        new = Small(crashed(centre), sources)
        new.lock.stop(NAMES[index])
        source.start(NAMES[index], new.lock)
        found.append(source)
    return found


class Catalogue:
    """The states of single sources, numbered; one of those that are the same stands for all."""

    def __init__(self) -> None:
        self.sources: list[SmallSource] = []
        self._numbers: dict[object, int] = {}

    def number(self, source: SmallSource) -> int:
        """The number of the states that are the same as this one."""
        key = source.key()
        number = self._numbers.setdefault(key, len(self.sources))
        if number == len(self.sources):
            self.sources.append(source)
        return number


State = tuple[Centre, tuple[int, ...]]


@dataclass(slots=True)
class Explored:
    """What a search has seen; ``failure`` with the ``path`` that leads to it, if there is one."""

    states: set[State] = field(default_factory=set)
    transitions: int = 0
    failure: str | None = None
    path: tuple[Step, ...] = ()


def start(scope: Scope, catalogue: Catalogue) -> tuple[int, ...]:
    """The sources of a scope at the beginning."""
    lock: TargetLock[str, None] = TargetLock("T", NAMES[: len(scope)])
    return tuple(
        catalogue.number(new_source(name, scripts, lock))
        for name, scripts in zip(NAMES, scope, strict=False)
    )


def explore(scope: Scope, crashes: int, catalogue: Catalogue) -> Explored:
    """Visit every state, each step in every one; stops at the first failure."""
    first = (Centre(crashes, 0, Stage.OPEN), tuple(sorted(start(scope, catalogue))))
    found = Explored({first})
    parents: dict[State, tuple[State, Step]] = {}
    waiting = [first]
    while waiting:
        state = waiting.pop()
        step: Step = ("end",)
        try:
            for step, centre, sources in _successors(state, catalogue):
                found.transitions += 1
                new = (centre, tuple(sorted(map(catalogue.number, sources))))
                if new not in found.states:
                    found.states.add(new)
                    parents[new] = (state, step)
                    waiting.append(new)
        except Failed as error:
            found.failure = f"{type(error).__name__}: {error}"
            found.path = (step,)
            while state in parents:
                state, step = parents[state]
                found.path = (step, *found.path)
            break
    return found


def _successors(
    state: State, catalogue: Catalogue
) -> Iterator[tuple[Step, Centre, list[SmallSource]]]:
    centre, numbers = state

    def fresh(moving: range) -> Small:
        sources = [catalogue.sources[number] for number in numbers]
        return Small(centre, [s.copy() if i in moving else s for i, s in enumerate(sources)])

    everybody = range(len(numbers))
    still = fresh(range(0))
    shared = still.shared_step()
    own = [(index, step) for index in everybody for step in still.own_steps(index)]
    for index, step in own:
        new = fresh(range(index, index + 1))
        new.do_own(index, step)
        yield (NAMES[index], *step), centre, list(map(new.source, everybody))
    if shared:
        new = fresh(everybody)
        new.do_shared(shared)
        yield shared, new.centre, list(map(new.source, everybody))
    elif not own:
        fresh(everybody).check_end()
    if centre.crashes:
        ways = [
            after_crash(centre, catalogue.sources[number], len(numbers), index)
            for index, number in enumerate(numbers)
        ]
        for left in product(*ways):
            yield ("crash",), crashed(centre), list(left)
