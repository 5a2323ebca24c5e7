"""The version rule for targets that foreign keys tie, in random estates, with crashes."""

from __future__ import annotations

import pytest

from tests.simulation.mutants import TIED_MUTANTS, mutated
from tests.simulation.runs import run
from tests.simulation.tied_estate import make_tied_estate

SEEDS = 100
MANY_SEEDS = 2000
MUTANT_SEEDS = 300


def test_tied_seeds_hold() -> None:
    for seed in range(SEEDS):
        assert (failure := run(seed, make_tied_estate)) is None, f"\n{failure}"


@pytest.mark.slow
def test_many_tied_seeds_hold() -> None:
    for seed in range(SEEDS, MANY_SEEDS):
        assert (failure := run(seed, make_tied_estate)) is None, f"\n{failure}"


@pytest.mark.parametrize("name", TIED_MUTANTS)
def test_a_tied_mutant_dies(name: str) -> None:
    with mutated(name):
        assert any(run(seed, make_tied_estate) is not None for seed in range(MUTANT_SEEDS))
