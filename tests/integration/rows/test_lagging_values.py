"""Columns that a shard lacks: the target's values are those that the shard gives them later."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import anyio
import pytest

from actors.task.generation import Generation
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, settles

KEYS = {"t": "PRIMARY KEY (id)", "u": "PRIMARY KEY (id), UNIQUE (x)", "k": "KEY (id)"}


@pytest.fixture(params=["mariadb_source", "mysql_source"])
def newer(request: pytest.FixtureRequest) -> DatabaseServer:
    """Each kind of server that has defaults by expression."""
    server: DatabaseServer = request.getfixturevalue(request.param)
    return server


@pytest.mark.also_tidb
async def test_on_update_of_a_column_that_a_shard_lacks(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    await changed_while_lagging(
        merging_from(mariadb_source),
        "ADD COLUMN c TIMESTAMP NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP",
    )


@pytest.mark.not_on_tidb("it has no defaults that refer to columns")
async def test_default_by_other_columns_of_a_column_that_a_shard_lacks(
    merging_from: Callable[..., Merging], newer: DatabaseServer
) -> None:
    await changed_while_lagging(merging_from(newer), "ADD COLUMN c INT DEFAULT (a + 1)")


@pytest.mark.parametrize("mode", ["", "optimistic"])
async def test_a_column_of_the_key_that_a_shard_lacks(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, mode: str
) -> None:
    """Its rows are found by their other columns, in the same batch as those of other shards."""
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = mode
    merging.create("t", "(id INT PRIMARY KEY, v INT)", shards=2)
    change = "ADD f INT NOT NULL DEFAULT 3, DROP PRIMARY KEY, ADD PRIMARY KEY (id, f)"
    async with merging.running() as generation:
        merging.do("INSERT INTO t_1 VALUES (1, 1), (2, 2)", "INSERT INTO t_2 VALUES (101, 1)")
        merging.do(f"ALTER TABLE t_1 {change}")
        await merging.caught_up(generation)
        for moved in range(8):
            merging.do(
                "BEGIN",
                f"INSERT INTO t_1 (id, v) VALUES ({10 + moved}, 1)",
                f"INSERT INTO t_2 VALUES ({110 + moved}, 1)",
                "UPDATE t_1 SET v = v + 1 WHERE id < 3",
                "UPDATE t_2 SET v = v + 1 WHERE id = 101",
                "COMMIT",
            )
        merging.do("DELETE FROM t_2 WHERE id = 111", f"ALTER TABLE t_2 {change}")
        merging.do("INSERT INTO t_2 VALUES (200, 1, 4)")
        await merging.check(generation)


async def test_rows_that_only_a_column_tells_apart_that_a_shard_lacks(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = "optimistic"
    merging.create("t", "(id INT PRIMARY KEY, v INT)", shards=2)
    change = "ADD f INT NOT NULL DEFAULT 3, DROP PRIMARY KEY, ADD PRIMARY KEY (id, f)"
    async with merging.running() as generation:
        merging.do(f"ALTER TABLE t_1 {change}")
        merging.do("INSERT INTO t_1 VALUES (1, 1, 1), (2, 1, 1), (1, 1, 9), (2, 1, 9)")
        merging.do("INSERT INTO t_2 VALUES (1, 1), (2, 1)")
        await merging.caught_up(generation)
        merging.do("UPDATE t_2 SET v = 2 WHERE id = 1", "DELETE FROM t_2 WHERE id = 2")
        await merging.caught_up(generation)
        merging.do("UPDATE t_2 SET id = 5 WHERE id = 1", "UPDATE t_1 SET v = 7 WHERE f = 9")
        merging.do(f"ALTER TABLE t_2 {change}", "INSERT INTO t_2 VALUES (5, 1, 4)")
        await merging.check(generation)


async def changed_while_lagging(merging: Merging, statement: str) -> None:
    for table, key in KEYS.items():
        merging.create(table, f"(id INT NOT NULL, a INT, x INT, {key})", shards=2)
    async with merging.running() as generation:
        for table in KEYS:
            for shard in (1, 2):
                rows = ", ".join(f"({shard}{n:03}, {n}, {shard}{n:03})" for n in range(100))
                merging.do(f"INSERT INTO {table}_{shard} VALUES {rows}")
        await merging.caught_up(generation)
        for table in KEYS:
            merging.do(
                f"ALTER TABLE {table}_1 {statement}",
                f"UPDATE {table}_1 SET a = a + 10 WHERE id % 2 = 0",
                f"INSERT INTO {table}_1 (id, a, x) VALUES (1999, 5, 1999)",
            )
        await merging.caught_up(generation)
        for table in KEYS:
            # So few that they are statements, and so many that they are loaded.
            for some in ("id % 50 = 3", "id % 2 = 1"):
                merging.do(f"UPDATE {table}_2 SET a = a + 100 WHERE {some}")
                await merging.caught_up(generation)
            merging.do(
                f"INSERT INTO {table}_2 (id, a, x) VALUES (2998, 5, 2998), (2999, 6, 2999)",
                f"UPDATE {table}_2 SET a = 77 WHERE id = 2999",
                f"UPDATE {table}_2 SET id = 2997, a = 78 WHERE id = 2998",
            )
        await merging.caught_up(generation)
        for table in KEYS:
            merging.do(
                f"ALTER TABLE {table}_2 {statement}",
                f"UPDATE {table}_2 SET a = a + 1000 WHERE id % 3 = 1",
            )
        await settles(merging.differences, {})


async def test_a_default_that_the_target_has_changed_with_the_name(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = "pessimistic"
    merging.create("t", "(id INT PRIMARY KEY)", shards=2)
    changes = "ADD c INT DEFAULT 5", "CHANGE c d INT DEFAULT 6"
    async with merging.running() as generation:
        await alter_first(merging, generation, changes)
        merging.do("INSERT INTO t_2 VALUES (2)")
        await merging.caught_up(generation)
    merging.do(*(f"ALTER TABLE t_2 {text}" for text in changes), "INSERT INTO t_2 (id) VALUES (3)")
    async with merging.running() as generation:
        await settles(merging.differences, {})
        await merging.check(generation)


NOT_NULL = {
    "number": "INT",
    "unsigned": "BIGINT UNSIGNED",
    "exact": "DECIMAL(9, 2)",
    "inexact": "DOUBLE",
    "bits": "BIT(9)",
    "text": "VARCHAR(9) CHARACTER SET utf8mb4",
    "fixed": "CHAR(9) CHARACTER SET latin1",
    "long": "LONGTEXT",
    "bytes": "VARBINARY(9)",
    "padded": "BINARY(3)",
    "blob": "BLOB",
    "label": "ENUM('p', 'q')",
    "labels": "SET('p', 'q')",
    "day": "DATE",
    "moment": "DATETIME(3)",
    "time": "TIME(3)",
    "year": "YEAR",
    "stamp": "TIMESTAMP",
}


async def not_null_while_lagging(merging: Merging, types: dict[str, str]) -> None:
    """A shard has rows, more, changes and deletions before it brings the columns, too."""
    for table, key in KEYS.items():
        merging.create(table, f"(id INT NOT NULL, a INT, x INT, {key})", shards=2)
    columns = ", ".join(f"ADD `{name}` {kind} NOT NULL" for name, kind in types.items())
    add = "SET sql_mode='', explicit_defaults_for_timestamp=1", f"ALTER TABLE {{}} {columns}"
    async with merging.running() as generation:
        for table in KEYS:
            merging.do(f"INSERT INTO {table}_2 VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)")
            merging.do(*(text.format(f"{table}_1") for text in add))
        await merging.caught_up(generation)
        for table in KEYS:
            rows = ", ".join(f"({n}, {n}, {n})" for n in range(100, 300))
            merging.do(
                f"INSERT INTO {table}_2 VALUES (4, 4, 4), (5, 5, 5)",
                f"UPDATE {table}_2 SET a = 9 WHERE id IN (1, 4)",
                f"UPDATE {table}_2 SET id = 12 WHERE id = 2",
                f"DELETE FROM {table}_2 WHERE id = 3",
            )
            await merging.caught_up(generation)
            merging.do(f"INSERT INTO {table}_2 VALUES {rows}")
        await merging.caught_up(generation)
        for table in KEYS:
            merging.do(*(text.format(f"{table}_2") for text in add))
            merging.do(f"UPDATE {table}_2 SET a = 10 WHERE id = 5")
        await merging.check(generation)


@pytest.mark.also_tidb(slow=True)
async def test_columns_without_default_that_a_shard_lacks(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    await not_null_while_lagging(merging_from(mariadb_source), NOT_NULL)


async def test_columns_without_default_of_types_of_one_server(
    merging_from: Callable[..., Merging], mariadb11_source: DatabaseServer
) -> None:
    types = {"u": "UUID", "four": "INET4", "six": "INET6"}
    await not_null_while_lagging(merging_from(mariadb11_source), types)


@pytest.mark.parametrize("target_server", ["mysql"], indirect=True)
async def test_columns_without_default_that_a_mysql_shard_lacks(
    merging_from: Callable[..., Merging], mysql_source: DatabaseServer
) -> None:
    await not_null_while_lagging(merging_from(mysql_source), {**NOT_NULL, "j": "JSON"})


async def test_a_column_without_default_that_was_made_anew(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    """The shard's former values don't belong into the new column."""
    merging = merging_from(mariadb_source)
    merging.create("t", "(id INT PRIMARY KEY, a INT)", shards=2)
    anew = "ALTER TABLE {} DROP a", "ALTER TABLE {} ADD a INT NOT NULL"
    async with merging.running() as generation:
        merging.do("INSERT INTO t_2 VALUES (1, 1)", *(text.format("t_1") for text in anew))
        await merging.caught_up(generation)
        merging.do("INSERT INTO t_2 VALUES (2, 2)", "UPDATE t_2 SET a = 9 WHERE id = 1")
        await merging.caught_up(generation)
        merging.do(*(text.format("t_2") for text in anew), "INSERT INTO t_2 VALUES (3, 3)")
        await settles(merging.differences, {})
        await merging.check(generation)


CONVERTED = {
    "rounded": ("DECIMAL(9,3)", "DECIMAL(9,2)", "2.245"),
    "trimmed": ("VARCHAR(9)", "CHAR(9)", "b  "),
    "cut": ("DATETIME(3)", "DATETIME(1)", "2026-01-02 03:04:05.678"),
}


@pytest.mark.parametrize("case", CONVERTED)
async def test_values_that_a_shard_converts_when_the_target_has_converted_back(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, case: str
) -> None:
    wide, narrow, value = CONVERTED[case]
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = "pessimistic"
    merging.create("t", f"(id INT PRIMARY KEY, v {wide})", shards=2)
    changes = f"MODIFY v {narrow}", f"MODIFY v {wide}"
    async with merging.running() as generation:
        await alter_first(merging, generation, changes)
        merging.do(f"INSERT INTO t_2 VALUES (2, '{value}')")
        await merging.check(generation)
    merging.do(
        *(f"ALTER TABLE t_2 {text}" for text in changes), f"INSERT INTO t_2 VALUES (3, '{value}')"
    )
    async with merging.running() as generation:
        await settles(merging.differences, {})
        await merging.check(generation)


async def alter_first(merging: Merging, generation: Generation, changes: Iterable[str]) -> None:
    """The target follows the first shard alone, by unlocking."""
    for text in changes:
        merging.do(f"ALTER TABLE t_1 {text}")
        await merging.caught_up(generation)
        await unlocked(merging, generation)


async def unlocked(merging: Merging, generation: Generation) -> None:
    """The first open lock is unlocked, and its statement executed."""
    assert generation.running is not None
    coordination = generation.running.coordination
    with anyio.fail_after(PATIENCE):
        while not (locks := coordination.open_locks()):
            await anyio.sleep(LOOK_SECONDS)
        await coordination.unlock(locks[0].id, owner="", skip=False)
        while coordination.open_locks():
            await anyio.sleep(LOOK_SECONDS)
    await merging.caught_up(generation)
