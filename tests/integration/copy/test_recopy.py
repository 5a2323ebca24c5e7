"""Shards that change in the middle of their copy so that their rows can't be read as they were."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from actors.copying.workers import RateLimit
from actors.errors.faults import of_target
from actors.task.generation import Generation
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from tests.integration.copy.test_copy_ddl import LONG, NUMBERS, copying, numbers, on, slow
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS, fault_of

MakeMerging = Callable[..., Merging]


async def equal(merging: Merging, generation: Generation) -> None:
    """Wait until all shards are copied, those that were deferred, too; all must be equal."""
    with anyio.fail_after(LONG):
        await merging.copied(generation, LONG)
        while generation.copy is None or generation.copy.progress.figures().state != "finished":
            await anyio.sleep(LOOK_SECONDS)
        with anyio.move_on_after(LONG / 2):
            while merging.differences():
                await anyio.sleep(LOOK_SECONDS)
    assert not merging.differences()


def changes(table: str, first: int) -> list[str]:
    """Another type, and rows that change before and behind it: copied ones and others."""
    early, late = first + 3, first + 140
    return [
        f"UPDATE {table} SET n = -1 WHERE id IN ({early}, {late})",
        f"DELETE FROM {table} WHERE id IN ({early + 1}, {late + 1})",
        f"ALTER TABLE {table} MODIFY n VARCHAR(10) NOT NULL",
        f"UPDATE {table} SET n = 'text' WHERE id IN ({early + 2}, {late + 2})",
        f"DELETE FROM {table} WHERE id IN ({early + 3}, {late + 3})",
        f"INSERT INTO {table} VALUES ({first + 500}, 'new', 0)",
        f"UPDATE {table} SET id = {first + 600} WHERE id = {late + 4}",
    ]


@pytest.mark.parametrize("mode", ["", "pessimistic"])
async def test_another_kind_of_type_is_copied_once_more(
    merging_from: MakeMerging,
    mariadb_source: DatabaseServer,
    mode: str,
) -> None:
    merging = merging_from(mariadb_source)
    slow(merging, mode, speed=100)
    shards = 2 if mode else 1
    merging.create("x", NUMBERS, shards=shards, with_target=False)
    for number in range(1, shards + 1):
        numbers(merging, f"x_{number}", 1000 * number)
    async with copying(merging, 1) as generation:
        for number in range(1, shards + 1):
            await on(merging.source, merging, changes(f"x_{number}", 1000 * number))
        await equal(merging, generation)
        await on(merging.source, merging, ["UPDATE x_1 SET n = 'last' WHERE id = 1100"])
        await merging.check(generation)


KEYLESS = "(id INT NOT NULL, n INT NOT NULL, gone INT NOT NULL)"


@pytest.mark.slow
async def test_other_keys_names_and_no_key_with_stops_in_between(
    merging_from: MakeMerging, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    slow(merging, "", speed=150)
    for table in ("a", "key", "r"):
        merging.create(table, NUMBERS, with_target=False)
        numbers(merging, f"{table}_1", 1000)
    merging.create("bag", KEYLESS, with_target=False)
    numbers(merging, "bag_1", 1, 60)
    numbers(merging, "bag_1", 1, 60)
    async with copying(merging, 1):
        await on(
            merging.source,
            merging,
            [
                "ALTER TABLE a_1 DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)",
                "INSERT INTO a_1 VALUES (1003, 9999, 1), (1140, 9999, 1)",
                "UPDATE bag_1 SET n = 7 WHERE id IN (3, 4) LIMIT 3",
                "DELETE FROM bag_1 WHERE id = 5 LIMIT 1",
                "ALTER TABLE bag_1 MODIFY n VARCHAR(10) NOT NULL",
                "INSERT INTO bag_1 VALUES (1, 'text', 1), (1, 'text', 1)",
                "ALTER TABLE key_1 MODIFY id VARCHAR(20) NOT NULL",
                "DELETE FROM key_1 WHERE id IN ('1003', '1140')",
                "ALTER TABLE r_1 MODIFY gone DATETIME NULL",
                "RENAME TABLE r_1 TO r_3",
                "UPDATE r_3 SET gone = '2020-01-01' WHERE id IN (1003, 1140)",
            ],
        )
    async with merging.running() as generation:
        await merging.copied(generation, LONG)
        merging.do("DELETE FROM bag_1 WHERE id = 6 LIMIT 1", "DELETE FROM r_3 WHERE id = 1004")
    async with merging.running() as generation:
        # It has another name, by which the shards are not compared.
        del merging._shards["r"]
        merging.do("UPDATE bag_1 SET n = 'x' WHERE id = 8")
        await equal(merging, generation)
        await merging.check(generation)
        renamed = merging.on(merging.source, "SELECT * FROM r_3 ORDER BY id")
        assert merging.on(merging.target, "SELECT * FROM r ORDER BY id") == renamed


def held_behind_the_first(monkeypatch: pytest.MonkeyPatch) -> anyio.Event:
    """Let a copy begin with its first chunks, and go on when the event is set."""
    gate, admit = anyio.Event(), RateLimit.admit
    admitted: list[int] = []

    async def held(limit: RateLimit, rows: int, stop: anyio.Event) -> None:
        if admitted:
            await gate.wait()
        admitted.append(rows)
        await admit(limit, rows, stop)

    monkeypatch.setattr(RateLimit, "admit", held)
    return gate


async def test_a_key_that_another_shard_has_is_a_duplicate_as_ever(
    merging_from: MakeMerging, mariadb_source: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    merging = merging_from(mariadb_source)
    slow(merging, "pessimistic", speed=150)
    changed = held_behind_the_first(monkeypatch)
    merging.create("x", NUMBERS, shards=2, with_target=False)
    numbers(merging, "x_1", 1000)
    numbers(merging, "x_2", 2000)

    async def run() -> None:
        async with copying(merging, 1):
            alter = "ALTER TABLE x_{} MODIFY n VARCHAR(10) NOT NULL"
            statements = [
                "UPDATE x_1 SET n = -1 WHERE id = 1139",
                "INSERT INTO x_2 VALUES (1140, 0, 0)",
                *map(alter.format, (1, 2)),
            ]
            await on(merging.source, merging, statements)
            changed.set()
            await anyio.sleep_forever()

    fault = await fault_of(run())
    assert fault.event == "copy.duplicate"
    assert f"is that of a: {merging.database}.x_2" in fault.message
    assert "'…'" in fault.message


DROPPED = "ALTER TABLE x_1 DROP PRIMARY KEY"
WRITTEN = (
    "UPDATE x_1 SET n = -1 WHERE id IN (1003, 1140)",
    "DELETE FROM x_1 WHERE id IN (1004, 1141)",
    "INSERT INTO x_1 VALUES (1500, 1, 1), (1501, 1, 1)",
    "UPDATE x_1 SET id = 1502 WHERE id = 1142",
)


@pytest.mark.remedy("copy.shard-changed", "resume")
@pytest.mark.not_on_tidb("it can't drop a clustered key")
async def test_a_target_that_lost_its_key_during_the_copy_is_copied_anew_once_it_is_emptied(
    merging_from: MakeMerging, mariadb_source: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    merging = merging_from(mariadb_source)
    slow(merging, "", speed=1000)
    changed = held_behind_the_first(monkeypatch)
    merging.create("x", NUMBERS)
    numbers(merging, "x_1", 1000)
    # A row that no shard has: the task does not empty such a target by itself.
    merging.on(merging.target, "INSERT INTO x VALUES (1, 1, 1)")

    async def run() -> None:
        async with copying(merging, 1):
            await on(merging.source, merging, [*WRITTEN, DROPPED, *WRITTEN[:2]])
            changed.set()
            await anyio.sleep_forever()

    with anyio.fail_after(LONG):
        fault = await fault_of(run())
    assert fault.event == "copy.shard-changed"
    assert fault.scope == of_target(TableName(merging.database, "x"))
    (way,) = (way for way in fault.remedies if "TRUNCATE TABLE" in way)
    await anyio.to_thread.run_sync(merging.on, merging.target, way.partition(" on the target")[0])
    async with merging.running() as generation:
        await equal(merging, generation)
        await on(merging.source, merging, ["UPDATE x_1 SET n = 7 WHERE id = 1100"])
        await merging.check(generation)


@pytest.mark.remedy("copy.target-has-rows", "resume")
@pytest.mark.not_on_tidb("it can't drop a clustered key")
async def test_rows_that_another_program_wrote_during_the_copy_are_not_lost_with_the_key(
    merging_from: MakeMerging, mariadb_source: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    merging = merging_from(mariadb_source)
    slow(merging, "", speed=1000)
    changed = held_behind_the_first(monkeypatch)
    merging.create("x", NUMBERS, with_target=False)
    numbers(merging, "x_1", 1000)

    async def run() -> None:
        async with copying(merging, 1):
            merging.on(merging.target, "INSERT INTO x VALUES (1, 1, 1)")
            await on(merging.source, merging, [*WRITTEN, DROPPED, *WRITTEN[:2]])
            changed.set()
            await anyio.sleep_forever()

    for attempt in (run, merging.copy):
        with anyio.fail_after(LONG):
            fault = await fault_of(attempt())
        assert fault.event == "copy.target-has-rows"
        assert fault.scope == of_target(TableName(merging.database, "x"))
        kept = f"SELECT n FROM {merging.database}.x WHERE id = 1"
        assert merging.target.execute(kept) == ((1,),)
    await anyio.to_thread.run_sync(merging.on, merging.target, "TRUNCATE TABLE x")
    async with merging.running() as generation:
        await equal(merging, generation)
        await on(merging.source, merging, ["UPDATE x_1 SET n = 7 WHERE id = 1100"])
        await merging.check(generation)


@pytest.mark.not_on_tidb("it can't drop a clustered key")
@pytest.mark.parametrize(
    "server",
    ["mysql56_source", pytest.param("mysql_source", marks=pytest.mark.slow)],
)
async def test_a_shard_of_mysql_gets_its_key_back_during_the_copy(
    request: pytest.FixtureRequest, merging_from: MakeMerging, server: str
) -> None:
    merging = merging_from(request.getfixturevalue(server))
    slow(merging, "", speed=60)
    merging.create("x", NUMBERS, with_target=False)
    numbers(merging, "x_1", 1000)
    async with copying(merging, 1) as generation:
        await on(
            merging.source,
            merging,
            [
                *WRITTEN,
                DROPPED,
                "INSERT INTO x_1 VALUES (1600, 1, 1), (1601, 1, 1), (1601, 1, 1)",
                "UPDATE x_1 SET n = -2 WHERE id IN (1003, 1145)",
                "DELETE FROM x_1 WHERE id IN (1006, 1146, 1601)",
                "ALTER TABLE x_1 ADD PRIMARY KEY (id)",
                "UPDATE x_1 SET n = 7 WHERE id IN (1100, 1003)",
            ],
        )
        await merging.copied(generation, LONG)
    # The target is copied anew.
    async with merging.running() as generation:
        await equal(merging, generation)
        await merging.check(generation)
