"""Blocked parts that a task tries again by itself: when, and for how long it leaves them alone."""

from __future__ import annotations

import anyio
import pymysql.err
import pytest

from actors.errors.faults import FatalError, Recovery, TaskParts, of_source, of_target
from actors.errors.refusals import locked_fault, refusal
from actors.task.operator.blocked_parts import Block, BlockedParts, block_of
from actors.task.part_backoff import ATTEMPT_SECONDS, PAUSES, PartBackoff
from actors.writing.ddl_runner import DDL_LOCK_SECONDS
from replicator.downstream.rows.write_session import LOCK_SECONDS
from replicator.mysql.connection.asyncio_connection import DatabaseAddress
from replicator.mysql.names import TableName
from replicator.status import now

X, Y = TableName("m", "x"), TableName("m", "y")


class Parted:
    """Targets that are set aside, at a time that the test tells."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.parts = BlockedParts()
        self.whole: Block | None = None
        self.busy = False
        self.aside = PartBackoff(
            self.parts, lambda: self.whole, lambda: self.busy, lambda: self.seconds
        )

    def lock(self, *targets: TableName) -> None:
        self.parts.add(
            of_target(*targets), block_of("orders", "orders.yaml", locked_fault(targets, "no", "m"))
        )
        self.aside.begin(of_target(*targets))

    async def due(self) -> bool:
        """Whether one is released now."""
        with anyio.move_on_after(0) as scope:
            await self.aside.one_is_due()
        return not scope.cancelled_caught


async def pauses(parted: Parted, times: int, *, between: float) -> list[float]:
    found = []
    for _ in range(times):
        parted.lock(X)
        began = parted.seconds
        while not await parted.due():
            parted.seconds += 1
        found.append(parted.seconds - began)
        parted.seconds += between
    return found


async def test_each_time_it_is_left_alone_for_longer() -> None:
    first, longest = PAUSES
    found = await pauses(Parted(), 8, between=first)
    assert found[:3] == [first, 2 * first, 4 * first]
    assert found[-2:] == [longest, longest]


async def test_a_lock_that_comes_much_later_is_another_one() -> None:
    later = PAUSES[0] + ATTEMPT_SECONDS + 1
    assert await pauses(Parted(), 3, between=later) == [PAUSES[0]] * 3


async def test_all_that_are_due_are_released_and_no_others() -> None:
    parted = Parted()
    parted.lock(X)
    parted.seconds += PAUSES[0] / 2
    parted.lock(Y)
    assert not await parted.due()
    parted.seconds += PAUSES[0] / 2
    assert await parted.due()
    assert parted.parts.blocked == of_target(Y)
    parted.seconds += PAUSES[0] / 2
    assert await parted.due()
    assert parted.parts.blocked == TaskParts()


async def test_a_target_is_not_released_while_something_is_under_way() -> None:
    parted = Parted()
    parted.lock(X)
    parted.busy = True
    parted.seconds += PAUSES[0]
    assert not await parted.due()
    assert parted.parts.blocked == of_target(X)
    parted.busy = False
    assert await parted.due()


async def test_what_the_operator_has_released_or_paused_since_is_left_as_it_is() -> None:
    parted = Parted()
    parted.lock(X, Y)
    parted.parts.release(of_target(X, Y))
    parted.parts.add(of_target(Y), Block(now()))
    parted.seconds += PAUSES[0]
    assert not await parted.due()
    assert parted.parts.blocked == of_target(Y)


async def test_what_the_operator_pauses_is_not_set_aside_any_more() -> None:
    parted = Parted()
    parted.lock(X)
    names = {"targets": [str(X)]}
    parted.parts.steer("pause", names, [X, Y], ["a"], begun=True)
    parted.seconds += PAUSES[0]
    assert not await parted.due()
    assert parted.parts.blocked == of_target(X)
    assert parted.parts.targets[X].fault is None


async def test_pauses_grow_however_long_an_attempt_takes() -> None:
    """With the waits for locks that sessions have by default."""
    rows = 2 * LOCK_SECONDS + 1
    assert await pauses(Parted(), 3, between=rows) == [10, 20, 40]
    assert await pauses(Parted(), 3, between=DDL_LOCK_SECONDS + 1) == [10, 20, 40]


DENIED = pymysql.err.OperationalError(1045, "Access denied")


async def test_a_source_that_denies_access_is_tried_again() -> None:
    parted = Parted()
    error = refusal(DatabaseAddress("a", 1, "u", ""), DENIED, source="a")
    assert isinstance(error, FatalError)
    parted.parts.add(of_source("a"), block_of("orders", "orders.yaml", error))
    parted.aside.begin(error.scope)
    assert parted.parts.failed, "an operator should look at it"
    assert not await parted.due()
    parted.seconds += PAUSES[0]
    assert await parted.due()
    assert not parted.parts.blocked


async def test_a_task_whose_target_denies_access_is_tried_again() -> None:
    parted = Parted()
    error = refusal(DatabaseAddress("t", 1, "u", ""), DENIED, source=None)
    assert isinstance(error, FatalError)
    assert error.scope is None
    parted.whole = block_of("orders", "orders.yaml", error)
    parted.aside.begin(None)
    parted.seconds += PAUSES[0]
    assert await parted.due()


async def test_a_task_that_was_resumed_since_is_not_tried_again() -> None:
    parted = Parted()
    parted.aside.begin(None)
    parted.seconds += PAUSES[0]
    assert not await parted.due()


async def test_a_source_that_the_operator_pauses_is_not_tried_again() -> None:
    parted = Parted()
    error = refusal(DatabaseAddress("a", 1, "u", ""), DENIED, source="a")
    assert isinstance(error, FatalError)
    parted.parts.add(of_source("a"), block_of("orders", "orders.yaml", error))
    parted.aside.begin(error.scope)
    parted.parts.steer("pause", {"sources": ["a"]}, [X], ["a", "b"], begun=True)
    parted.seconds += PAUSES[0]
    assert not await parted.due()


@pytest.mark.parametrize("passing", [True, False])
def test_a_part_that_is_tried_again_by_itself_is_no_failure(*, passing: bool) -> None:
    parts = BlockedParts()
    recovery = Recovery.RETRY if passing else Recovery.BY_OPERATOR
    error = FatalError(
        "e",
        "m",
        where="w",
        scope=of_target(X),
        recovery=recovery,
    )
    parts.add(of_target(X), block_of("orders", "orders.yaml", error))
    assert parts.failed is not passing
