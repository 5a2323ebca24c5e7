"""What TiDB refuses as one ALTER TABLE is executed as its single changes, each once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from pyspark import SparkContext

from replicator.ddl.parser.statement_kinds import classify
from replicator.downstream.ddl import ddl_execution
from replicator.downstream.ddl.ddl_execution import (
    DdlExecution,
    DdlExecutor,
    DdlRefusedError,
    HalfExecutedError,
)
from replicator.failpoints import Failpoint
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.mysql.names import Member, TableName
from replicator.sandbox.server import DatabaseServer
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.effects.column_values import value_clause
from replicator.schema.scratch.scratch_table import structure_after
from replicator.schema.structure.inspection import read_table
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles

COLUMNS = "(id INT PRIMARY KEY, a INT, b INT, gone INT, n INT, g INT AS (n + 1) VIRTUAL, KEY i (a))"


@pytest.fixture
async def connection(tidb_target: DatabaseServer, database_name: str) -> AsyncIterator[Connection]:
    server = tidb_target
    server.execute(
        f"CREATE DATABASE {database_name}",
        f"CREATE TABLE {database_name}.t {COLUMNS}",
        f"INSERT INTO {database_name}.t (id, a, b, gone) VALUES (1, 10, 100, 7), (2, 10, 200, 8)",
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


def ending(point: Failpoint, time: int) -> Callable[[Failpoint], None]:
    """What raises KeyError when a point is reached for the time-th time."""
    reached: list[Failpoint] = []

    def reach(here: Failpoint) -> None:
        reached.append(here)
        if here is point and reached.count(point) == time:
            raise KeyError("died")

    return reach


async def test_actions_that_need_one_another(
    executor: DdlExecutor, connection: Connection, database_name: str
) -> None:
    cases = [
        "ADD c INT DEFAULT 3, ADD INDEX ic (c)",
        "DROP INDEX i, ADD INDEX i (b)",
        "ADD x INT AFTER b, ADD y INT AFTER x",
        "DROP gone, ADD gone TEXT",
        "RENAME COLUMN b TO d, ADD b INT",
        "MODIFY a BIGINT, ADD INDEX ia (a)",
        "DROP g, DROP n",
        "ADD (e INT, f INT, UNIQUE u (e))",
    ]
    for number, actions in enumerate(cases):
        ddl = change(database_name, actions, number)
        assert await executor.execute(ddl)
        assert not await executor.execute(ddl), "once"
    rows = await connection.fetch(f"SELECT * FROM {database_name}.t ORDER BY id")
    table = await read_table(connection, TableName(database_name, "t"))
    assert table is not None
    names = [column.name for column in table.columns]
    assert names == ["id", "a", "d", "x", "y", "c", "gone", "b", "e", "f"]
    assert rows[0] == (1, 10, 100, None, None, 3, None, None, None, None)
    for key in ("ic", "i", "ia", "u"):
        assert f"KEY `{key}`" in table.create_sql
    left = await connection.fetch(f"SHOW TABLES FROM {database_name} LIKE '%%scratch%%'")
    assert left == []


async def test_what_remains_refused_changes_nothing(
    executor: DdlExecutor, connection: Connection, database_name: str
) -> None:
    before = await shown(connection, database_name)
    for actions in (
        "ADD c INT, ADD INDEX ic (c), DROP PRIMARY KEY",
        "ADD c INT, ADD INDEX ic (nowhere)",
        # As one it is refused because of the rows only.
        "ADD c INT, ADD UNIQUE u (a)",
        # MySQL keeps index i, for the new column.
        "DROP a, ADD a INT",
    ):
        with pytest.raises(DdlRefusedError) as refused:
            await executor.execute(change(database_name, actions))
        assert not isinstance(refused.value, HalfExecutedError)
        assert await shown(connection, database_name) == before


async def test_a_column_that_comes_anew_is_not_taken_for_done(
    executor: DdlExecutor, connection: Connection, database_name: str
) -> None:
    """TiDB says that it exists, and its structure says that nothing is missing."""
    table = await read_table(connection, TableName(database_name, "t"))
    ddl = change(database_name, "DROP gone, ADD gone INT AFTER b")
    assert await executor.execute(replace(ddl, change=MemberChange(table, table)))
    rows = await connection.fetch(f"SELECT gone FROM {database_name}.t")
    assert rows == [(None,), (None,)]


@pytest.mark.parametrize(
    ("point", "time"),
    [
        (Failpoint.DDL_RECORDED, 2),
        (Failpoint.DDL_EXECUTED, 2),
        *(pytest.param(Failpoint.DDL_RECORDED, n, marks=pytest.mark.slow) for n in (1, 3, 4)),
        *(pytest.param(Failpoint.DDL_EXECUTED, n, marks=pytest.mark.slow) for n in (1, 3)),
    ],
)
async def test_death_between_single_changes(
    executor: DdlExecutor,
    connection: Connection,
    database_name: str,
    monkeypatch: pytest.MonkeyPatch,
    point: Failpoint,
    time: int,
) -> None:
    """An index without a name would be made a second time."""
    ddl = change(database_name, "ADD c INT, ADD INDEX (b), ADD INDEX (c)")
    with monkeypatch.context() as patched:
        patched.setattr(ddl_execution, "reach", ending(point, time))
        with pytest.raises(KeyError, match="died"):
            await executor.execute(ddl)
    await executor.execute(ddl)
    there = await shown(connection, database_name)
    assert [there.count(f"KEY `{name}`") for name in ("b", "c")] == [1, 1]
    assert there.count("KEY ") == 4
    assert not await executor.execute(ddl)


async def test_one_that_the_rows_refuse_is_gone_on_with(
    executor: DdlExecutor, connection: Connection, database_name: str
) -> None:
    ddl = change(database_name, "ADD c INT, ADD INDEX ic (c), ADD UNIQUE u (a), ADD INDEX ib (b)")
    for _ in range(2):
        with pytest.raises(HalfExecutedError, match="Duplicate entry") as refused:
            await executor.execute(ddl)
        assert [sql.partition("`t` ")[2] for sql in refused.value.executed] == [
            "ADD c INT",
            "ADD INDEX ic (c)",
        ]
        assert len(refused.value.left) == 2
    # A change by hand must not look like the statement's own.
    await connection.execute(f"ALTER TABLE {database_name}.t ADD INDEX mine (n)")
    await connection.execute(f"UPDATE {database_name}.t SET a = id")
    assert await executor.execute(ddl)
    there = await shown(connection, database_name)
    assert "UNIQUE KEY `u` (`a`)" in there
    assert "KEY `ib` (`b`)" in there
    assert not await executor.execute(ddl)


async def test_the_operator_decides_about_what_is_left(
    executor: DdlExecutor, connection: Connection, database_name: str
) -> None:
    ddl = change(database_name, "ADD c INT, ADD INDEX ic (c), ADD UNIQUE u (a)")
    with pytest.raises(HalfExecutedError):
        await executor.execute(ddl)
    await executor.execute(
        replace(ddl, instead=(f"ALTER TABLE {ddl.target.quoted} ADD INDEX u (a)",))
    )
    there = await shown(connection, database_name)
    assert " KEY `u` (`a`)" in there
    assert there.count("KEY `ic`") == 1
    assert not await executor.execute(ddl)


async def test_what_a_statement_comes_to_is_learned_by_its_single_changes(
    mariadb_source: DatabaseServer, connection: Connection, database_name: str
) -> None:
    """Also where the shard's collation is not there, with the default that it gives older rows."""
    mariadb_source.execute(
        f"CREATE DATABASE {database_name}",
        f"CREATE TABLE {database_name}.t (id INT PRIMARY KEY, k INT DEFAULT 4, old INT, v TEXT)"
        " CHARSET=cp1251",
    )
    source = Connection(
        DatabaseAddress(
            mariadb_source.host, mariadb_source.port, mariadb_source.user, mariadb_source.password
        )
    )
    name = TableName(database_name, "t")
    before = await read_table(source, name)
    sql = (
        f"ALTER TABLE {name.quoted} DROP old, ADD old INT DEFAULT 7, ADD d INT DEFAULT 5,"
        " ADD INDEX i (d)"
    )
    mariadb_source.execute(sql)
    really = await read_table(source, name)
    source.close()
    assert before is not None
    assert really is not None
    table = await structure_after(
        connection,
        TableName(database_name, "scratch"),
        before,
        classify(sql, default_schema=database_name),
    )
    assert [column.name for column in table.columns] == ["id", "k", "v", "old", "d"]
    for column in really.columns:
        # A server writes numbers with quotes or without.
        found = value_clause(table, column.name).replace("'", "")
        assert found == value_clause(really, column.name), column.name


