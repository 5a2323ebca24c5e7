"""Changes that TiDB refuses, of tables that it can store: the target is created anew."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from pyspark import SparkContext
from structlog.testing import capture_logs

from replicator.downstream.ddl import ddl_execution, rebuilding
from replicator.downstream.ddl.ddl_execution import DdlExecution, DdlExecutor, DdlRefusedError
from replicator.failpoints import Failpoint
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.mysql.names import Member, TableName
from replicator.sandbox.server import DatabaseServer
from replicator.schema.structure.inspection import read_table
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles

COLUMNS = (
    "(id INT PRIMARY KEY, a INT, b VARCHAR(9) CHARACTER SET latin1, s ENUM('x','y') NOT NULL,"
    " d DATETIME, KEY ab (a, b))"
)
ROWS = "(1, 10, 'é', 'x', '0000-00-00'), (5, 11, NULL, 'y', '2024-02-29 10:00:00')"


@pytest.fixture
async def connection(tidb_target: DatabaseServer, database_name: str) -> AsyncIterator[Connection]:
    server = tidb_target
    server.execute(
        "SET sql_mode = ''",
        f"CREATE DATABASE {database_name}",
        f"CREATE TABLE {database_name}.t {COLUMNS}",
        f"INSERT INTO {database_name}.t VALUES {ROWS}",
    )
    made = Connection(DatabaseAddress(server.host, server.port, server.user, server.password))
    yield made
    made.close()


def change(database: str, actions: str, number: int = 7) -> DdlExecution:
    target = TableName(database, "t")
    return DdlExecution(
        target=target,
        member=Member("a", TableName("s", "t1")),
        transaction=number,
        sql=f"ALTER TABLE {target.quoted} {actions}",
        change=None,
    )


async def shown(connection: Connection, database: str) -> str:
    table = await read_table(connection, TableName(database, "t"))
    assert table is not None
    return table.create_sql


@pytest.mark.parametrize(
    ("actions", "wanted"),
    [
        ("MODIFY id VARCHAR(20)", "`id` varchar(20) NOT NULL"),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (id, a)", "PRIMARY KEY (`id`,`a`)"),
        ("DROP PRIMARY KEY", "`id` int(11) NOT NULL"),
        ("DROP a", "KEY `ab` (`b`)"),
        ("MODIFY id INT AUTO_INCREMENT", "`id` int(11) NOT NULL AUTO_INCREMENT"),
        ("ADD g INT AS (a + 1) STORED", "GENERATED ALWAYS AS (`a` + 1) STORED"),
        ("MODIFY b VARCHAR(9) CHARACTER SET utf8mb4", "`b` varchar(9) DEFAULT NULL"),
        ("MODIFY id CHAR(9), ADD n INT NOT NULL AFTER id", "`n` int(11) NOT NULL"),
        ("MODIFY id CHAR(9), CHANGE a c BIGINT", "KEY `ab` (`c`,`b`)"),
        ("MODIFY id CHAR(9), CHARSET latin1", "`s` enum('x','y') CHARACTER SET utf8mb4"),
    ],
)
async def test_the_rows_are_copied_into_the_changed_table(
    executor: DdlExecutor, connection: Connection, database_name: str, actions: str, wanted: str
) -> None:
    ddl = change(database_name, actions)
    assert await executor.execute(ddl)
    assert not await executor.execute(ddl), "once"
    assert wanted in await shown(connection, database_name)
    rows = await connection.fetch(f"SELECT id + 0, b, s, d FROM {database_name}.t ORDER BY id")
    assert [(int(n), b, s) for n, b, s, _ in rows] == [(1, "é", "x"), (5, None, "y")]
    zero = await connection.fetch(f"SELECT COUNT(*) FROM {database_name}.t WHERE d = 0")
    assert zero == [(1,)]
    left = await connection.fetch(f"SHOW TABLES FROM {database_name} LIKE '%%scratch%%'")
    assert left == []


@pytest.mark.parametrize(
    ("columns", "actions"),
    [
        (
            "(a INT, b VARCHAR(9), KEY (b)) CHARACTER SET utf8",
            "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
        ),
        (
            "(a INT, b VARCHAR(9), `c d` INT AS (a + 1), UNIQUE u (b), KEY (a, `c d`))",
            "DROP b, MODIFY a SMALLINT FIRST",
        ),
        (
            "(a INT, b VARCHAR(9), PRIMARY KEY (a, b)) PARTITION BY RANGE (a)"
            " (PARTITION p VALUES LESS THAN (50), PARTITION q VALUES LESS THAN MAXVALUE)",
            "MODIFY b VARBINARY(20)",
        ),
        ("(a INT UNIQUE, b VARCHAR(9), KEY ab (a, b))", "DROP KEY a, DROP b"),
    ],
)
async def test_any_table_is_copied(
    executor: DdlExecutor, connection: Connection, database_name: str, columns: str, actions: str
) -> None:
    """Also without a primary key, or with partitions."""
    await connection.execute(f"DROP TABLE {database_name}.t")
    await connection.execute(f"CREATE TABLE {database_name}.t {columns}")
    rows = ", ".join(f"({n}, 'b{n}')" for n in range(100))
    await connection.execute(f"INSERT INTO {database_name}.t (a, b) VALUES {rows}")
    with capture_logs() as logged:
        assert await executor.execute(change(database_name, actions))
    assert "ddl.rebuilt" in {entry["event"] for entry in logged}
    found = await connection.fetch(f"SELECT COUNT(*), SUM(a) FROM {database_name}.t")
    assert found == [(100, 4950)]


@pytest.mark.parametrize("kind", ["ENUM('x','y')", "BIT(4)"])
async def test_keys_by_which_rows_are_not_divided(
    executor: DdlExecutor, connection: Connection, database_name: str, kind: str
) -> None:
    await connection.execute(f"DROP TABLE {database_name}.t")
    await connection.execute(
        f"CREATE TABLE {database_name}.t (k {kind}, a INT, PRIMARY KEY (k, a))"
    )
    await connection.execute(f"INSERT INTO {database_name}.t VALUES (1, 1), (1, 2), (2, 1)")
    assert await executor.execute(change(database_name, "MODIFY a CHAR(9)"))
    found = await connection.fetch(f"SELECT k + 0, a FROM {database_name}.t ORDER BY 1, 2")
    assert found == [(1, "1"), (1, "2"), (2, "1")]


@pytest.mark.parametrize("actions", ["MODIFY id JSON", "MODIFY id TEXT"])
async def test_a_table_that_cannot_be_stored_stays(
    executor: DdlExecutor, connection: Connection, database_name: str, actions: str
) -> None:
    before = await shown(connection, database_name)
    with pytest.raises(DdlRefusedError):
        await executor.execute(change(database_name, actions))
    assert await shown(connection, database_name) == before


async def test_rows_that_do_not_fit_are_told(
    executor: DdlExecutor, connection: Connection, database_name: str
) -> None:
    before = await shown(connection, database_name)
    await connection.execute(f"INSERT INTO {database_name}.t VALUES (2, 10, 'z', 'x', NULL)")
    with pytest.raises(DdlRefusedError, match="Duplicate entry"):
        await executor.execute(change(database_name, "DROP PRIMARY KEY, ADD PRIMARY KEY (a)"))
    assert await shown(connection, database_name) == before
    await connection.execute(f"DELETE FROM {database_name}.t WHERE id = 2")
    assert await executor.execute(change(database_name, "DROP PRIMARY KEY, ADD PRIMARY KEY (a)"))


@pytest.mark.parametrize("point", [Failpoint.DDL_RECORDED, Failpoint.DDL_EXECUTED])
async def test_a_process_that_dies_around_the_exchange(
    executor: DdlExecutor,
    connection: Connection,
    database_name: str,
    point: Failpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dies(here: Failpoint) -> None:
        if here is point:
            raise KeyError("died")

    ddl = change(database_name, "MODIFY id VARCHAR(20)")
    with monkeypatch.context() as patched:
        patched.setattr(ddl_execution, "reach", dies)
        with pytest.raises(KeyError):
            await executor.execute(ddl)
    assert await executor.execute(ddl) == (point is Failpoint.DDL_RECORDED)
    assert "`id` varchar(20) NOT NULL" in await shown(connection, database_name)
    assert await connection.fetch(f"SELECT COUNT(*) FROM {database_name}.t") == [(2,)]


async def test_the_exchange_waits_for_those_who_read(
    executor: DdlExecutor,
    connection: Connection,
    database_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given up, all rows would be copied again and again."""
    reader = Connection(connection.address)
    monkeypatch.setattr(ddl_execution, "Connection", partial(Connection, patience=4.0))
    looking = (
        "SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO LIKE 'RENAME TABLE%%' AND TIME > 5"
    )
    try:
        async with anyio.create_task_group() as group, reader.transaction() as reading:
            await reading.fetch(f"SELECT * FROM {database_name}.t")
            group.start_soon(executor.execute, change(database_name, "MODIFY id CHAR(20)"))
            while not await connection.fetch(looking):
                await anyio.sleep(0.2)
    finally:
        reader.close()
    assert "`id` char(20) NOT NULL" in await shown(connection, database_name)


