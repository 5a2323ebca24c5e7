"""The join rule in random estates, with crashes: see `tests.simulation.optimistic`."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.simulation.optimistic_mutants import OPTIMISTIC_MUTANTS, optimistic_mutated
from tests.simulation.optimistic_runs import run_optimistic
from tests.simulation.optimistic_small import STATEMENTS, search, small_scopes

SEEDS = 1000
MUTANT_SEEDS = 1000
FIRST_SEEDS = {"fill_of_present_default": 340, "steps_not_put_off": 480}
"""Where the search for the mutants begins that die late."""


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_a_thousand_optimistic_seeds_hold(part: int) -> None:
    for seed in range(part * SEEDS // 4, (part + 1) * SEEDS // 4):
        assert run_optimistic(seed) is None


def test_some_optimistic_seeds_hold() -> None:
    assert [failure for seed in range(100) if (failure := run_optimistic(seed))] == []


def test_every_run_of_two_sources_with_one_statement_each() -> None:
    for scripts in islice(small_scopes(), len(STATEMENTS) ** 2):
        assert search(scripts, crashes=0).failure is None
    assert search(("AR", "DR"), crashes=1).failure is None


@pytest.mark.slow
@pytest.mark.parametrize("part", range(14))
def test_every_run_of_the_small_scopes_with_a_crash_at_any_step(part: int) -> None:
    for scripts in islice(small_scopes(), part, None, 14):
        assert search(scripts, crashes=1).failure is None


FOUND_IN_SMALL = {
    "answer_not_saved": ("AR", "AR"),
    "floors_not_saved": ("UR", "UR"),
    "structures_of_saved_positions": ("AR", "AR"),
}


@pytest.mark.parametrize("name", FOUND_IN_SMALL)
def test_a_small_scope_finds_a_mutant(name: str) -> None:
    with optimistic_mutated(name):
        assert search(FOUND_IN_SMALL[name], crashes=1).failure is not None


@pytest.mark.parametrize("name", OPTIMISTIC_MUTANTS)
def test_an_optimistic_mutant_dies(name: str) -> None:
    with optimistic_mutated(name):
        first = FIRST_SEEDS.get(name, 0)
        seeds = range(first, first + MUTANT_SEEDS)
        assert any(run_optimistic(seed) is not None for seed in seeds)
