"""Keys that wait for their validation: bounded, in order, and none lost or counted twice."""

from __future__ import annotations

import pytest

from actors.counting.validation_backlog import (
    BUSY_COMPARISONS,
    COMPARISONS,
    SuspectRow,
    ValidationBacklog,
    WaitingKeys,
)
from replicator.mysql.names import Member, TableName

X = TableName("s", "x")
MEMBER = Member("a", TableName("s", "x_1"))


def keys(count: int, since: float) -> WaitingKeys:
    lines = b"".join(b"%d\n" % number for number in range(count))
    return WaitingKeys(X, MEMBER, ("id",), lines, since)


def test_the_oldest_keys_are_skipped_where_too_many_wait() -> None:
    backlog = ValidationBacklog(most=10)
    for since in range(4):
        backlog.add(keys(4, since))
    assert (backlog.waiting_count, backlog.skipped) == (8, 8)
    assert [one.since for one in backlog.waiting] == [2, 3]


def test_the_newest_of_the_keys_that_are_old_enough_are_taken_first() -> None:
    backlog = ValidationBacklog(most=100)
    for since in range(5):
        backlog.add(keys(4, since))
    taken = backlog.take(2.0, 7)
    assert [one.since for one in taken] == [2, 1]
    assert backlog.waiting_count == 12
    assert [one.since for one in backlog.take(2.0, 100)] == [0]
    backlog.give_back(taken)
    assert backlog.waiting_count == 16
    assert [one.since for one in backlog.take(3.0, 100)] == [3, 2, 1]


def test_the_oldest_keys_are_skipped_also_when_they_are_old_enough() -> None:
    backlog = ValidationBacklog(most=10)
    for since in range(3):
        backlog.add(keys(4, since))
    backlog.give_back(backlog.take(2.0, 1))
    backlog.add(keys(4, 3))
    assert (backlog.waiting_count, backlog.skipped) == (8, 8)
    assert [one.since for one in backlog.take(9.0, 100)] == [3, 2]


@pytest.mark.parametrize("when", ["never", "between looks", "during looks"])
def test_a_row_that_is_applied_again_and_again_may_differ_by_chance(when: str) -> None:
    backlog = ValidationBacklog(most=1000)
    looks = 0
    while True:
        if when == "between looks":
            backlog.add(keys(4, looks))
        backlog.applied_again()
        if when == "during looks":
            backlog.add(keys(4, looks))
        looks += 1
        applied = b"3" in backlog.applied_again([X]).get(X, ())
        seen = SuspectRow(b"flag: 0 for 1", looks, looks, {})
        if backlog.differs((X, b"3"), seen, again=True, applied=applied).suffices:
            break
    assert looks == (COMPARISONS if when == "never" else BUSY_COMPARISONS)


def test_a_row_that_waits_for_a_lock_is_no_error_by_the_looks_at_what_was_applied_before() -> None:
    backlog = ValidationBacklog(most=1000)
    for look in range(2 * BUSY_COMPARISONS):
        seen = SuspectRow(b"v: 1 for 2", look, look, {})
        assert not backlog.differs((X, b"3"), seen, again=False, applied=False).suffices
    assert backlog.suspects[X, b"3"].since == 0
