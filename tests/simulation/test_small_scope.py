"""Every run of small scopes: see `tests.simulation.small`."""

from __future__ import annotations

import pytest

from tests.simulation.mutants import mutated
from tests.simulation.small import binlogs, explore, scope


@pytest.mark.slow
@pytest.mark.parametrize(
    "scripts",
    [
        scope("RDRDR", "", "", ""),
        scope("RDR", "RDR", "", ""),
        scope("RDR", "", "RDR", ""),
        scope("RDRD", "", "RDRD", ""),
        scope("RDR", "RDR", "RDR", ""),
    ],
)
def test_every_run_of_all_binlogs_holds(scripts: dict[str, dict[str, str]]) -> None:
    found = explore(scripts, crashes=1)
    assert found.failure is None, found.path
    assert found.states > 100


@pytest.mark.slow
def test_every_run_of_some_binlogs_of_the_full_scope_holds() -> None:
    """Two sources, two members each, two DDL, two rows. All binlogs: ``--exhaustive``."""
    scripts = scope("RDRD", "RDRD", "RDRD", "RDRD")
    every = list(binlogs(scripts))
    assert len(every) == 1225
    for orders in every[::500]:
        found = explore(scripts, crashes=0, orders=orders)
        assert found.failure is None, (orders, found.path)


@pytest.mark.parametrize(
    "name",
    [
        "skip_for_hold",
        "apply_for_hold",
        "adopt_after_holding",
        "saved_anywhere",
        "saved_behind_items",
        "version_off_by_one",
        "ready_before_all",
        "ready_of_one_source",
        "execute_before_turns",
    ],
)
def test_a_mutant_dies(name: str) -> None:
    scopes = (scope("RDR", "", "RDR", ""), scope("RDR", "RDR", "", ""))
    with mutated(name):
        assert any(explore(scripts).failure is not None for scripts in scopes)
