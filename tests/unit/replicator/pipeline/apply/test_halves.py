"""The outcome of a batch that its target takes in two transactions."""

from __future__ import annotations

from replicator.pipeline.apply.batch import TargetOutcome, WriteOutcome
from replicator.pipeline.apply.halves import _sum


def test_effects_of_both_halves_are_reported() -> None:
    refused = TargetOutcome(1, WriteOutcome.REFUSED)
    first = TargetOutcome(1, WriteOutcome.DONE, late=3, uncertain=("a",))
    second = TargetOutcome(1, WriteOutcome.DONE, late=1, uncertain=("b",))
    found = _sum(first, second, refused)
    assert (found.late, found.uncertain) == (4, ("a", "b"))
