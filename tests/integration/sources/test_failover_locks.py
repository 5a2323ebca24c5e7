"""A source fails over while something stands behind its saved position: locks, ghosts, buckets."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from actors.errors.faults import DdlEvent
from actors.setup.task_setup import address_of
from actors.sharding.shard_mode import OpenLock
from actors.task.generation import Generation
from actors.task.operator.operator_commands import give_override
from replicator.downstream.meta.lease import Lease, this_process
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import BinlogServer, DatabaseServer
from tests.support.servers.mysql import MySQLServer
from tests.support.tasks.failover import KEYED, Estate, FailingOver
from tests.support.tasks.running import (
    LOOK_SECONDS,
    PATIENCE,
    caught_up,
    fault_of,
    running,
)
from tests.support.tasks.tables import rows_of, union_of

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
async def test_an_open_statement_waits_on_the_other_server(
    kind: type[BinlogServer], failing_over: FailingOver
) -> None:
    """The optimistic mode: one statement is open, another was released, and further rows of the
    other shard and of a table without a key are applied behind both."""
    it = failing_over(kind)
    pair, db = it.pair, it.database
    for table in ("t2", "t3"):
        pair.primary.execute(f"CREATE TABLE {db}.{table} (id INT PRIMARY KEY, n INT)")
    it.values["mysql-instances"][0]["meta"] = {"binlog-gtid": pair.executed(pair.primary)}
    it.values["shard-mode"] = "optimistic"
    async with running(it.task, it.spark) as generation:
        it.write(pair.primary)
        await caught_up(generation, {"a": pair.primary})
        write_beside(it, pair.primary, 1, "ALTER TABLE t1 CHANGE n m INT")
        write_beside(it, pair.primary, 2, "ALTER TABLE t3 CHANGE n k INT")
        pair.primary.execute("INSERT INTO t3 VALUES (-1, -1)", database=db)
        await until_row(it, 1_000_002)
        await until_locks(generation, 2)
        assert generation.running is not None
        await generation.running.coordination.unlock(
            f"{db}.t", owner="a", skip=False, shard=f"{db}.t3"
        )
        await until_row(it, -1)
        write_beside(it, pair.primary, 3, "INSERT INTO t1 VALUES (501, 1)")
        await until_row(it, 1_000_003)
    new = it.fail_over()
    write_beside(it, new, 4, "INSERT INTO t1 VALUES (502, 1)")
    async with running(it.task, it.spark) as generation:
        await until_row(it, 1_000_004)
        await until_locks(generation, 1)
        assert not it.target.execute(f"SELECT 1 FROM {db}.t WHERE id IN (501, 502)")
    it.rebuild()
    new.execute(
        "ALTER TABLE t3 CHANGE k m INT",
        "ALTER TABLE t2 CHANGE n m INT",
        "INSERT INTO t2 VALUES (503, 1)",
        database=db,
    )
    former = it.fail_over()
    async with running(it.task, it.spark) as generation:
        assert generation.running is not None
        with anyio.fail_after(PATIENCE):
            shards = [(former, f"{db}.{table}") for table in ("t1", "t2", "t3")]
            while rows_of(it.target, f"{db}.t", "id") != union_of(shards, "id"):
                for lock in unresolved(generation):
                    shard = str(lock.view.item.member)
                    await generation.running.coordination.unlock(
                        f"{db}.t", owner="a", skip=False, shard=shard
                    )
                await anyio.sleep(LOOK_SECONDS)
        await caught_up(generation, {"a": former})
        assert rows_of(it.target, f"{db}.bag") == rows_of(former, f"{db}.bag")


def unresolved(generation: Generation) -> Sequence[OpenLock]:
    """The open locks that nothing resolves by now."""
    assert generation.running is not None
    return [x for x in generation.running.coordination.open_locks() if not x.view.resolving]


async def until_locks(generation: Generation, number: int) -> None:
    """Wait until so many locks are open."""
    assert generation.running is not None
    with anyio.fail_after(PATIENCE):
        while len(generation.running.coordination.open_locks()) != number:
            await anyio.sleep(LOOK_SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "owner"), [(MySQLServer, "a"), (MariaDBServer, "b")])
async def test_a_lock_that_is_decided_is_executed_after_its_source_has_failed_over(
    kind: type[BinlogServer],
    owner: str,
    failing_over: FailingOver,
    mariadb_source: DatabaseServer,
) -> None:
    """Its cutover lies at a row, whatever source's statement it is; the target refuses it at
    first."""
    it = failing_over(kind)
    pair, db, other = it.pair, it.database, mariadb_source
    it.add_source("b", other, f"CREATE TABLE t2 {KEYED}")
    it.values["shard-mode"] = "pessimistic"
    shards = {"a": (pair.primary, "t1"), "b": (other, "t2")}
    later = "b" if owner == "a" else "a"

    def change(source: str, number: int) -> None:
        server, table = shards[source]
        server.execute(
            f"ALTER TABLE {table} ADD c INT DEFAULT 4",
            f"INSERT INTO {table} VALUES ({number}, 1, 1)",
            database=db,
        )

    async def decide() -> None:
        async with running(it.task, it.spark) as generation:
            change(owner, -1)
            server, table = shards[later]
            server.execute(f"INSERT INTO {db}.{table} VALUES (-2, 1)")
            await until_row(it, -2)
            assert generation.running is not None
            with anyio.fail_after(PATIENCE):
                while not generation.running.coordination.open_locks():
                    await anyio.sleep(LOOK_SECONDS)
            it.target.execute(f"ALTER TABLE {db}.t ADD c VARCHAR(5)")
            change(later, -3)
            await anyio.sleep_forever()

    with anyio.fail_after(PATIENCE):
        assert (await fault_of(decide())).event == "ddl.refused"
    for number in (1, 2):
        new = it.fail_over()
        new.execute(f"INSERT INTO t1 VALUES ({number}, 1, 1)", database=db)
        assert (await it.until_fault()).event == "ddl.refused"
        it.rebuild()
    it.target.execute(f"ALTER TABLE {db}.t DROP c")
    async with running(it.task, it.spark):
        with anyio.fail_after(PATIENCE):
            shards["a"] = (new, "t1")
            tables = [(server, f"{db}.{table}") for server, table in shards.values()]
            while rows_of(it.target, f"{db}.t") != union_of(tables):
                await anyio.sleep(LOOK_SECONDS)


@pytest.mark.slow
async def test_what_the_operator_has_answered_holds_on_the_other_server(
    failing_over: FailingOver,
) -> None:
    """For a statement of an open lock, which is read again there."""
    it = failing_over(MariaDBServer)
    pair, db = it.pair, it.database
    pair.primary.execute(f"CREATE TABLE {db}.t2 {KEYED}")
    it.values["mysql-instances"][0]["meta"] = {"binlog-gtid": pair.executed(pair.primary)}
    it.values["shard-mode"] = "pessimistic"
    cascade = "FOREIGN KEY (n) REFERENCES t1 (id) ON DELETE CASCADE"

    async def ask() -> None:
        async with running(it.task, it.spark):
            pair.primary.execute(f"ALTER TABLE t1 ADD INDEX i (n), ADD {cascade}", database=db)
            await anyio.sleep_forever()

    with anyio.fail_after(PATIENCE):
        fault = await fault_of(ask())
    assert isinstance(fault.about, DdlEvent)
    lease = Lease(it.task.meta_schema, it.task.name, this_process())
    target = Connection(address_of(it.task.target_database))
    await lease.begin(target)
    target.close()
    arguments = {"action": "replace", "statements": [f"ALTER TABLE {db}.t1 ADD INDEX i (n)"]}
    reply = await give_override(it.task, lease, [fault.about], lambda: None, arguments)
    assert reply.ok, reply.error
    for number in (-1, -2):
        new = it.fail_over()
        new.execute(f"INSERT INTO t2 VALUES ({number}, 1)", database=db)
        async with running(it.task, it.spark):
            await until_row(it, number)
        it.rebuild()
    assert it.target.execute(f"SELECT COUNT(*) FROM {db}_meta.{db}_ddl_override") == ((1,),)


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
