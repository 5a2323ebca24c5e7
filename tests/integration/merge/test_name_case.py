"""Names in another case than the one that a table was made with: whose server takes them for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import anyio
import pymysql.err
import pytest
from pyspark import SparkContext

from actors.task.operator.removal import remove_task
from replicator.mysql.names import folded
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer, started
from tests.support.servers.mysql import MySQLServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import fault_of
from tests.support.tasks.shard_ddl import ShardedEstate
from tests.support.tasks.tables import union_of
from tests.support.tasks.task_files import start_of

LOWERING = {"lower_case_table_names": "1"}
SHARD = "(id DECIMAL(9) PRIMARY KEY, a DECIMAL(9), b DECIMAL(9))"


@pytest.fixture(
    scope="module",
    params=[MariaDBServer, pytest.param(MySQLServer, marks=pytest.mark.slow)],
)
def lowering(request: pytest.FixtureRequest) -> Iterator[DatabaseServer]:
    """A server that writes all names of tables and databases in lower case."""
    with started(request.param(LOWERING)) as server:
        yield server


@pytest.fixture
def estate(
    lowering: DatabaseServer,
    mariadb_target: DatabaseServer,
    database_name: str,
    spark: SparkContext,
    tmp_path: Path,
) -> ShardedEstate:
    return ShardedEstate({"a": lowering}, mariadb_target, database_name, spark, tmp_path)


@pytest.mark.parametrize("mode", ["", "pessimistic"])
async def test_statements_in_another_case_are_about_the_same_shards(
    estate: ShardedEstate, mode: str
) -> None:
    estate.create("A1", "A2", "A'1", table=SHARD)
    estate.task["shard-mode"] = mode
    server, upper = estate.server("A1"), estate.db.upper()
    by_another_name = "T1 TO TEMP1, Temp1 TO T3" if mode == "" else "T1 TO T3"
    async with estate.merging():
        for shard in estate.shards:
            estate.put(shard, "{}, 1, 2")
        server.execute(
            f"ALTER TABLE {upper}.T1 MODIFY b DECIMAL(9) FIRST, ADD KEY (A)",
            "CREATE VIEW V1 AS SELECT * FROM T1",
            database=upper,
        )
        estate.put("A1", "2, {}, 1")
        server.execute("ALTER TABLE T2 MODIFY b DECIMAL(9) FIRST, ADD KEY (a)", database=upper)
        estate.put("A2", "2, {}, 1")
        server.execute(f"DROP DATABASE {upper}_2")
        estate.shards.remove("A'1")
        await estate.has_rows(5)
        estate.target.execute(f"DELETE FROM {estate.db}.t WHERE id = 3")
        await estate.settled()
        server.execute(
            "ALTER TABLE t1 RENAME TO T1",
            f"RENAME TABLE {by_another_name}",
            "ALTER TABLE T2 RENAME TO T4",
            "CREATE TABLE T5 LIKE T4",
            database=upper,
        )
        estate.shards = ["A3", "A4", "A5"]
        for shard in estate.shards:
            estate.put(shard, "2, {}, 1")
        server.execute("DROP TABLE T5", "ALTER TABLE T3 ADD C DECIMAL(9)", database=upper)
        estate.shards.remove("A5")
        await estate.caught_up()
        estate.target.execute(f"DELETE FROM {estate.db}.t WHERE id = 8")
        estate.put("A3", "2, {}, 1, 5")
        server.execute("ALTER TABLE T4 ADD C DECIMAL(9)", database=upper)
        estate.put("A4", "2, {}, 1, 5")
        await estate.settled()


@pytest.fixture(params=[pytest.param("lowering", marks=pytest.mark.slow), "tidb_target"])
def caseless_estate(
    request: pytest.FixtureRequest,
    mariadb_source: DatabaseServer,
    database_name: str,
    spark: SparkContext,
    tmp_path: Path,
) -> ShardedEstate:
    """Shards on a server that counts the case of names, a target on one that does not."""
    target = request.getfixturevalue(request.param)
    return ShardedEstate({"a": mariadb_source}, target, database_name, spark, tmp_path)


only_mariadb = pytest.mark.parametrize("lowering", [MariaDBServer], indirect=True)


@only_mariadb
async def test_a_target_may_be_there_in_another_case(
    caseless_estate: ShardedEstate, lowering: DatabaseServer
) -> None:
    estate = caseless_estate
    estate.create("A1", "A2", "uA1")
    target, upper = estate.target, estate.db.upper()
    target.execute(
        f"DROP DATABASE {estate.db}",
        f"CREATE DATABASE {upper}",
        f"CREATE TABLE {upper}.T (ID INT PRIMARY KEY)",
        f"CREATE TABLE {upper}.U (Id INT PRIMARY KEY)",
    )
    estate.task |= {"task-mode": "all", "shard-mode": "pessimistic", "name": upper}
    for instance in estate.task["mysql-instances"]:  # type: ignore[attr-defined]
        del instance["meta"]
    for shard in estate.shards:
        estate.put(shard, "{}")
    async with estate.merging() as generation:
        with anyio.fail_after(60):
            while generation.running is None:
                await anyio.sleep(0.02)
        estate.ddl("A1", "ADD C INT")
        estate.put("A1", "{}, 1")
        estate.ddl("A2", "ADD c INT", "CHANGE ID Id INT")
        estate.put("A2", "{}, 1")
        estate.ddl("A1", "CHANGE id iD INT")
        estate.ddl("uA1", "ADD n INT", "ADD UNIQUE Uk (N)", "DROP INDEX uK")
        estate.put("uA1", "{}, 1")
        await estate.has_rows(4)
        await estate.has_rows(2, target="u")
        await estate.caught_up()
        assert estate.views() == []
    assert sum(estate.rows("id, c").values()) == 4


@pytest.mark.remedy("target.same-table", "run")
@only_mariadb
async def test_two_targets_in_two_cases_are_refused_where_they_are_one_table(
    caseless_estate: ShardedEstate, lowering: DatabaseServer
) -> None:
    estate = caseless_estate
    estate.create("A1", "uA1")
    routes = estate.task["routes"]
    routes["second"]["target-table"] = "T"  # type: ignore[index]
    found = await fault_of(_run(estate))
    assert found.event == "target.same-table"
    assert f"{estate.db}.T" in str(found)
    routes["second"]["target-table"] = "u"  # type: ignore[index]
    estate.task["case-sensitive"] = True
    async with estate.merging():
        await estate.caught_up()
    # No pattern of the routes has a capital letter, so this one goes under its own name.
    estate.run("A1", f"CREATE TABLE {estate.db}.T (id INT PRIMARY KEY)")
    found = await fault_of(_run(estate))
    assert found.event == "target.same-table"
    assert f"{estate.db}.t" in str(found)


async def _run(estate: ShardedEstate) -> None:
    async with estate.merging() as generation:
        await estate.caught_up()
        assert generation.running is not None
        await anyio.sleep(60)


@pytest.mark.parametrize(
    "kind", ["mariadb_source", "mariadb11_source", "mysql56_source", "mysql_source", "tidb_target"]
)
def test_columns_are_one_to_servers_as_they_are_here(
    request: pytest.FixtureRequest, kind: str, database_name: str
) -> None:
    server: DatabaseServer = request.getfixturevalue(kind)
    server.execute(f"CREATE DATABASE {database_name}")
    for one, other in (
        *(("Id", "ID"), ("É", "é"), ("ΛΌΓΟΣ", "λόγο\N{GREEK SMALL LETTER SIGMA}"), ("Я", "я")),
        *(("e", "é"), ("ß", "ss"), ("a", "å"), ("a", "á")),
    ):
        create = f"CREATE TABLE `{one}` (`{one}` INT, `{other}` INT)"
        told_apart = folded(one) != folded(other)
        refused: AbstractContextManager[object] = nullcontext()
        if not told_apart:
            refused = pytest.raises(pymysql.err.MySQLError, match="1060")
        with refused:
            server.execute(create, database=database_name)
        server.execute(f"DROP TABLE IF EXISTS `{one}`", database=database_name)


@only_mariadb
async def test_a_change_behind_the_start_is_seen_in_any_case(estate: ShardedEstate) -> None:
    estate.create("A1", "A2", table=SHARD)
    estate.put("A1", "{}, 1, 2")
    # Read by the structure of now, the columns of that row would change places.
    estate.server("A1").execute(
        f"ALTER TABLE {estate.db.upper()}.T1 MODIFY b DECIMAL(9) AFTER id, MODIFY a DECIMAL(9)"
    )
    found = await fault_of(_run(estate))
    assert found.event == "rows.structure-unknown"
    assert f"{estate.db}.t1" in found.where


@pytest.mark.remedy("source.name-case", "resume")
async def test_a_source_with_another_case_of_names_than_before_is_not_followed(
    mariadb_source: DatabaseServer,
    mariadb_target: DatabaseServer,
    database_name: str,
    spark: SparkContext,
    tmp_path: Path,
) -> None:
    estate = ShardedEstate({"a": mariadb_source}, mariadb_target, database_name, spark, tmp_path)
    estate.create("A1")
    async with estate.merging():
        await estate.caught_up()
    saved = f"{estate.db}_meta.{estate.db}_checkpoint"
    assert estate.target.execute(f"SELECT folds_names FROM {saved}") == ((0,),)
    estate.target.execute(f"UPDATE {saved} SET folds_names = 1")
    found = await fault_of(_run(estate))
    assert found.event == "source.name-case"
    assert "now it takes names of tables with their case" in found.message
    # The source has its former value again.
    estate.target.execute(f"UPDATE {saved} SET folds_names = 0")
    estate.put("A1", "{}")
    async with estate.merging():
        await estate.settled()


@pytest.mark.remedy("source.name-case", "run")
async def test_a_source_keeps_its_new_case_of_names(
    start_server: StartServer, merging_from: Callable[..., Merging]
) -> None:
    server = start_server(MariaDBServer)
    merging = merging_from(server)
    merging.create("x", "(id INT PRIMARY KEY)", shards=2)
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1)")
        await merging.check(generation)
    merging.do("INSERT INTO x_2 VALUES (2)")
    for options in (LOWERING, {}):
        server.reconfigure(options)
        server.restart()
        if options:
            assert (await merging.fault()).event == "source.name-case"
    async with merging.running() as generation:
        await merging.check(generation)
    server.reconfigure(LOWERING)
    server.restart()
    merging.instances = {"a": {"meta": start_of(server)}}
    merging.do("INSERT INTO X_1 VALUES (3)", "INSERT INTO x_2 VALUES (4)")
    await remove_task(merging.task)
    merging.changed(mode="incremental")
    async with merging.running() as generation:
        await merging.check(generation)


@pytest.mark.parametrize("mode", ["", pytest.param("pessimistic", marks=pytest.mark.slow)])
async def test_columns_in_another_case_are_the_same_columns(
    mariadb_source: DatabaseServer,
    mariadb_target: DatabaseServer,
    database_name: str,
    spark: SparkContext,
    tmp_path: Path,
    mode: str,
) -> None:
    estate = ShardedEstate({"a": mariadb_source}, mariadb_target, database_name, spark, tmp_path)
    estate.create("A1", "A2", table="(id INT PRIMARY KEY, été INT)")
    estate.task["shard-mode"] = mode
    async with estate.merging():
        for shard in estate.shards:
            estate.put(shard, "{}, 1")
        for shard, action in (
            ("A2", "CHANGE id ID INT, CHANGE été ÉTÉ INT"),
            ("A1", "CHANGE Id iD INT, CHANGE Été été INT"),
            ("A1", "ADD C INT FIRST, ADD UNIQUE Uk (c)"),
            ("A2", "ADD c INT FIRST, ADD UNIQUE UK (C)"),
        ):
            estate.ddl(shard, action)
        for shard in estate.shards:
            estate.put(shard, "NULL, {}, 2")
        estate.ddl("A1", "DROP INDEX UK, MODIFY COLUMN C BIGINT AFTER ID")
        estate.put("A1", "{}, 7, 3")
        estate.ddl("A2", "DROP INDEX uk, MODIFY COLUMN c BIGINT AFTER id")
        estate.put("A2", "{}, 7, 3")
        await estate.has_rows(6)
        await estate.caught_up()
        assert estate.views() == []
    shards = [(mariadb_source, estate.name(shard)) for shard in estate.shards]
    assert estate.rows() == union_of(shards)
