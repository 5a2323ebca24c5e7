"""What an unlock gives the rows of shards that bring their own statement later."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest
from structlog.testing import capture_logs

from actors.faults import FatalError
from replicator.schema.effects.overridden_effects import OverrideAction
from tests.support.tasks.overriding import override
from tests.support.tasks.running import PATIENCE, fault_of
from tests.support.tasks.shard_ddl import ShardedEstate

TABLE = "(id INT PRIMARY KEY, v INT, w INT)"


async def unlocked(estate: ShardedEstate, *changes: str, empty: bool = False) -> None:
    """A1 makes the changes, each of which is unlocked before B1 has it; B1 gets a row then."""
    estate.create("A1", "B1", table=TABLE)
    async with estate.merging():
        if not empty:
            estate.insert("B1", "1, 11, 21")
        await estate.caught_up()
        for change in changes:
            estate.ddl("A1", change)
            await estate.caught_up()
            [lock] = estate.running.coordination.open_locks()
            await estate.running.coordination.unlock(lock.id, owner="a", skip=False)
            await estate.caught_up()
        estate.run("B1", "INSERT INTO {t} (id, v, w) VALUES (2, 12, 22)")
        await estate.caught_up()


async def fault(estate: ShardedEstate) -> FatalError:
    """What the next run ends with."""

    async def run() -> None:
        async with estate.merging():
            await estate.caught_up()

    with anyio.fail_after(PATIENCE):
        return await fault_of(run())


@pytest.mark.parametrize(
    ("changes", "own", "event"),
    [
        pytest.param(
            ["ADD c INT DEFAULT 1"], ["ADD c INT DEFAULT 2"], "ddl.other-values", id="default"
        ),
        pytest.param(["ADD c INT DEFAULT 1"], ["ADD c INT"], "ddl.other-values", id="none"),
        pytest.param(
            ["ADD c VARCHAR(40) DEFAULT (uuid())"],
            ["ADD c VARCHAR(40) DEFAULT (uuid())"],
            "ddl.nondeterministic-default",
            id="uuid",
        ),
    ],
)
async def test_a_shard_whose_rows_differ_is_a_fault(
    mariadb_estate: ShardedEstate, changes: Sequence[str], own: Sequence[str], event: str
) -> None:
    estate = mariadb_estate
    # Where the target has rows, a default like uuid() is refused at the unlock.
    await unlocked(estate, *changes, empty=event == "ddl.nondeterministic-default")
    estate.ddl("B1", *own)
    found = await fault(estate)
    assert found.event == event
    assert found.scope is not None
    assert [str(name) for name in found.scope.targets] == [f"{estate.db}.t"]


async def test_it_is_told_that_rows_of_a_late_shard_have_moments_of_their_own(
    mariadb_estate: ShardedEstate,
) -> None:
    estate = mariadb_estate
    await unlocked(estate, "ADD c DATETIME DEFAULT now()")
    with capture_logs() as logs:
        async with estate.merging():
            estate.ddl("B1", "ADD c DATETIME DEFAULT now()")
            await estate.caught_up()
    told = [entry for entry in logs if entry["event"] == "ddl.late-values"]
    assert {entry["target"] for entry in told} == {f"{estate.db}.t"}


async def test_rows_go_without_a_column_that_others_have_dropped_and_added_again(
    mariadb_estate: ShardedEstate,
) -> None:
    """They get the default of the new one, as in the shard when it makes the changes."""
    estate = mariadb_estate
    changes = "DROP v", "ADD v INT DEFAULT 5"
    await unlocked(estate, *changes)
    async with estate.merging():
        estate.run("B1", "UPDATE {t} SET v = v + 100")
        await estate.caught_up()
        estate.ddl("B1", *changes)
        await estate.settled()


@pytest.mark.parametrize(
    "change", ["CHANGE v w INT, CHANGE w v INT", "CHANGE v x INT, CHANGE w v INT"]
)
async def test_rows_follow_the_columns_that_others_have_renamed(
    mariadb_estate: ShardedEstate, change: str
) -> None:
    """A name belongs to another column by then: rows by their names would be spoiled."""
    estate = mariadb_estate
    await unlocked(estate, change)
    async with estate.merging():
        estate.run("B1", "UPDATE {t} SET v = v + 100")
        await estate.caught_up()
        estate.ddl("B1", change)
        await estate.settled()


async def test_the_operator_gives_the_rows_their_values(mariadb_estate: ShardedEstate) -> None:
    estate = mariadb_estate
    await unlocked(estate, "ADD c INT DEFAULT 1")
    estate.ddl("B1", "ADD c INT DEFAULT 2")
    estate.insert("B1", "3, 13, 23, 33")
    found = await fault(estate)
    estate.target.execute(f"UPDATE {estate.db}.t SET c = 2")
    await override(estate, found, OverrideAction.SKIP)
    async with estate.merging():
        await estate.settled()


async def test_one_text_with_different_values_in_two_shards(mariadb_estate: ShardedEstate) -> None:
    estate = mariadb_estate
    estate.create("A1", "B1", table=TABLE)
    async with estate.merging():
        estate.insert("A1", "1, 11, 21")
        estate.insert("B1", "2, 12, 22")
        await estate.caught_up()
    add = "ALTER TABLE {} ADD c TIMESTAMP NOT NULL DEFAULT '2020-01-01 00:00:00'"
    for shard, zone in (("A1", "+00:00"), ("B1", "+05:00")):
        estate.server(shard).execute(
            f"SET time_zone = '{zone}'", add.format(estate.name(shard)), "SET time_zone = DEFAULT"
        )
    found = await fault(estate)
    assert found.event == "ddl.other-values"


async def test_a_new_shard_adds_the_column_with_another_default(
    mariadb_estate: ShardedEstate,
) -> None:
    estate = mariadb_estate
    estate.create("A1", "B1", table=TABLE)
    async with estate.merging():
        for shard in ("A1", "B1"):
            estate.ddl(shard, "ADD c INT DEFAULT 5")
        await estate.settled()
        estate.run("A3", f"CREATE TABLE {{t}} {TABLE}")
        estate.insert("A3", "3, 13, 23")
        await estate.caught_up()
    estate.ddl("A3", "ADD c INT DEFAULT 6")
    found = await fault(estate)
    assert found.event == "ddl.other-values"


async def test_a_new_shard_without_rows_adds_the_column_with_another_default(
    mariadb_estate: ShardedEstate,
) -> None:
    """It has no rows that could differ, which the task still knows after a restart."""
    estate = mariadb_estate
    estate.create("A1", "B1", table=TABLE)
    async with estate.merging():
        for shard in ("A1", "B1"):
            estate.ddl(shard, "ADD c INT DEFAULT 5")
        await estate.settled()
        estate.shards.append("A3")
        estate.run("A3", f"CREATE TABLE {{t}} {TABLE}")
        await estate.caught_up()
    async with estate.merging():
        estate.ddl("A3", "ADD c INT DEFAULT 6")
        estate.run("A3", "INSERT INTO {t} (id) VALUES (3)")
        await estate.settled()


async def test_a_column_without_default_that_a_shard_brings_later(
    mariadb_estate: ShardedEstate,
) -> None:
    """Strict SQL mode refuses rows without it; the shard's own ALTER gives them the type's default.

    B1 changes a row that is on the target and inserts one while it lacks the column.
    """
    estate = mariadb_estate
    add = "ADD c INT NOT NULL, ADD d VARCHAR(9) NOT NULL"
    await unlocked(estate, add)
    async with estate.merging():
        estate.run("B1", "UPDATE {t} SET v = 0")
        await estate.caught_up()
        estate.ddl("B1", add)
        estate.insert("B1", "3, 13, 23, 33, 'x'")
        await estate.settled()
