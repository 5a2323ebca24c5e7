"""A source fails over while something stands behind its saved position: locks, ghosts, buckets."""

from __future__ import annotations

import anyio
import pytest

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.mysql import MySQLServer
from replicator.sandbox.server import BinlogServer, DatabaseServer
from tests.support.failover import Estate, FailingOver
from tests.support.running import LOOK_SECONDS, PATIENCE, caught_up, running
from tests.support.tables import rows_of, union_of

PAIRS = [MySQLServer, MariaDBServer]


@pytest.mark.slow
@pytest.mark.parametrize("kind", PAIRS)
async def test_a_lock_that_is_open_waits_on_the_other_server(
    kind: type[BinlogServer], failing_over: FailingOver
) -> None:
    """Rows behind its DDL are held, rows of the other shard and of a table without a key are not;
    the lock is decided on one server, and closed there or on the next."""
    it = failing_over(kind)
    pair, db = it.pair, it.database
    pair.primary.execute(f"CREATE TABLE {db}.t2 (id INT PRIMARY KEY, n INT)")
    it.values["mysql-instances"][0]["meta"] = {"binlog-gtid": pair.executed(pair.primary)}
    it.values["shard-mode"] = "pessimistic"
    async with running(it.task, it.spark) as generation:
        it.write(pair.primary)
        await caught_up(generation, {"a": pair.primary})
        write_beside(it, pair.primary, 1, "ALTER TABLE t1 ADD c INT DEFAULT 5")
        await until_row(it, 1_000_001)
    write_beside(it, pair.primary, 2, "INSERT INTO t1 VALUES (501, 1, 1)")
    new = it.fail_over()
    write_beside(it, new, 3, "INSERT INTO t1 VALUES (502, 1, 1)")
    async with running(it.task, it.spark) as generation:
        await until_row(it, 1_000_003)
        assert not it.target.execute(f"SELECT 1 FROM {db}.t WHERE id IN (501, 502)")
    it.rebuild()
    write_beside(it, new, 4, "ALTER TABLE t2 ADD c INT DEFAULT 5")
    former = it.fail_over()
    former.execute(f"INSERT INTO {db}.t2 VALUES (503, 1, 1)")
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": former})
        await until_row(it, 503)
        shards = [(former, f"{db}.t1"), (former, f"{db}.t2")]
        with anyio.fail_after(PATIENCE):
            while rows_of(it.target, f"{db}.t") != union_of(shards):
                await anyio.sleep(LOOK_SECONDS)
        assert rows_of(it.target, f"{db}.bag") == rows_of(former, f"{db}.bag")


@pytest.mark.slow
@pytest.mark.parametrize("kind", PAIRS)
async def test_a_ghost_takes_its_tables_place_on_the_other_server(
    kind: type[BinlogServer], failing_over: FailingOver
) -> None:
    it = failing_over(kind)
    pair, db = it.pair, it.database
    async with running(it.task, it.spark) as generation:
        it.write(pair.primary)
        await caught_up(generation, {"a": pair.primary})
        pair.primary.execute(
            "CREATE TABLE _t1_gho LIKE t1",
            "ALTER TABLE _t1_gho ADD c INT DEFAULT 6",
            "INSERT INTO _t1_gho (id, n) SELECT id, n FROM t1",
            database=db,
        )
        await caught_up(generation, {"a": pair.primary})
    new = it.fail_over()
    new.execute(
        "RENAME TABLE t1 TO _t1_del, _t1_gho TO t1",
        "INSERT INTO t1 VALUES (900, 1, 2)",
        database=db,
    )
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": new})
        assert rows_of(new, f"{db}.t1") == rows_of(it.target, f"{db}.t")


def write_beside(it: Estate, server: DatabaseServer, number: int, statement: str) -> None:
    """A statement between rows of another shard and of the table without a key."""
    server.execute(
        f"INSERT INTO bag VALUES ({number}, 1), ({number}, 1)",
        f"INSERT INTO t2 (id, n) VALUES ({1_100_000 + number}, 1)",
        statement,
        f"UPDATE bag SET b = b + 1 WHERE a = {number} LIMIT 1",
        f"INSERT INTO bag VALUES ({number}, 7)",
        f"INSERT INTO t2 (id, n) VALUES ({1_000_000 + number}, 1)",
        database=it.database,
    )


async def until_row(it: Estate, number: int) -> None:
    """Wait until a row is on the target."""
    sql = f"SELECT 1 FROM {it.database}.t WHERE id = {number}"
    with anyio.fail_after(PATIENCE):
        while not it.target.execute(sql):
            await anyio.sleep(LOOK_SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PAIRS)
async def test_what_was_prepared_on_one_server_is_committed_on_the_other(
    kind: type[BinlogServer], failing_over: FailingOver
) -> None:
    it = failing_over(kind)
    pair, db = it.pair, it.database
    async with running(it.task, it.spark) as generation:
        it.write(pair.primary)
        pair.primary.execute(
            "XA START 'x'",
            "INSERT INTO t1 VALUES (800, 8)",
            "XA END 'x'",
            "XA PREPARE 'x'",
            database=db,
        )
        it.write(pair.primary)
        await caught_up(generation, {"a": pair.primary})
    new = it.fail_over()
    it.write(new)
    new.execute("XA COMMIT 'x'")
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": new})
        it.assert_equal(new)
        assert it.target.execute(f"SELECT n FROM {db}.t WHERE id = 800") == ((8,),)
