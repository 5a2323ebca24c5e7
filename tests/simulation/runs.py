"""Runs of the simulation: a seed gives the estate and the schedule; a failure is made short."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from replicator.sharding.items import HistoryError
from tests.simulation.estate import Estate, make_estate
from tests.simulation.store import BrokenError, RefusedError
from tests.simulation.world import Step, World

MOST_STEPS = 5000
"""No run needs as many: one that does is going round in circles."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A broken invariant, and the steps that lead to it; the run then goes on by itself."""

    seed: int
    steps: tuple[Step, ...]
    reason: str

    def __str__(self) -> str:
        lines = [f"seed {self.seed}: {self.reason}", f"after {len(self.steps)} steps:"]
        return "\n".join([*lines, *(f"  {' '.join(step)}" for step in self.steps)])


def run(seed: int, make: Callable[[int], Estate] = make_estate) -> Failure | None:
    """Run a seed; the failure if there is one, with all its steps."""
    estate = make(seed)
    choose = random.Random(-1 - seed)
    crashes = choose.choice((0, 0.02, 0.1))
    hurry = choose.choice((0, 0.05, 0.2)) if not estate.orderly else 0
    writes = choose.choice((1, 1, 0.1))
    taken: list[Step] = []
    try:
        world = World(estate)
        for _ in range(choose.randint(20, 200)):
            step = _choose(world, choose, Odds(crashes, hurry, writes))
            if step is None:
                break
            taken.append(step)
            world.do(step)
        _finish(world)
    except RefusedError:
        return None
    except (BrokenError, AssertionError, LookupError, HistoryError) as error:
        return Failure(seed, tuple(taken), f"{type(error).__name__}: {error}")
    return None


@dataclass(frozen=True, slots=True)
class Odds:
    """How likely something is in a run: a crash, an unlock, and that the writer does its part."""

    crashes: float
    hurry: float
    writes: float


def _choose(world: World, choose: random.Random, odds: Odds) -> Step | None:
    # Between a release and its rows little else happens: so it is looked at more closely.
    often = 4 if any(source.released for source in world.sources.values()) else 1
    if choose.random() < odds.crashes * often:
        return ("crash",)
    if choose.random() < 0.1 * often:
        return ("save",)
    if choose.random() < 0.01:
        return ("bounce", choose.choice(list(world.sources)))
    if choose.random() < 0.005:
        return ("drop", choose.choice(list(world.sources)), choose.choice(list(world.locks)))
    steps = world.steps()
    if choose.random() >= odds.writes:
        steps = [step for step in steps if step[0] != "batch"] or steps
    if choose.random() < odds.hurry or (not steps and not world.estate.orderly):
        target = choose.choice(list(world.locks))
        return ("unlock", target, str(choose.randint(0, 2)), choose.choice(("exec", "skip")))
    return choose.choice(steps) if steps else None


def _finish(world: World) -> None:
    """Go on without crashes until nothing is left to do; unlock what is blocked, if it may be."""
    for number in range(MOST_STEPS):
        steps = world.steps()
        if steps:
            world.do(steps[number * 7 % len(steps)])
        elif world.estate.orderly or not any(
            world.do(("unlock", target, "0", "exec")) for target in world.locks
        ):
            world.check_end()
            return
    raise BrokenError("it never ends")


def replay(seed: int, steps: tuple[Step, ...]) -> str | None:
    """Take these steps, leaving out those that are not possible; why it fails, if it does."""
    try:
        world = World(make_estate(seed))
        for step in steps:
            world.do(step)
        _finish(world)
    except RefusedError:
        return None
    except (BrokenError, AssertionError, LookupError, HistoryError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def shorten(failure: Failure) -> Failure:
    """Drop steps as long as it still fails, in ever smaller runs."""
    size = max(1, len(failure.steps) // 2)
    while size:
        start = 0
        while start < len(failure.steps):
            fewer = failure.steps[:start] + failure.steps[start + size :]
            reason = replay(failure.seed, fewer)
            if reason is None:
                start += size
            else:
                failure = Failure(failure.seed, fewer, reason)
        size //= 2
    return failure
