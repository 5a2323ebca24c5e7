"""Rows that move from one shard to another while a lock holds the rows of the first."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractAsyncContextManager

import anyio
import pytest

from actors.errors.faults import FatalError
from actors.task.generation import Generation
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, fault_of
from tests.support.tasks.shard_ddl import ShardedEstate
from tests.support.tasks.tables import rows_of

ADD = "ADD c INT DEFAULT 5"
KEYED = "(id INT PRIMARY KEY, v INT)"
UNIQUE = "(id INT PRIMARY KEY, v INT, UNIQUE KEY u (v))"

MOVES = {
    "deleted": (KEYED, "DELETE FROM {t} WHERE id = 101", "(101, 3)"),
    "changed-and-deleted": (
        KEYED,
        "UPDATE {t} SET v = 9 WHERE id = 101; DELETE FROM {t} WHERE id = 101",
        "(101, 3)",
    ),
    "given-another-key": (KEYED, "UPDATE {t} SET id = 201 WHERE id = 101", "(101, 3)"),
    "of-another-unique-key": (UNIQUE, "DELETE FROM {t} WHERE id = 101", "(102, 1)"),
    "kept-for-a-while": (KEYED, "INSERT INTO {t} VALUES (301, 1, 1)", "(101, 3)"),
}
"""The table, what the first shard does behind its ALTER, and the second shard's new row."""


async def _fault(estate: ShardedEstate, move: str, ddl: str = ADD) -> FatalError:
    """The fault of a row that moves from A1 to B1 behind an open lock."""
    table, away, row = MOVES[move]
    estate.create("A1", "B1", table=table)

    async def follow() -> None:
        async with estate.merging():
            estate.insert("A1", "101, 1")
            await estate.caught_up()
            estate.ddl("A1", ddl)
            for sql in away.split("; "):
                estate.run("A1", sql)
            await estate.caught_up()
            estate.run("B1", f"INSERT INTO {{t}} VALUES {row}")
            await estate.caught_up()

    return await fault_of(follow())


def _safely(estate: ShardedEstate) -> AbstractAsyncContextManager[Generation]:
    """The task in safe mode."""
    syncers = estate.task["syncers"]
    assert isinstance(syncers, dict)
    syncers["sync"]["safe-mode"] = True
    return estate.merging()


async def _same(estate: ShardedEstate) -> None:
    """Wait until the rows are the same; a shard may still lack the column."""
    with anyio.fail_after(PATIENCE):
        while estate.rows("id, v") != sum(
            (rows_of(estate.server(s), estate.name(s), "id, v") for s in estate.shards), Counter()
        ):
            await anyio.sleep(LOOK_SECONDS)


async def test_the_fault_names_the_lock_and_the_way_that_keeps_the_row(
    mariadb_estate: ShardedEstate,
) -> None:
    estate = mariadb_estate
    fault = await _fault(estate, "of-another-unique-key")
    assert fault.event == "rows.duplicate"
    first, second = fault.remedies
    assert f"the lock {estate.db}.t:1" in first
    assert "copy everything again" in first
    assert "safe-mode" not in first
    assert "do not delete the row on the target" in second
    async with _safely(estate):
        await estate.caught_up()
        estate.ddl("B1", ADD)
        await estate.settled()


@pytest.mark.slow
@pytest.mark.parametrize("move", [name for name in MOVES if name != "of-another-unique-key"])
async def test_in_safe_mode_a_row_moves_behind_a_lock(
    mariadb_estate: ShardedEstate, move: str
) -> None:
    estate = mariadb_estate
    fault = await _fault(estate, move)
    assert fault.event == "rows.duplicate"
    async with _safely(estate):
        await estate.caught_up()
    async with _safely(estate):
        await estate.caught_up()
        estate.ddl("B1", ADD)
        await estate.caught_up()
        if move == "kept-for-a-while":
            estate.run("A1", "DELETE FROM {t} WHERE id = 101")
        await estate.settled()


@pytest.mark.slow
@pytest.mark.parametrize("skip", [False, True], ids=["exec", "skip"])
async def test_in_safe_mode_a_row_moves_behind_a_lock_that_is_unlocked(
    mariadb_estate: ShardedEstate, *, skip: bool
) -> None:
    estate = mariadb_estate
    await _fault(estate, "deleted", "MODIFY v BIGINT")
    async with _safely(estate):
        await estate.caught_up()
        lock = f"{estate.db}.t:1"
        await estate.running.coordination.unlock(lock, owner="", skip=skip)
        await estate.caught_up()
        await _same(estate)


async def test_a_row_without_a_key_moves_behind_a_lock(mariadb_estate: ShardedEstate) -> None:
    """Equal rows are as many as there are: nothing has to wait."""
    estate = mariadb_estate
    estate.create("A1", "B1", table="(id INT, v INT)")
    async with estate.merging():
        estate.insert("A1", "101, 1")
        await estate.caught_up()
        estate.ddl("A1", ADD)
        estate.run("A1", "DELETE FROM {t}")
        await estate.caught_up()
        estate.insert("B1", "101, 1")
        await estate.caught_up()
        estate.ddl("B1", ADD)
        await estate.settled()
