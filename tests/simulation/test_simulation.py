"""The version rule in random estates, with crashes: see `tests.simulation.world`."""

from __future__ import annotations

import pytest

from tests.simulation.mutants import MUTANTS, mutated
from tests.simulation.runs import Failure, replay, run, shorten

SEEDS = 1000
MUTANT_SEEDS = 400


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_a_thousand_seeds_hold(part: int) -> None:
    for seed in range(part * SEEDS // 4, (part + 1) * SEEDS // 4):
        failure = run(seed)
        assert failure is None, f"\n{shorten(failure)}"


def test_a_seed_is_the_same_run_again() -> None:
    with mutated("adopt_after_holding"):
        failures = [failure for seed in range(20) if (failure := run(seed))]
        assert failures
        assert [run(failure.seed) for failure in failures] == failures


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_dies(name: str) -> None:
    with mutated(name):
        assert any(run(seed) is not None for seed in range(MUTANT_SEEDS))


def test_a_failure_is_made_short() -> None:
    with mutated("no_barrier"):
        failure = next(failure for seed in range(MUTANT_SEEDS) if (failure := run(seed)))
        short = shorten(failure)
        assert len(short.steps) < len(failure.steps)
        assert replay(short.seed, short.steps) == short.reason
        for left_out in range(len(short.steps)):
            fewer = short.steps[:left_out] + short.steps[left_out + 1 :]
            assert replay(short.seed, fewer) is None
    assert replay(short.seed, short.steps) is None
    assert f"seed {short.seed}: {short.reason}" in str(short)
    assert isinstance(short, Failure)
