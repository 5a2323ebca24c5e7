"""What follows from a pass of a reconciliation."""

from __future__ import annotations

from typing import Any

import pytest

from replicator.mysql.names import TableName
from replicator.pipeline.compare.findings import ColumnLeftOut, TargetComparison
from replicator.pipeline.compare.reconciled import (
    FAILED_PASSES,
    FAILED_SECONDS,
    LONGEST_PAUSE,
    Attempts,
    Outcome,
    Verdict,
    verdict_of,
)


def found(**values: Any) -> TargetComparison:
    return TargetComparison(TableName("s", "t"), **values)


LACKING = ColumnLeftOut("C", "t_2 does not have it", harmless=True)
GONE = ColumnLeftOut("c", "no shard has it", harmless=True, absent=True)


@pytest.mark.parametrize(
    ("result", "held", "outcome"),
    [
        (found(), "", Outcome.DONE),
        (found(different=3, missing=1, repaired=4), "", Outcome.DONE),
        (found(different=3, repaired=2), "", Outcome.AGAIN),
        (found(missing=3, repaired=2, duplicate_keys=1), "", Outcome.SHARED),
        (found(extra=3, untouched=3), "", Outcome.DONE),
        (found(held=1), "", Outcome.WAITS),
        (found(unsettled=1), "", Outcome.WAITS),
        (found(blocked="the target is blocked"), "", Outcome.WAITS),
        (found(), "a lock is open", Outcome.WAITS),
        (found(left_out=(LACKING,)), "", Outcome.WAITS),
        (found(left_out=(GONE,)), "", Outcome.DONE),
        (found(left_out=(ColumnLeftOut("d", "t_2 does not have it"),)), "", Outcome.DONE),
        (found(failure="source a: gone away"), "", Outcome.UNREAD),
        (found(failure="no columns fit"), "a lock is open", Outcome.WAITS),
        (found(failure="a repair failed", refused=True), "a lock is open", Outcome.REFUSED),
    ],
)
def test_verdicts(result: TargetComparison, held: str, outcome: Outcome) -> None:
    verdict = verdict_of(result, {"c"}, held=held)
    assert verdict.outcome is outcome
    assert bool(verdict.reason) is (outcome is not Outcome.DONE)


def after(*outcomes: Outcome, seconds: float = 1.0) -> Attempts:
    attempts, moment = Attempts(1), 1000.0
    for outcome in outcomes:
        attempts = attempts.after(Verdict(outcome, "why"), moment)
        moment = max(attempts.due, moment + seconds)
    return attempts


def test_rows_that_are_refused_fail_at_once() -> None:
    assert not after().failed
    assert after(Outcome.REFUSED).failed
    assert not after(Outcome.REFUSED, Outcome.WAITS).failed


def test_rows_that_still_differ_fail_after_some_passes() -> None:
    assert not after(*[Outcome.AGAIN] * (FAILED_PASSES - 1)).failed
    assert after(*[Outcome.AGAIN] * FAILED_PASSES).failed
    assert not after(*[Outcome.AGAIN] * FAILED_PASSES, Outcome.WAITS, Outcome.AGAIN).failed


def test_servers_that_can_not_be_read_fail_after_some_time() -> None:
    assert not after(Outcome.UNREAD, Outcome.UNREAD).failed
    assert after(Outcome.UNREAD, Outcome.UNREAD, seconds=FAILED_SECONDS + 1).failed


def test_pauses_grow_and_what_waits_never_fails() -> None:
    attempts, pauses, moment = Attempts(1), [], 0.0
    for _ in range(30):
        attempts = attempts.after(Verdict(Outcome.WAITS, "why"), moment)
        pauses.append(attempts.due - moment)
        moment = attempts.due
        assert attempts.waits
        assert not attempts.failed
    assert pauses == sorted(pauses)
    assert pauses[0] < pauses[-1] == LONGEST_PAUSE
    assert after(Outcome.WAITS, Outcome.AGAIN).due - 1001 < LONGEST_PAUSE
