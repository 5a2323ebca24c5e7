"""Shards that are copied later go on when their own target allows it, whatever else is blocked."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from actors.task.generation import Generation
from tests.integration.merge.test_blocked_parts import target
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS, NOTHING

MakeMerging = Callable[..., Merging]

COLUMNS = "(id INT PRIMARY KEY, v VARCHAR(9))"
KEYLESS = "(id INT, v VARCHAR(9))"
LONG = 60.0
"""Seconds that anything may take on a machine that has much to do."""


def filled(merging: Merging, table: str, first: int) -> None:
    rows = ",".join(f"({first + number}, 'v{number}')" for number in range(60))
    merging.do(f"INSERT INTO {table} VALUES {rows}")


async def until_only(merging: Merging, *tables: str) -> None:
    """Wait until no other tables than these, which may be missing, differ from their shards."""
    with anyio.move_on_after(LONG):
        while merging.differences(but=tables):
            await anyio.sleep(LOOK_SECONDS)
    assert merging.differences(but=tables) == {}


async def copies_end(generation: Generation) -> None:
    """Wait until no shard is still to be copied."""
    with anyio.fail_after(LONG):
        while generation.copy is None or generation.copy.progress.figures().state != "finished":
            await anyio.sleep(LOOK_SECONDS)


async def left_out(merging: Merging, mode: str, x: str = COLUMNS) -> None:
    """A task that follows y; of x nothing is copied yet, and y is blocked from here on."""
    merging.mode = "all"
    merging.more |= {"shard-mode": mode}
    merging.create("x", x, shards=2)
    merging.create("y", COLUMNS)
    for number in (1, 2):
        filled(merging, f"x_{number}", 1000 * number)
    merging.blocked = target(merging, "x")
    async with merging.running() as generation:
        merging.do("INSERT INTO y_1 VALUES (1, 'a')")
        await merging.copied(generation, LONG)
        await until_only(merging, "x")
    merging.blocked = target(merging, "y")


async def all_equal(merging: Merging) -> None:
    """Run on with nothing blocked until all is equal."""
    merging.blocked = NOTHING
    async with merging.running() as generation:
        await merging.copied(generation, LONG)
        await copies_end(generation)
        await merging.caught_up(generation, LONG)
        await until_only(merging)
        await merging.check(generation)


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
@pytest.mark.parametrize(
    ("mode", "x"),
    [
        pytest.param("", COLUMNS, id="uncoordinated"),
        pytest.param("pessimistic", COLUMNS, id="pessimistic", marks=pytest.mark.slow),
        pytest.param("", KEYLESS, id="uncoordinated-keyless", marks=pytest.mark.slow),
        pytest.param("pessimistic", KEYLESS, id="pessimistic-keyless", marks=pytest.mark.slow),
    ],
)
async def test_a_changed_shard_is_copied_while_another_target_is_blocked(
    merging: Merging, mode: str, x: str
) -> None:
    await left_out(merging, mode, x)
    merging.do("INSERT INTO y_1 VALUES (2, 'held')")
    for number in (1, 2):
        merging.do(
            f"UPDATE x_{number} SET v = 'before' WHERE id = {1000 * number}",
            f"ALTER TABLE x_{number} MODIFY v VARBINARY(20), ADD c INT NOT NULL DEFAULT 3",
            f"UPDATE x_{number} SET v = 'behind', c = 4 WHERE id = {1000 * number + 1}",
        )
    async with merging.running() as generation:
        await copies_end(generation)
        merging.do("DELETE FROM x_1 WHERE id = 1002", "INSERT INTO x_2 VALUES (1, 'new', 1)")
        await until_only(merging, "y")
        assert merging.differences().keys() == {"y"}
    # Read again from before the statements, with the other target still blocked, and then without.
    async with merging.running() as generation:
        merging.do("UPDATE x_1 SET c = 9 WHERE id = 1003")
        await until_only(merging, "y")
    await all_equal(merging)
