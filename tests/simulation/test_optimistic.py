"""The join rule in random estates, with crashes: see `tests.simulation.optimistic`."""

from __future__ import annotations

import pytest

from tests.simulation.optimistic_mutants import OPTIMISTIC_MUTANTS, optimistic_mutated
from tests.simulation.optimistic_runs import run_optimistic

SEEDS = 1000
MUTANT_SEEDS = 1000
FIRST_SEEDS = {"fill_of_present_default": 340, "steps_not_put_off": 530}
"""Where the search for the mutants begins that die late."""


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_a_thousand_optimistic_seeds_hold(part: int) -> None:
    for seed in range(part * SEEDS // 4, (part + 1) * SEEDS // 4):
        assert run_optimistic(seed) is None


def test_some_optimistic_seeds_hold() -> None:
    assert [failure for seed in range(100) if (failure := run_optimistic(seed))] == []


@pytest.mark.parametrize("name", OPTIMISTIC_MUTANTS)
def test_an_optimistic_mutant_dies(name: str) -> None:
    with optimistic_mutated(name):
        first = FIRST_SEEDS.get(name, 0)
        seeds = range(first, first + MUTANT_SEEDS)
        assert any(run_optimistic(seed) is not None for seed in seeds)
