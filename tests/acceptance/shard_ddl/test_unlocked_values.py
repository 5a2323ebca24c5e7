"""What an unlock gives the rows of shards that bring their own statement later."""

from __future__ import annotations

import anyio
import pytest
from structlog.testing import capture_logs

from actors.errors.faults import FatalError
from replicator.schema.effects.overridden_effects import OverrideAction
from tests.support.tasks.overriding import override
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, fault_of
from tests.support.tasks.shard_ddl import ShardedEstate

TABLE = "(id INT PRIMARY KEY, v INT, w INT)"


async def unlocked(estate: ShardedEstate, *changes: str) -> None:
    """A1 makes the changes, each of which is unlocked before B1 has it; B1 gets a row then."""
    estate.create("A1", "B1", table=TABLE)
    async with estate.merging():
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


async def stopped(estate: ShardedEstate) -> FatalError:
    """What the next run ends with if it must not reconcile."""

    async def run() -> None:
        async with estate.merging():
            await estate.caught_up()

    estate.task["on-unproven-change"] = "stop"
    with anyio.fail_after(PATIENCE):
        found = await fault_of(run())
    assert found.event == "ddl.other-values"
    assert found.scope is not None
    assert [str(name) for name in found.scope.targets] == [f"{estate.db}.t"]
    return found


async def reconciled(estate: ShardedEstate, *columns: str) -> None:
    """The next run reads values of these columns from the shards, while rows are written."""
    with capture_logs() as logs:
        async with estate.merging() as generation:
            await estate.settled()
            with anyio.fail_after(PATIENCE):
                while generation.counts.reconciling.entries or not any(
                    entry["event"] == "reconcile.finished" for entry in logs
                ):
                    await anyio.sleep(LOOK_SECONDS)
            await estate.settled()
    ends = [entry for entry in logs if entry["event"] == "reconcile.finished"]
    assert {name for entry in ends for name in entry["columns"]} >= set(columns)


OWN = {
    "default": (["ADD c INT DEFAULT 1"], ["ADD c INT DEFAULT 2"]),
    "none": (["ADD c INT DEFAULT 1"], ["ADD c INT"]),
    "moment": (["ADD c DATETIME DEFAULT now()"],) * 2,
    "random": (["ADD c VARCHAR(40) DEFAULT (uuid())"],) * 2,
    "since": (
        ["ADD c INT DEFAULT 1", "DROP c", "ADD c INT DEFAULT 3"],
        ["ADD c INT DEFAULT 1", "DROP c", "ADD c INT DEFAULT 4"],
    ),
}


@pytest.mark.parametrize("case", OWN)
async def test_rows_of_a_late_shard_get_their_own_values(
    mariadb_estate: ShardedEstate, case: str
) -> None:
    estate = mariadb_estate
    changes, own = OWN[case]
    await unlocked(estate, *changes)
    estate.run("B1", "UPDATE {t} SET v = 0 WHERE id = 2")
    estate.ddl("B1", *own)
    estate.run("B1", "INSERT INTO {t} (id, v) VALUES (3, 13), (4, 14)")
    estate.run("B1", "UPDATE {t} SET w = 0, c = NULL WHERE id = 3")
    await reconciled(estate, "c")


@pytest.mark.remedy("ddl.other-values", "reload")
async def test_a_task_stops_at_rows_of_a_late_shard(mariadb_estate: ShardedEstate) -> None:
    estate = mariadb_estate
    await unlocked(estate, "ADD c INT DEFAULT 1")
    estate.ddl("B1", "ADD c INT DEFAULT 2")
    await stopped(estate)
    estate.task["on-unproven-change"] = "reconcile"
    await reconciled(estate, "c")


async def test_a_late_shard_with_the_same_values_is_no_fault(mariadb_estate: ShardedEstate) -> None:
    """Nothing has to be reconciled either."""
    estate = mariadb_estate
    changes = "ADD c INT DEFAULT 1", "ADD d VARCHAR(9) NOT NULL"
    await unlocked(estate, *changes)
    estate.ddl("B1", *changes)
    estate.task["on-unproven-change"] = "stop"
    async with estate.merging():
        await estate.settled()


async def test_rows_that_came_while_the_target_had_another_default(
    mariadb_estate: ShardedEstate,
) -> None:
    """It has the first default again when the shard adds the column."""
    estate = mariadb_estate
    changes = "ADD c INT DEFAULT 1", "ALTER c SET DEFAULT 2"
    await unlocked(estate, *changes)
    async with estate.merging():
        estate.ddl("A1", "ALTER c SET DEFAULT 1")
        await estate.caught_up()
        [lock] = estate.running.coordination.open_locks()
        await estate.running.coordination.unlock(lock.id, owner="a", skip=False)
        await estate.caught_up()
    estate.ddl("B1", *changes, "ALTER c SET DEFAULT 1")
    await reconciled(estate, "c")


async def test_a_late_shard_with_other_values_in_a_key(mariadb_estate: ShardedEstate) -> None:
    """The target's rows are found by them; all of them are the shards'."""
    estate = mariadb_estate
    add = "ADD f INT NOT NULL DEFAULT {}, DROP PRIMARY KEY, ADD PRIMARY KEY (id, f)"
    await unlocked(estate, add.format(3))
    estate.ddl("B1", add.format(4))

    async with estate.merging():
        await estate.settled()


@pytest.mark.parametrize("mode", ["pessimistic", "optimistic", ""])
async def test_a_key_gets_a_column_before_its_values_are_read(
    mariadb_estate: ShardedEstate, mode: str
) -> None:
    """A later change of an older row finds it."""
    estate = mariadb_estate
    estate.mode = mode
    estate.create("A1", "B1", table=TABLE)
    async with estate.merging():
        estate.insert("A1", "1, 11, 21")
        estate.insert("B1", "2, 12, 22")
        await estate.caught_up()
    for shard in ("A1", "B1"):
        estate.ddl(shard, "ADD c DATETIME(6) NOT NULL DEFAULT now(6)")
    for shard in ("A1", "B1"):
        estate.ddl(shard, "DROP PRIMARY KEY, ADD PRIMARY KEY (id, c)")
        estate.run(shard, "UPDATE {t} SET v = 0")

    async with estate.merging():
        await estate.settled()


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


@pytest.mark.remedy("ddl.other-values", "skip")
async def test_the_operator_gives_the_rows_their_values(mariadb_estate: ShardedEstate) -> None:
    estate = mariadb_estate
    await unlocked(estate, "ADD c INT DEFAULT 1")
    estate.ddl("B1", "ADD c INT DEFAULT 2")
    estate.insert("B1", "3, 13, 23, 33")
    found = await stopped(estate)
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
    await reconciled(estate, "c")


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
    estate.shards.append("A3")
    estate.ddl("A3", "ADD c INT DEFAULT 6")
    await reconciled(estate, "c")


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
