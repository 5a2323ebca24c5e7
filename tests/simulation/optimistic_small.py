"""Every run of a small scope of the join rule: all interleavings, with crashes at any step.

A scope is a script for each source: ``R`` writes a row of its member, another letter is a statement
of `STATEMENTS`. States that were visited are not visited again.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import product

from tests.simulation.optimistic import Follower, OptimisticWorld, Part, Step
from tests.simulation.optimistic_estate import SOURCES, Event, OptimisticEstate, Shard
from tests.simulation.store import BrokenError

STATEMENTS = {
    "A": ("add", 1),
    "B": ("add", 7),
    "D": ("drop", 0),
    "W": ("widen", 0),
    "N": ("name", 0),
    "U": ("unique", 0),
    "E": ("default", 0),
}
"""What a letter does: a kind of change, and the seed from which its details are drawn."""


def small_scopes() -> Iterator[tuple[str, ...]]:
    """Two sources that make any two statements, first of all or behind a column that both add."""
    for before in ("", "A"):
        for one, other in product(STATEMENTS, repeat=2):
            yield f"{before}{one}R", f"{before}{other}R"


class SmallEstate(OptimisticEstate):
    """The logs of sources with one member each, which do what their scripts say."""

    def __init__(self, scripts: Sequence[str]) -> None:
        self.random = random.Random(1)
        self.sources = SOURCES[: len(scripts)]
        self.logs: dict[str, list[tuple[Event, ...]]] = {s: [] for s in self.sources}
        first = (("b", "smallint", ""),)
        self.shards = [Shard(f"{source}0", source, first) for source in self.sources]
        self.initial = {shard.name: shard.table for shard in self.shards}
        self.planned, self.converging = False, True
        for shard, script in zip(self.shards, scripts, strict=True):
            for letter in script:
                if letter == "R":
                    self.write(shard)
                else:
                    kind, seed = STATEMENTS[letter]
                    self.change(shard, kind, random.Random(seed))
        made = ["".join(letter for letter in script if letter != "R") for script in scripts]
        self.converging = len(set(made)) == 1


@dataclass(frozen=True, slots=True)
class SmallFailure:
    """What was broken, and the steps that lead to it."""

    scripts: tuple[str, ...]
    steps: tuple[Step, ...]
    reason: str

    def __str__(self) -> str:
        lines = [f"scope {','.join(self.scripts)}: {self.reason}"]
        return "\n".join([*lines, *(f"  {' '.join(step)}" for step in self.steps)])


@dataclass(slots=True)
class Found:
    """How many states were visited, and the first failure."""

    states: int = 0
    failure: SmallFailure | None = None


def search(scripts: Sequence[str], crashes: int, most: int = 1 << 30) -> Found:
    """Visit all states of a scope; not more than ``most``."""
    found = Found()
    world = OptimisticWorld(SmallEstate(scripts))
    texts: dict[int, tuple[object, str]] = {}
    seen: set[Hashable] = {(_key(world, texts), crashes, False)}
    left = [_State(world, crashes, False, (), tuple(world.steps()))]
    while left and found.states < most:
        state = left.pop()
        found.states += 1
        for step, crashes_left, said in _branches(state):
            other = _copied(state.world)
            path = (*state.path, step)
            try:
                if step in state.steps:
                    other.take(step)
                elif not other.do(step):
                    continue
                key = (_key(other, texts), crashes_left, said)
                if key in seen:
                    continue
                steps = tuple(other.steps())
                _check(other, steps, answered=said)
            except (BrokenError, AssertionError, LookupError) as error:
                reason = f"{type(error).__name__}: {error}"
                found.failure = SmallFailure(tuple(scripts), path, reason)
                return found
            seen.add(key)
            left.append(_State(other, crashes_left, said, path, steps))
    return found


@dataclass(frozen=True, slots=True)
class _State:
    """A world, the crashes that may still come, whether the operator has answered."""

    world: OptimisticWorld
    crashes: int
    answered: bool
    path: tuple[Step, ...]
    steps: tuple[Step, ...]


def _branches(state: _State) -> Iterator[tuple[Step, int, bool]]:
    for step in state.steps:
        # Event by event: longer reads only leave states out.
        if step[0] != "read" or step[2] == "1":
            yield step, state.crashes, state.answered
    yield ("save",), state.crashes, state.answered
    if state.crashes:
        yield ("crash",), state.crashes - 1, state.answered
    if not state.steps:
        for action in ("exec", "skip"):
            for number in range(len(state.world.estate.shards)):
                yield ("say", str(number), action), state.crashes, True


def _check(world: OptimisticWorld, steps: Sequence[Step], *, answered: bool) -> None:
    """A source that can do nothing more alone has all rows there; in the end all is as it must."""
    if world.batch or world.ruled is not None or ("batch",) in steps:
        return
    for name in world.logs.keys() - {step[1] for step in steps if len(step) > 1}:
        if world.level(name):
            world.check_flow(name)
    if not steps:
        world.check_end(answered=answered)


def _copied(world: OptimisticWorld) -> OptimisticWorld:
    """A world that goes on by itself. What never changes is shared."""
    other = copy(world)
    kept = world.kept
    other.kept = replace(
        kept,
        rows={key: dict(values) for key, values in kept.rows.items()},
        **{
            name: copy(getattr(kept, name))
            for name in (
                *("numbers", "written", "defaults", "marks", "records", "executed"),
                *("positions", "lows"),
            )
        },
    )
    other.history = copy(world.history)
    other.history._releases = dict(world.history._releases)
    other.history._refused = set(world.history._refused)
    other.changes, other.kept_due = dict(world.changes), dict(world.kept_due)
    other.steps_of, other.commits = dict(world.steps_of), list(world.commits)
    parts: dict[int, Part] = {}
    followers: dict[int, Follower] = {}
    for source in world.followers.values():
        for part in source.parts:
            given = list(part.given) if part.given is not None else None
            parts[id(part)] = replace(part, given=given)
        followers[id(source)] = replace(
            source,
            boundaries=list(source.boundaries),
            parts=deque(parts[id(part)] for part in source.parts),
            held=set(source.held),
        )
    other.followers = {name: followers[id(source)] for name, source in world.followers.items()}
    other.batch = [(followers[id(source)], parts[id(part)]) for source, part in world.batch]
    return other


def _key(world: OptimisticWorld, texts: dict[int, tuple[object, str]]) -> Hashable:
    """All that the future of a world follows from. ``texts``: of entries, which are long."""
    kept = world.kept

    def text(entry: object) -> str:
        if id(entry) not in texts:
            texts[id(entry)] = entry, repr(entry)
        return texts[id(entry)][1]

    return (
        tuple(sorted((key, *sorted(values.items())) for key, values in kept.rows.items())),
        hash(kept.shape.sense) if kept.shape is not None else None,
        tuple(sorted(kept.defaults.items())),
        tuple(sorted(kept.marks.items())),
        tuple((member, at, text(entry)) for member, at, entry in kept.records),
        tuple(sorted(kept.executed)),
        tuple(sorted(kept.positions.items())),
        tuple(sorted(kept.lows.items())),
        kept.pending,
        tuple(
            (
                *(source.next, source.low, source.version, source.stopping, source.asked),
                tuple(source.boundaries),
                tuple(sorted(source.held)),
                tuple(
                    (part.end, part.complete, part.applied, part.barrier is None, _given(part))
                    for part in source.parts
                ),
            )
            for source in world.followers.values()
        ),
        tuple(world.commits),
        bool(world.batch),
        world.ruled is None,
        tuple(sorted((name, change.at) for name, change in world.changes.items())),
    )


def _given(part: Part) -> Hashable:
    return None if part.given is None else tuple((given.at, given.version) for given in part.given)
