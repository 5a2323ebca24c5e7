"""What is particular about TiDB as the target."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread
import pymysql
import pytest
from pyspark import SparkContext
from structlog.testing import capture_logs

from replicator.downstream.rows.write_session import Session
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import DatabaseUnavailableError, is_unavailable
from replicator.pipeline.apply.batch import WriteOutcome
from replicator.sandbox.server import DatabaseServer
from replicator.schema.effects.overridden_effects import OverrideAction
from tests.support.servers.tidb import TiDBServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import override
from tests.support.tasks.running import fault_of, settles
from tests.support.tasks.tables import rows_of

MakeMerging = Callable[..., Merging]
MIB = 1 << 20


@pytest.fixture
def merging_to(
    spark: SparkContext, mariadb_source: DatabaseServer, database_name: str, tmp_path: Path
) -> MakeMerging:
    """Makes a merge of a MariaDB without row metadata into a TiDB."""

    def make(target: DatabaseServer) -> Merging:
        return Merging(spark, tmp_path, {"a": mariadb_source}, target, database_name)

    return make


def address(server: DatabaseServer) -> DatabaseAddress:
    return DatabaseAddress(server.host, server.port, server.user, server.password)


@contextmanager
def optimistic(server: DatabaseServer) -> Iterator[None]:
    server.execute("SET GLOBAL tidb_txn_mode = 'optimistic'")
    try:
        yield
    finally:
        server.execute("SET GLOBAL tidb_txn_mode = 'pessimistic'")


async def test_locks_hold_though_the_cluster_is_optimistic(tidb_target: DatabaseServer) -> None:
    mode = "SELECT @@tidb_txn_mode"
    with optimistic(tidb_target):
        asked = replace(address(tidb_target), session=(("tidb_txn_mode", "optimistic"),))
        session, connection = Session(asked), Connection(asked)
        try:
            assert session.rows(mode.encode())[0][0] in ("pessimistic", b"pessimistic")
            assert await connection.fetch(mode) == [("pessimistic",)]
        finally:
            session.close()
            connection.close()


async def test_a_timestamp_that_a_mode_of_the_shard_fills_is_refused(
    merging_to: MakeMerging, tidb_target: DatabaseServer
) -> None:
    merging = merging_to(tidb_target)
    merging.more["shard-mode"] = "pessimistic"
    merging.create("t", "(id INT PRIMARY KEY)")

    async def run(*statements: str) -> None:
        async with merging.running() as generation:
            merging.do("SET explicit_defaults_for_timestamp = 0", *statements)
            await merging.caught_up(generation)

    await run(
        "INSERT INTO t_1 VALUES (1)",
        "ALTER TABLE t_1 ADD a TIMESTAMP NULL, ADD b TIMESTAMP NOT NULL DEFAULT '2020-01-01'",
    )
    merging.do(
        "SET explicit_defaults_for_timestamp = 0", "ALTER TABLE t_1 ADD c TIMESTAMP NOT NULL"
    )
    fault = await merging.fault()
    assert fault.event == "ddl.refused"
    assert "neither NULL nor DEFAULT (c)" in str(fault)


async def test_rows_are_not_read_by_a_statement_that_the_target_got_instead(
    merging_to: MakeMerging, tidb_target: DatabaseServer
) -> None:
    """It can't add such a column, so nothing but the operator's statement shows one."""
    merging = merging_to(tidb_target)
    merging.more["shard-mode"] = "pessimistic"
    merging.create("t", "(id INT PRIMARY KEY)")
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.do("ALTER TABLE t_1 ADD g INT UNSIGNED INVISIBLE DEFAULT 3000000000")
    merging.do("INSERT INTO t_1 (id) VALUES (1)")
    refused = await merging.fault()
    assert refused.event == "ddl.refused"
    await override(merging, refused, OverrideAction.REPLACE, "ALTER TABLE t_1 ADD g INT")
    assert (await merging.fault()).event == "rows.structure-unknown"
    assert merging.on(tidb_target, "SELECT g FROM t") == ()


async def test_times_that_a_shard_truncates_are_not_rounded(
    merging_to: MakeMerging, tidb_target: DatabaseServer
) -> None:
    """A MariaDB truncates what its columns do not keep, and a TiDB rounds it in all modes."""
    merging = merging_to(tidb_target)
    merging.more["shard-mode"] = "pessimistic"
    merging.create("t", "(id INT PRIMARY KEY, a DATETIME(6), b TIME(3))")

    async def run(*statements: str) -> None:
        async with merging.running():
            merging.do(*statements)
            await settles(merging.differences, {})

    await run(
        "INSERT INTO t_1 VALUES (1, '2020-12-31 23:59:59', NULL)",
        "ALTER TABLE t_1 MODIFY a DATETIME(3)",
        "INSERT INTO t_1 VALUES (2, '2020-12-31 23:59:59.9', '-10:00:00.6')",
    )
    merging.do("ALTER TABLE t_1 MODIFY a DATETIME, MODIFY b TIME(1)")
    fault = await merging.fault()
    assert fault.event == "ddl.refused"
    [truncate] = re.findall("UPDATE .* > 0", str(fault))
    merging.on(tidb_target, truncate)
    await run("INSERT INTO t_1 VALUES (3, '2020-12-31 23:59:59.9', '-10:00:00.66')")
    await run(
        "ALTER TABLE t_1 ADD c TIME DEFAULT '10:00:00.6',"
        " ADD d DATETIME(2) NOT NULL DEFAULT '2020-12-31 23:59:59.999'"
    )


def test_a_conflict_of_transactions_is_to_be_tried_again(
    tidb_target: DatabaseServer, database_name: str
) -> None:
    db = database_name
    tidb_target.execute(
        f"CREATE DATABASE {db}",
        f"CREATE TABLE {db}.t (id INT PRIMARY KEY, v INT)",
        f"INSERT INTO {db}.t VALUES (1, 1)",
    )
    with tidb_target.connect() as one, one.cursor() as cursor:
        cursor.execute("BEGIN OPTIMISTIC")
        cursor.execute(f"UPDATE {db}.t SET v = 2")
        tidb_target.execute(f"UPDATE {db}.t SET v = 3")
        with pytest.raises(pymysql.err.MySQLError) as conflict:
            cursor.execute("COMMIT")
    assert is_unavailable(conflict.value), conflict.value


async def test_a_killed_connection_is_lost_and_a_killed_statement_is_not(
    tidb_target: DatabaseServer, database_name: str
) -> None:
    table = f"{database_name}.t"
    tidb_target.execute(
        f"CREATE DATABASE {database_name}",
        f"CREATE TABLE {table} (id INT PRIMARY KEY)",
        f"INSERT INTO {table} VALUES (1)",
    )
    connection = Connection(address(tidb_target))

    async def killed(kill: str) -> Exception:
        """Return how a statement ends that another session kills while it waits for a lock."""
        [[number]] = await connection.fetch("SELECT CONNECTION_ID()")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, end, kill, number)
            with pytest.raises((DatabaseUnavailableError, pymysql.err.MySQLError)) as raised:
                await connection.execute(f"DELETE FROM {table} WHERE id = 1")
        return raised.value

    def end(kill: str, number: int) -> None:
        until_runs(tidb_target, number)
        tidb_target.execute(f"KILL {kill} {number}")

    with tidb_target.connect() as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"SELECT * FROM {table} WHERE id = 1 FOR UPDATE")
        assert isinstance(await killed(""), DatabaseUnavailableError)
        # Now and then, TiDB closes the session after KILL QUERY, too.
        for _ in range(10):
            with suppress(DatabaseUnavailableError):
                if isinstance(await killed("QUERY"), pymysql.err.MySQLError):
                    break
        else:
            pytest.fail("no statement was killed without its connection")
    connection.close()


def until_runs(server: DatabaseServer, number: int) -> None:
    """Wait until a connection runs its statement."""
    while not server.execute(
        f"SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = {number} AND INFO LIKE 'DELETE%'"
    ):
        pass


async def test_an_auto_random_key_takes_the_shards_values(
    merging_to: MakeMerging, tidb_target: DatabaseServer
) -> None:
    merging = merging_to(tidb_target)
    merging.create(
        "t",
        "(id BIGINT PRIMARY KEY, v INT)",
        shards=2,
        target="(id BIGINT AUTO_RANDOM PRIMARY KEY, v INT)",
    )
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO t_1 VALUES (0, 0), (1, 1), (2, 2)",
            "INSERT INTO t_2 VALUES (3, 3)",
            "UPDATE t_1 SET id = 9 WHERE id = 2",
            "DELETE FROM t_2",
        )
        await merging.check(generation)


LATIN1 = "(k VARCHAR(9) CHARACTER SET latin1 PRIMARY KEY, e ENUM('é', 'ü') CHARACTER SET latin1)"
LATIN1_TABLES = {"t": LATIN1, "bag": LATIN1.replace(" PRIMARY KEY", "")}
LATIN1_ROWS = "VALUES ('é', 'ü'), ('€', 'é'), ('x', 'é'), ('ß', 'ü')"


async def test_text_of_latin1_arrives_where_latin1_is_utf8(
    merging_to: MakeMerging, tidb_target: DatabaseServer
) -> None:
    merging = merging_to(tidb_target)
    for table, columns in LATIN1_TABLES.items():
        merging.create(table, columns)
    async with merging.running() as generation:
        for table in ("t_1", "bag_1"):
            merging.do(
                f"INSERT INTO {table} {LATIN1_ROWS}",
                f"UPDATE {table} SET k = 'ö' WHERE k = 'é'",
                f"DELETE FROM {table} WHERE k = 'ß'",
            )
        await merging.caught_up(generation)
    for table in LATIN1_TABLES:
        rows = merging.target.execute(f"SELECT k, e FROM {merging.database}.{table}")
        assert set(rows) == {("ö", "ü"), ("€", "é"), ("x", "é")}
        assert sum(rows_of(merging.target, f"{merging.database}.{table}").values()) == 3


@pytest.mark.parametrize("made", [True, False], ids=["made", "there"])
async def test_text_of_latin1_is_copied_and_changed_where_latin1_is_utf8(
    merging_to: MakeMerging, tidb_target: DatabaseServer, made: bool
) -> None:
    merging = merging_to(tidb_target)
    merging.mode = "all"
    for table, columns in LATIN1_TABLES.items():
        merging.create(table, columns, with_target=not made)
        merging.do(f"INSERT INTO {table}_1 {LATIN1_ROWS}")
    async with merging.running() as generation:
        await merging.copied(generation)
        for table in LATIN1_TABLES:
            merging.do(f"UPDATE {table}_1 SET e = 'é'", f"DELETE FROM {table}_1 WHERE k = 'ß'")
        await merging.caught_up(generation)
    for table in LATIN1_TABLES:
        rows = merging.target.execute(f"SELECT k, e FROM {merging.database}.{table}")
        assert sorted(rows) == [("x", "é"), ("é", "é"), ("€", "é")]


async def test_a_batch_over_the_limit_of_a_transaction_is_cut(
    merging_to: MakeMerging, start_server: Callable[..., DatabaseServer]
) -> None:
    target = start_server(TiDBServer, {"performance.txn-total-size-limit": str(2 * MIB)})
    merging = merging_to(target)
    merging.create("t", "(id INT PRIMARY KEY, b LONGBLOB)")
    with capture_logs() as logs:
        async with merging.running() as generation:
            merging.do("INSERT INTO t_1 SELECT seq, REPEAT('x', 1200000) FROM seq_1_to_30")
            await merging.caught_up(generation)
    assert not merging.differences()
    [cut] = [log for log in logs if log["event"] == "batch.cut"]
    assert "too large" in cut["reason"]


async def test_a_row_that_is_too_large_is_named_with_the_setting(
    merging_to: MakeMerging, tidb_target: DatabaseServer
) -> None:
    merging = merging_to(tidb_target)
    merging.create("t", "(id INT PRIMARY KEY, b LONGBLOB)")

    async def run(*statements: str) -> None:
        async with merging.running() as generation:
            merging.do(*statements)
            await merging.caught_up(generation)

    error = await fault_of(run("INSERT INTO t_1 VALUES (1, REPEAT('x', 7000000))"))
    assert error.event == f"rows.{WriteOutcome.REFUSED.value}"
    assert "txn-entry-size-limit" in str(error)


async def test_a_copy_over_the_limits_is_told_with_the_setting(
    merging_to: MakeMerging, start_server: Callable[..., DatabaseServer]
) -> None:
    target = start_server(TiDBServer, {"performance.txn-total-size-limit": str(2 * MIB)})
    merging = merging_to(target)
    merging.mode = "full"
    merging.create("bag", "(n INT, b BLOB)", with_target=False)
    merging.do("INSERT INTO bag_1 SELECT seq, REPEAT('x', 60000) FROM seq_1_to_100")
    error = await fault_of(merging.copy())
    assert error.event == "copy.refused"
    assert "performance.txn-total-size-limit" in error.remedies[0]
    assert "chunk-filesize" in error.remedies[1]
    assert merging.on(target, "SELECT COUNT(*) FROM bag") == ((0,),)


@pytest.mark.slow
async def test_a_copy_within_the_limits_of_memory_goes_on_where_they_are_raised(
    merging_to: MakeMerging, start_server: Callable[..., DatabaseServer]
) -> None:
    target = start_server(TiDBServer)
    target.execute(f"SET GLOBAL tidb_mem_quota_query = {4 * MIB}")
    merging = merging_to(target)
    merging.mode = "full"
    merging.create("bag", "(n INT, b BLOB)", with_target=False)
    merging.do("INSERT INTO bag_1 SELECT seq, REPEAT('x', 60000) FROM seq_1_to_100")
    for _ in range(3):
        error = await fault_of(merging.copy())
        assert error.event == "copy.refused"
        assert "tidb_mem_quota_query" in error.remedies[0]
    target.execute(f"SET GLOBAL tidb_mem_quota_query = {64 * MIB}")
    await merging.copy()
    assert not merging.differences()