@pytest.mark.parametrize("mode", ["", pytest.param("pessimistic", marks=pytest.mark.slow)])
async def test_shards_whose_statements_tidb_takes_in_parts(
    spark: SparkContext,
    mariadb_source: DatabaseServer,
    tidb_target: DatabaseServer,
    database_name: str,
    tmp_path: Path,
    mode: str,
) -> None:
    merging = Merging(spark, tmp_path, {"a": mariadb_source}, tidb_target, database_name)
    merging.more["shard-mode"] = mode
    merging.create("x", "(id INT PRIMARY KEY, v INT, KEY i (v))", shards=2)
    changes = (
        "ADD c INT AFTER v, ADD d INT AFTER c, ADD INDEX ic (c), DROP INDEX i, ADD INDEX i (d)",
        "DROP v, ADD v VARCHAR(9) FIRST",
    )
    async with merging.running():
        merging.do("INSERT INTO x_1 VALUES (1, 1)", "INSERT INTO x_2 VALUES (2, 2)")
        for change_ in changes:
            for shard in ("x_1", "x_2"):
                merging.do(f"ALTER TABLE {shard} {change_}")
                merging.do(f"INSERT INTO {shard} (id) SELECT MAX(id) + 10 FROM {shard}")
        merging.do("UPDATE x_1 SET v = 'new', d = 4", "UPDATE x_2 SET c = id")
        with anyio.fail_after(60):
            last = "SHOW COLUMNS FROM x WHERE Field = 'v' AND Type = 'varchar(9)'"
            while not merging.on(tidb_target, last):
                await anyio.sleep(0.05)
            while merging.differences({"x": "id, c, d, v"}):
                await anyio.sleep(0.05)
    there = merging.on(tidb_target, "SHOW CREATE TABLE x")[0][1]
    assert "KEY `i` (`d`)" in str(there)


