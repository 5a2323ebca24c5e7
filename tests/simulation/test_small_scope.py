"""Every run of small scopes: see `tests.simulation.small` and `tests.simulation.decoupled`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.decoupled import Search
from tests.simulation.mutants import MUTANTS
from tests.simulation.small import Catalogue, Explored, Scope, Small, State, explore
from tests.simulation.small_source import SmallSource
from tests.simulation.store import Watermark

TESTING = Path(__file__).parents[2] / "docs" / "inside" / "testing.md"
FULL: Scope = (("RDRD", "RDRD"), ("RDRD", "RDRD"))
"""Two sources, two members each, two DDL and two rows each."""


@pytest.mark.slow
def test_every_run_of_the_full_scope_holds() -> None:
    catalogue = Catalogue()
    found = Search(FULL, 1, catalogue).run()
    assert found.failure is None, found.path
    figures = f"{found.count():,} states, {len(catalogue.sources):,} of a single source"
    assert figures in " ".join(TESTING.read_text().split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scope", "crashes"),
    [
        pytest.param(FULL, 2, id="two crashes"),
        pytest.param((("RDR", "RDR", "RDR"), ("RDR", "RDR")), 1, id="three members"),
        pytest.param((("RDRDRD",),) * 3, 2, id="three sources, three DDL, two crashes"),
    ],
)
def test_every_run_of_larger_scopes_holds(scope: Scope, crashes: int) -> None:
    found = Search(scope, crashes, Catalogue()).run()
    assert found.failure is None, found.path


@pytest.mark.parametrize(
    ("scope", "crashes"),
    [
        pytest.param((("RDRD",), ("RDRD",)), 1, marks=pytest.mark.slow),
        ((("RDR",), ("RDR",)), 2),
        ((("RDR", "RDR"), ()), 1),
        pytest.param((("RDR", "DRR"),), 1, marks=pytest.mark.slow),
        ((("RDR", "RDR"), ("RDR",)), 0),
        ((("RD",), ("RDR",), ("DR",)), 1),
        pytest.param((("RDR", "RDR"), ("RDR",)), 1, marks=pytest.mark.slow),
        pytest.param((("RDR", "RDR"), ("RDR", "RDR")), 0, marks=pytest.mark.slow),
        pytest.param((("RDRD",), ("RDRD",)), 2, marks=pytest.mark.slow),
    ],
)
def test_sets_of_states_leave_out_and_add_nothing(scope: Scope, crashes: int) -> None:
    catalogue = Catalogue()
    one_by_one = explore(scope, crashes, catalogue)
    in_sets = Search(scope, crashes, catalogue).run()
    assert set(in_sets.states()) == one_by_one.states
    assert in_sets.failure == one_by_one.failure
    if len(scope) == 2:
        assert in_sets.count() == len(one_by_one.states)
    # No step has changed a source that it was not of.
    assert list(map(catalogue.number, catalogue.sources)) == list(range(len(catalogue.sources)))


@pytest.mark.parametrize(
    "scope",
    [
        pytest.param((("RDRD",), ("RDRD",)), marks=pytest.mark.slow),
        (("RDR", "RDR"),),
    ],
    ids=str,
)
def test_forgetting_what_left_no_trace_leads_to_the_same_ends(
    scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = Catalogue()
    forgetting = _ends(explore(scope, 1, catalogue), catalogue)
    monkeypatch.setattr(SmallSource, "forget", lambda self: None)
    assert _ends(explore(scope, 1, catalogue), catalogue) == forgetting


def _ends(found: Explored, catalogue: Catalogue) -> set[State]:
    assert found.failure is None
    ends = set()
    for centre, numbers in found.states:
        end = Small(centre, [catalogue.sources[number] for number in numbers])
        if not end.shared_step() and not any(map(end.own_steps, range(len(numbers)))):
            ends.add((centre, numbers))
    return ends


# Wrong versions of what is around the rule; those of the rule itself are in `mutants`.


def _watermark_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SmallSource, "has", lambda self, watermark: False)


def _watermark_by_position_only(patch: pytest.MonkeyPatch) -> None:
    def has(self: SmallSource, watermark: Watermark) -> bool:
        return watermark[1] <= self.watermark[1]

    patch.setattr(SmallSource, "has", has)


def _no_barrier(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Small, "barrier", lambda self: None)


def _cutovers_forgotten(patch: pytest.MonkeyPatch) -> None:
    original = SmallSource.crash

    def crash(self: SmallSource, *left: object, **how: object) -> None:
        original(self, *left, **how)  # type: ignore[arg-type]
        self.cutovers = ()

    patch.setattr(SmallSource, "crash", crash)


OWN = {
    "watermark_not_compared": _watermark_not_compared,
    "watermark_by_position_only": _watermark_by_position_only,
    "no_barrier": _no_barrier,
    "cutovers_forgotten": _cutovers_forgotten,
}
RULE = (
    "skip_for_hold",
    "apply_for_hold",
    "hold_for_skip",
    "apply_for_skip",
    "hold_for_apply",
    "version_off_by_one",
    "saved_behind_items",
    "saved_anywhere",
    "only_latest_item_open",
    "adopt_after_holding",
    "ready_before_all",
    "ready_of_one_source",
    "ready_for_any_version",
    "execute_before_cutovers",
)


LONG_LIVED = {
    "ready_for_any_version",
    "watermark_by_position_only",
    "ready_of_one_source",
    "apply_for_skip",
    "execute_before_cutovers",
    "ready_before_all",
    "hold_for_skip",
}
"""Those that take long to be found."""


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.slow] if name in LONG_LIVED else [])
        for name in (*RULE, *OWN)
    ]
)
def wrong(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    {**MUTANTS, **OWN}[request.param](monkeypatch)


@pytest.mark.usefixtures("wrong")
def test_a_mutant_dies_in_either_search() -> None:
    scopes: tuple[Scope, ...] = ((("RDR",), ("RDR",)), (("RDR", "RDR"),), (("RDRD",), ("RDRD",)))
    dead = []
    for scope in scopes:
        one_by_one = explore(scope, 1, Catalogue())
        in_sets = Search(scope, 1, Catalogue()).run()
        assert (in_sets.failure is None) == (one_by_one.failure is None), scope
        assert bool(in_sets.path) == bool(in_sets.failure)
        dead.append(in_sets.failure)
    assert any(dead)
