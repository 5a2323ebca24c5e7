"""Runs of the join rule's simulation: a seed gives the estate and the schedule."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation.optimistic import OptimisticWorld, Step
from tests.simulation.optimistic_estate import OptimisticEstate
from tests.simulation.store import BrokenError


@dataclass(frozen=True, slots=True)
class OptimisticFailure:
    """A broken invariant, and the steps that lead to it."""

    seed: int
    steps: tuple[Step, ...]
    reason: str

    def __str__(self) -> str:
        lines = [f"optimistic seed {self.seed}: {self.reason}"]
        return "\n".join([*lines, *(f"  {' '.join(step)}" for step in self.steps)])


MOST_STEPS = 5000
MOST_ANSWERS = 50


def run_optimistic(seed: int) -> OptimisticFailure | None:
    """Run a seed; the failure if there is one, with its steps."""
    estate = OptimisticEstate(seed)
    choose = random.Random(-1 - seed)
    crashes = choose.choice((0, 0.02, 0.1))
    taken: list[Step] = []
    try:
        world = OptimisticWorld(estate)
        for _ in range(choose.randint(20, 150)):
            step = _choose(world, choose, crashes)
            if step is None:
                break
            taken.append(step)
            world.do(step)
        _finish(world, choose, taken)
    except (BrokenError, AssertionError, LookupError) as error:
        return OptimisticFailure(seed, tuple(taken), f"{type(error).__name__}: {error}")
    return None


def _choose(world: OptimisticWorld, choose: random.Random, crashes: float) -> Step | None:
    if choose.random() < crashes:
        return ("crash",)
    if choose.random() < 0.1:
        return ("save",)
    if choose.random() < 0.02:
        return ("bounce", choose.choice([*world.followers]))
    steps = world.steps()
    return choose.choice(steps) if steps else None


def _finish(world: OptimisticWorld, choose: random.Random, taken: list[Step]) -> None:
    """One source alone as far as it comes; then all; then the operator answers what is open."""
    alone = choose.choice([*world.followers])
    _go(world, taken, lambda step: len(step) < 2 or step[0] == "commit" or step[1] == alone)
    if not world.batch and world.ruled is None and world.level(alone):
        world.check_flow(alone)
    _go(world, taken, lambda step: True)
    world.check_end(answered=False)
    for number in range(MOST_ANSWERS):
        step = ("say", str(choose.randrange(3)), choose.choice(("exec", "skip")))
        if not world.do(step):
            break
        taken.append(step)
        _go(world, taken, lambda step: True)
        world.check_end(answered=True)
        assert number < MOST_ANSWERS - 1, "what the operator says settles nothing"


def _go(world: OptimisticWorld, taken: list[Step], may: Callable[[Step], bool]) -> None:
    for number in range(MOST_STEPS):
        steps = [step for step in world.steps() if may(step)]
        if not steps:
            return
        taken.append(steps[number * 7 % len(steps)])
        world.do(taken[-1])
    raise BrokenError("it never ends")
