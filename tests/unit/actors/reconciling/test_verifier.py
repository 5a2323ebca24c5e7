"""Which target rolling verification compares next, and what the task file says of it."""

from __future__ import annotations

from actors.reconciling.verifier import next_due
from replicator.downstream.meta.validation.verifications import Verification
from replicator.mysql.names import TableName
from replicator.pipeline.compare.reconciled import Attempts, Outcome, Verdict

A, B, C = (TableName("s", name) for name in "abc")


def test_a_target_that_was_never_verified_comes_first() -> None:
    verified = {A: Verification(verified_at=1000), B: Verification()}
    assert next_due([A, B], verified, {}, 100.0) == (0.0, B)


def test_the_target_whose_cycle_ends_first_is_next() -> None:
    verified = {A: Verification(verified_at=1010), B: Verification(verified_at=1000)}
    assert next_due([A, B], verified, {}, 100.0) == (1100.0, B)


def test_a_begun_verification_is_continued_before_others_begin() -> None:
    verified = {B: Verification(progress="half")}
    assert next_due([A, B, C], verified, {}, 100.0) == (0.0, B)


def test_a_target_that_waits_lets_others_go_first() -> None:
    waits = Attempts(0).after(Verdict(Outcome.WAITS, "a lock"), 2000.0)
    assert next_due([A, B], {B: Verification(1950)}, {A: waits}, 100.0) == (2002.0, A)
    assert next_due([A, B], {B: Verification(1901)}, {A: waits}, 100.0) == (2001.0, B)


def test_nothing_is_due_without_targets() -> None:
    assert next_due([], {}, {}, 100.0) is None