async def test_a_copy_that_lacks_rows_is_not_put_in_place(
    executor: DdlExecutor,
    connection: Connection,
    database_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copying = rebuilding._copying

    def less(*arguments: Any) -> str:
        return f"{copying(*arguments)} WHERE id > 1"

    monkeypatch.setattr(rebuilding, "_copying", less)
    before = await shown(connection, database_name)
    with pytest.raises(DdlRefusedError):
        await executor.execute(change(database_name, "MODIFY id VARCHAR(20)"))
    assert await shown(connection, database_name) == before
    assert await connection.fetch(f"SELECT COUNT(*) FROM {database_name}.t") == [(2,)]


async def test_a_parent_of_foreign_keys_stays(
    executor: DdlExecutor, connection: Connection, database_name: str
) -> None:
    await connection.execute(
        f"CREATE TABLE {database_name}.c (id INT PRIMARY KEY,"
        f" FOREIGN KEY (id) REFERENCES {database_name}.t (id))"
    )
    before = await shown(connection, database_name)
    with pytest.raises(DdlRefusedError):
        await executor.execute(change(database_name, "DROP PRIMARY KEY, ADD PRIMARY KEY (id, a)"))
    assert await shown(connection, database_name) == before


@pytest.mark.parametrize("mode", ["", "optimistic", "pessimistic"])
async def test_shards_that_change_the_type_of_their_key(
    spark: SparkContext,
    tmp_path: Path,
    mysql_source: DatabaseServer,
    tidb_target: DatabaseServer,
    database_name: str,
    mode: str,
) -> None:
    """Rows of before and after are on the target, of which TiDB refuses the change."""
    merging = Merging(spark, tmp_path, {"a": mysql_source}, tidb_target, database_name)
    merging.create("x", "(id INT PRIMARY KEY, v INT)", shards=2)
    merging.more["shard-mode"] = mode
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1)", "INSERT INTO x_2 VALUES (2, 2)")
        await merging.check(generation)
        for shard in ("x_1", "x_2"):
            merging.do(f"ALTER TABLE {shard} MODIFY id VARCHAR(20)")
            merging.do(f"INSERT INTO {shard} VALUES ('of {shard}', 3)")
            merging.do(f"DELETE FROM {shard} WHERE v < 3")
            merging.do(f"INSERT INTO {shard} VALUES ('next of {shard}', 4)")
        await settles(merging.differences, {})