async def test_a_fault_half_way_says_what_was_executed(
    spark: SparkContext,
    mariadb_source: DatabaseServer,
    tidb_target: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    merging = Merging(spark, tmp_path, {"a": mariadb_source}, tidb_target, database_name)
    merging.more["shard-mode"] = "pessimistic"
    merging.create("x", "(id INT PRIMARY KEY, v INT)", shards=2)
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1)", "INSERT INTO x_2 VALUES (2, 1)")
        await merging.caught_up(generation)
    for shard in ("x_1", "x_2"):
        merging.do(f"ALTER TABLE {shard} ADD c INT, ADD INDEX ic (c), ADD UNIQUE u (v)")
    fault = await merging.fault()
    assert fault.event == "ddl.refused"
    executed, left = str(fault).split("not executed:")
    assert "ADD INDEX ic (c)" in executed.split("executed:")[1]
    assert "ADD UNIQUE u (v)" in left
    merging.do("DELETE FROM x_1")
    merging.on(tidb_target, "UPDATE x SET v = 5 WHERE id = 1")
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (3, 3, 3)")
        await merging.caught_up(generation)
        shown = "SHOW CREATE TABLE x"
        await settles(lambda: "UNIQUE KEY `u`" in str(merging.on(tidb_target, shown)[0][1]), True)
