"""Schema changes of shards while they are copied: no operator is needed, and all is equal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest

from actors.task.generation import Generation
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import copy_all_anew
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, fault_of

MakeMerging = Callable[..., Merging]

COLUMNS = (
    "(id INT NOT NULL, n INT NOT NULL, s VARCHAR(10) CHARACTER SET latin1, d DECIMAL(6,2),"
    " e ENUM('a','b') CHARACTER SET latin1 NOT NULL DEFAULT 'a', t TIMESTAMP NULL,"
    " gone VARCHAR(5) NOT NULL, also_gone DATE NOT NULL, PRIMARY KEY (id), KEY by_n (n))"
)
ROWS = 150
LONG = 300.0
"""Seconds that ten locks may take, one after the other, on a machine that has much to do."""


@pytest.fixture(params=["", "pessimistic"], ids=["uncoordinated", "pessimistic"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def slow(merging: Merging, shard_mode: str, *, speed: int = 60) -> None:
    """Chunks of 50 rows, so many rows a second."""
    merging.mode = "all"
    merging.more |= {
        "mydumpers": {"small": {"rows": 50, "threads": 1}},
        "copy": {"rows-per-second": speed},
    }
    if shard_mode:
        merging.more["shard-mode"] = shard_mode
    merging.instance = {"mydumper-config-name": "small"}


def fill(merging: Merging, server: DatabaseServer, table: str, first: int) -> None:
    values = ",".join(
        f"({first + i},{i},'é{i}',{i}.25,{1 + i % 2},'2020-01-01 00:00:{i % 60:02}','g{i}',"
        f"'2021-02-{1 + i % 28:02}')"
        for i in range(ROWS)
    )
    merging.on(server, f"INSERT INTO {table} VALUES {values}")


async def reached(generation: Generation, chunks: int) -> None:
    """Wait until so many chunks are copied."""
    with anyio.fail_after(PATIENCE):
        while generation.copy is None or generation.copy.progress.chunks < chunks:
            await anyio.sleep(LOOK_SECONDS)


@asynccontextmanager
async def copying(merging: Merging, chunks: int) -> AsyncIterator[Generation]:
    """A running task that has copied so many chunks."""
    async with merging.running() as generation:
        await reached(generation, chunks)
        assert generation.running is None
        yield generation


async def on(server: DatabaseServer, merging: Merging, statements: Sequence[str]) -> None:
    for statement in statements:
        await anyio.to_thread.run_sync(merging.on, server, statement)


async def settled(merging: Merging, generation: Generation) -> None:
    """Wait until no lock is open and what it held is read again, or for long enough."""
    assert generation.running is not None
    with anyio.move_on_after(LONG):
        while generation.running.coordination.open_locks() or merging.differences():
            await anyio.sleep(LOOK_SECONDS)


def changes(table: str, first: int) -> list[str]:
    """Ten changes of a shard, and rows that change between them: copied ones, and others."""
    early, late = first + 3, first + ROWS - 5
    return [
        f"ALTER TABLE {table} ADD c INT NOT NULL DEFAULT 5, ADD INDEX by_c (c)",
        f"UPDATE {table} SET c = 7 WHERE id IN ({early}, {late})",
        f"ALTER TABLE {table} DROP COLUMN gone",
        f"INSERT INTO {table} (id, n, also_gone) VALUES ({first + ROWS}, 1, '2020-01-01')",
        f"ALTER TABLE {table} COMMENT 'a', DROP INDEX by_n",
        f"ALTER TABLE {table} MODIFY s VARCHAR(20) CHARACTER SET utf8mb4",
        f"UPDATE {table} SET s = '漢漢漢漢漢漢漢漢漢漢漢漢' WHERE id IN ({early + 1}, {late + 1})",
        f"ALTER TABLE {table} CHANGE n m BIGINT NULL",
        f"UPDATE {table} SET m = 5000000000 WHERE id IN ({early + 2}, {late + 2})",
        f"UPDATE {table} SET m = NULL WHERE id IN ({early + 3}, {late + 3})",
        f"ALTER TABLE {table} MODIFY d DECIMAL(12,4), MODIFY e ENUM('a','b','c')"
        " CHARACTER SET latin1 NOT NULL DEFAULT 'a'",
        f"UPDATE {table} SET d = 123456.7891, e = 'c' WHERE id IN ({early + 4}, {late + 4})",
        f"ALTER TABLE {table} DROP COLUMN also_gone, ADD gone INT",
        f"UPDATE {table} SET gone = 3 WHERE id IN ({early + 5}, {late - 5})",
        f"ALTER TABLE {table} MODIFY id BIGINT NOT NULL",
        f"INSERT INTO {table} (id, m) VALUES ({6000000000 + first}, 1)",
        f"CREATE INDEX by_m ON {table} (m)",
        f"ALTER TABLE {table} MODIFY t TIMESTAMP(3) NULL",
        f"UPDATE {table} SET t = '2022-01-01 10:00:00.125' WHERE id IN ({early}, {late})",
        f"DELETE FROM {table} WHERE id IN ({early + 6}, {late - 6})",
    ]


@pytest.mark.slow
@pytest.mark.not_on_tidb("it takes fewer changes in one ALTER, and no change of a clustered key")
async def test_ten_changes_of_every_shard_pass(
    merging_from: MakeMerging,
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    mode: str,
) -> None:
    # Without coordination, a shard must not write between another's change of a column and its own.
    alone = mode == ""
    merging = merging_from(mariadb_source, *([] if alone else [mariadb_source_full]))
    slow(merging, mode)
    numbers = (1,) if alone else (1, 2)
    merging.create("x", COLUMNS, shards=len(numbers), with_target=False)
    shards = [
        (s, f"x_{i}", 10000 * (2 * k + i))
        for k, s in enumerate(merging.sources.values())
        for i in numbers
    ]
    for server, table, first in shards:
        fill(merging, server, table, first)
    async with copying(merging, 1) as generation:
        async with anyio.create_task_group() as writers:
            for server, table, first in shards:
                writers.start_soon(on, server, merging, changes(table, first))
        await merging.copied(generation, LONG)
        await merging.caught_up(generation, LONG)
        await settled(merging, generation)
        await merging.check(generation)


@pytest.fixture(params=["mariadb_source", "mysql_source"])
def single(request: pytest.FixtureRequest, merging_from: MakeMerging) -> Merging:
    """A slow full copy of one source."""
    merging = merging_from(request.getfixturevalue(request.param))
    slow(merging, "", speed=100)
    return merging


NUMBERS = "(id INT PRIMARY KEY, n INT NOT NULL, gone INT NOT NULL)"


def numbers(merging: Merging, table: str, first: int, rows: int = 150) -> None:
    values = ",".join(f"({first + i},{i},{i})" for i in range(rows))
    merging.do(f"INSERT INTO {table} VALUES {values}")


@pytest.mark.slow
async def test_names_that_go_round_and_ghosts_pass_with_a_stop_in_between(single: Merging) -> None:
    """A shard is exchanged for a new one as in a rotation, another by an online schema change."""
    single.create("x", NUMBERS, shards=2, with_target=False)
    single.create("y", NUMBERS, with_target=False)
    for table, first in (("x_1", 1000), ("x_2", 2000), ("y_1", 1)):
        numbers(single, table, first)
    async with copying(single, 1):
        single.do(
            "CREATE TABLE x_4 LIKE x_1",
            "RENAME TABLE x_1 TO x_3, x_4 TO x_1",
            "INSERT INTO x_1 VALUES (5000, 1, 1), (5001, 1, 1)",
            "UPDATE x_3 SET n = -1 WHERE id IN (1001, 1100, 1149)",
            "CREATE TABLE _y_1_gho LIKE y_1",
            "ALTER TABLE _y_1_gho ADD COLUMN c INT NOT NULL DEFAULT 4",
            "INSERT INTO _y_1_gho (id, n, gone) SELECT id, n, gone FROM y_1",
            "RENAME TABLE y_1 TO _y_1_del, _y_1_gho TO y_1",
            "DROP TABLE _y_1_del",
        )
    async with copying(single, 4):
        single.do(
            "UPDATE y_1 SET c = 8 WHERE id IN (1, 149)",
            "ALTER TABLE x_3 COMMENT 'x'",
            "ALTER TABLE y_1 DROP COLUMN gone, ADD KEY (n)",
            "DELETE FROM x_2 WHERE id = 2149",
        )
    async with single.running() as generation:
        single.shards("x", 3)
        await single.copied(generation, LONG)
        await single.caught_up(generation, LONG)
        await single.check(generation)


async def test_a_ghost_of_before_the_copy_takes_its_tables_place_during_it(
    merging_from: MakeMerging, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    slow(merging, "", speed=100)
    merging.create("x", NUMBERS, with_target=False)
    numbers(merging, "x_1", 1)
    merging.do("CREATE TABLE _x_1_gho LIKE x_1", "ALTER TABLE _x_1_gho ADD c INT DEFAULT 4")
    async with copying(merging, 1) as generation:
        merging.do(
            "INSERT INTO _x_1_gho (id, n, gone) SELECT id, n, gone FROM x_1",
            "RENAME TABLE x_1 TO _x_1_del, _x_1_gho TO x_1",
            "UPDATE x_1 SET c = 8 WHERE id IN (3, 149)",
        )
        await merging.copied(generation, LONG)
        await merging.caught_up(generation, LONG)
        await merging.check(generation)


@pytest.mark.slow
async def test_shards_that_go_are_not_waited_for(single: Merging) -> None:
    for table in ("dropped", "emptied", "recreated"):
        single.create(table, NUMBERS, with_target=False)
        numbers(single, f"{table}_1", 1)
    async with copying(single, 1) as generation:
        single.do(
            "DROP TABLE dropped_1",
            "TRUNCATE TABLE emptied_1",
            "INSERT INTO emptied_1 VALUES (1, 2, 3), (500, 5, 5)",
            "DROP TABLE recreated_1",
            "CREATE TABLE recreated_1 (id INT PRIMARY KEY, s VARCHAR(10))",
            "INSERT INTO recreated_1 VALUES (1, 'a'), (600, 'b')",
        )
        single.shards("dropped", 0)
        await single.copied(generation, LONG)
        await single.caught_up(generation, LONG)
        there = single.on(single.target, "SHOW TABLES LIKE 'dropped'")
        assert not there
        del single._shards["dropped"]
        await single.check(generation)


@pytest.mark.remedy("copy.shard-changed", "copy anew")
async def test_what_no_statement_tells_of_stops_the_copy_and_says_why(
    merging_from: MakeMerging, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    slow(merging, "", speed=100)
    merging.create("x", NUMBERS, with_target=False)
    numbers(merging, "x_1", 1, 300)

    async def run() -> None:
        async with copying(merging, 1):
            merging.do("SET sql_log_bin = 0", "ALTER TABLE x_1 DROP COLUMN n")
            await anyio.sleep_forever()

    fault = await fault_of(run())
    assert fault.event == "copy.shard-changed"
    assert "its column n does not exist any more" in fault.message
    merging.changed(mode="all")
    await copy_all_anew(merging, "x", dropped=True)