@pytest.mark.parametrize("mode", [pytest.param("", marks=pytest.mark.slow), "optimistic"])
async def test_a_derived_change_creates_the_target_again(
    spark: SparkContext,
    tmp_path: Path,
    mysql_source: DatabaseServer,
    tidb_target: DatabaseServer,
    database_name: str,
    mode: str,
) -> None:
    """The last shard that makes a column narrower drops one that the others have."""
    merging = Merging(spark, tmp_path, {"a": mysql_source}, tidb_target, database_name)
    column = "v VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    merging.create("x", f"(id INT PRIMARY KEY, {column}, w INT, KEY (v))", shards=2)
    merging.more["shard-mode"] = mode
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 'e', 1)", "INSERT INTO x_2 VALUES (2, 'f', 2)")
        await merging.check(generation)
        for key, (shard, also) in enumerate((("x_1", ""), ("x_2", ", DROP w")), start=3):
            narrower = "VARCHAR(20) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci"
            merging.do(f"ALTER TABLE {shard} MODIFY v {narrower}{also}")
            merging.do(f"INSERT INTO {shard} (id, v) VALUES ({key}, '{shard}')")
        merging.do("ALTER TABLE x_1 DROP w")
        await settles(merging.differences, {})
        shown = merging.on(tidb_target, "SHOW FULL COLUMNS FROM x LIKE 'v'")
        assert "utf8_general_ci" in str(shown)


@pytest.mark.parametrize(
    ("sql", "left_out", "rows_need"),
    [
        ("CREATE FULLTEXT INDEX f ON {t} (b)", 1, ""),
        ("CREATE INDEX e ON {t} ((COALESCE(a, 1)))", 1, ""),
        ("ALTER TABLE {t} ADD KEY e ((COALESCE(a, 1))), ADD c INT DEFAULT 3", 1, "`c` int(11)"),
        ("ALTER TABLE {t} ADD KEY e ((COALESCE(a, 1))), ADD KEY f (d)", 1, "KEY `f` (`d`)"),
    ],
)
async def test_an_index_that_the_server_does_not_know_is_left_out(
    executor: DdlExecutor,
    connection: Connection,
    database_name: str,
    sql: str,
    left_out: int,
    rows_need: str,
) -> None:
    ddl = change(database_name, "")
    ddl = replace(ddl, sql=sql.format(t=ddl.target.quoted))
    with capture_logs() as logged:
        assert await executor.execute(ddl)
    assert [entry["event"] for entry in logged].count("ddl.index-left-out") == left_out
    assert rows_need in await shown(connection, database_name)
    unique = sql.replace("INDEX", "UNIQUE INDEX").replace("ADD KEY e", "ADD UNIQUE e")
    unique = unique.replace("FULLTEXT ", "").replace("(b)", "((COALESCE(b, 1)))")
    with pytest.raises(DdlRefusedError):
        await executor.execute(replace(ddl, sql=unique.format(t=ddl.target.quoted), transaction=8))


@pytest.mark.parametrize(
    "mode",
    [pytest.param("", marks=pytest.mark.slow), "optimistic", "pessimistic"],
)
async def test_indexes_that_come_and_go_on_shards_only(
    spark: SparkContext,
    tmp_path: Path,
    mysql_source: DatabaseServer,
    tidb_target: DatabaseServer,
    database_name: str,
    mode: str,
) -> None:
    merging = Merging(spark, tmp_path, {"a": mysql_source}, tidb_target, database_name)
    merging.create("x", "(id INT PRIMARY KEY, v VARCHAR(9), n INT)", shards=2)
    merging.more["shard-mode"] = mode
    async with merging.running():
        for number, change in enumerate(
            (
                "ADD FULLTEXT KEY f (v)",
                "ADD KEY e ((COALESCE(n, 1))), ADD c INT DEFAULT 3",
                "RENAME INDEX f TO g",
                "DROP KEY g, ADD d INT",
                "DROP KEY e",
            )
        ):
            for shard in (1, 2):
                merging.do(f"ALTER TABLE x_{shard} {change}")
                merging.do(f"INSERT INTO x_{shard} (id) VALUES ({2 * number + shard})")
        merging.do("CREATE FULLTEXT INDEX h ON x_1 (v)", "CREATE FULLTEXT INDEX h ON x_2 (v)")
        merging.do("DROP INDEX h ON x_1", "DROP INDEX h ON x_2")
        merging.do("INSERT INTO x_1 (id) VALUES (99)")
        await settles(merging.differences, {})
