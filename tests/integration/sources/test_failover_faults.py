"""Servers that take a source over without what it takes: nothing is read, nothing changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anyio
import pytest

from replicator.mysql.connection.asyncio_connection import DatabaseUnavailableError
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import BinlogServer, DatabaseServer
from tests.support.servers.mysql import MySQLServer
from tests.support.tasks.failover import KEYED, KEYLESS, FailingOver
from tests.support.tasks.overriding import begin_again
from tests.support.tasks.running import (
    PATIENCE,
    caught_up,
    copied,
    generation_of,
    running,
    settles,
)
from tests.support.tasks.tables import rows_of, union_of

StartServer = Callable[..., DatabaseServer]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [MySQLServer, MariaDBServer])
async def test_a_replica_that_is_behind_is_waited_for_while_other_sources_go_on(
    kind: type[BinlogServer], failing_over: FailingOver, mariadb_source: DatabaseServer
) -> None:
    it = failing_over(kind)
    pair, db = it.pair, it.database
    it.add_source("b", mariadb_source, f"CREATE TABLE t2 {KEYED}")
    async with (
        it.taken_over_by_one_behind() as locking,
        running(it.task, it.spark) as generation,
    ):
        assert generation.running is not None
        assert "lacks" in generation.running.stopped["a"].away
        mariadb_source.execute(f"INSERT INTO {db}.t2 VALUES (-1, 1)")
        await caught_up(generation, {"b": mariadb_source})
        locking.execute("UNLOCK TABLES")
        with anyio.fail_after(PATIENCE):
            await generation.away.one_is_back()
    pair.promote()
    it.write(pair.replica)
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": pair.replica})
        shards = [(pair.replica, f"{db}.t1"), (mariadb_source, f"{db}.t2")]
        assert rows_of(it.target, f"{db}.t") == union_of(shards)
        assert rows_of(it.target, f"{db}.bag") == rows_of(pair.replica, f"{db}.bag")


async def test_a_source_that_is_behind_and_the_only_one_is_waited_for(
    failing_over: FailingOver,
) -> None:
    it = failing_over(MariaDBServer)
    async with it.taken_over_by_one_behind():
        with anyio.fail_after(PATIENCE), pytest.raises(DatabaseUnavailableError, match="lacks"):
            await generation_of(it.task, it.spark).run(anyio.Event(), anyio.Event())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "options", "event"),
    [
        (MariaDBServer, {"skip_log_slave_updates": None}, "source.lacks-transactions"),
        (MySQLServer, {"skip_log_replica_updates": None}, "source.purged"),
    ],
)
async def test_a_replica_that_does_not_log_what_it_applies_is_refused(
    kind: type[BinlogServer],
    options: Mapping[str, str | None],
    event: str,
    failing_over: FailingOver,
) -> None:
    it = failing_over(kind, replica_options=options)
    pair = it.pair
    async with running(it.task, it.spark) as generation:
        it.write(pair.primary)
        await caught_up(generation, {"a": pair.primary})
    it.write(pair.primary)
    pair.until_applied()
    pair.promote()
    it.line.switch(pair.replica.port)
    it.write(pair.replica)
    fault = await it.until_fault()
    assert fault.event == event
    assert "updates" in str(fault)


@pytest.mark.remedy("source.failover-position-unknown", "resume")
async def test_without_gtids_at_the_saved_position_no_place_is_looked_for(
    failing_over: FailingOver,
) -> None:
    """They are learned on the former server, where that is back."""
    it = failing_over(MySQLServer)
    pair = it.pair
    await it.follow_by_position()
    pair.until_replicated()
    it.line.switch(pair.replica.port)
    fault = await it.until_fault()
    assert fault.event == "source.failover-position-unknown"
    assert "GTIDs" in fault.message
    it.line.switch(pair.primary.port)
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": pair.primary})
    new = it.fail_over()
    it.write(new)
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": new})
        it.assert_equal(new)


@pytest.mark.remedy("source.failover-position-unknown", "copy anew")
async def test_without_the_former_server_all_is_copied_anew(failing_over: FailingOver) -> None:
    it = failing_over(MySQLServer)
    await it.follow_by_position()
    new = it.fail_over()
    assert (await it.until_fault()).event == "source.failover-position-unknown"
    await it.copy_anew(new)


async def test_a_replica_that_was_made_from_a_backup_takes_over(failing_over: FailingOver) -> None:
    """No file of its binlog tells of what was in the backup."""
    it = failing_over(MySQLServer)
    pair = it.pair
    it.write(pair.primary)
    pair.until_replicated()
    replica = pair.promote()
    backed_up = pair.executed(replica)
    replica.execute("RESET BINARY LOGS AND GTIDS", f"SET GLOBAL gtid_purged = '{backed_up}'")
    pair.follow(replica, pair.primary)
    async with running(it.task, it.spark) as generation:
        it.write(pair.primary)
        await caught_up(generation, {"a": pair.primary})
    new = it.fail_over()
    it.write(new)
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": new})
        it.assert_equal(new)


@pytest.mark.slow
@pytest.mark.remedy("source.other-order", "resume", "copy anew")
@pytest.mark.parametrize("anew", [False, True], ids=["former server", "copied anew"])
async def test_a_replica_with_another_order_is_left_or_copied_anew(
    failing_over: FailingOver, *, anew: bool
) -> None:
    it = failing_over(MySQLServer)
    pair, db = it.pair, it.database
    pair.until_replicated()
    pair.replica.execute("STOP REPLICA")
    uuid = pair.primary.execute("SELECT @@server_uuid")[0][0]
    async with running(it.task, it.spark) as generation:
        pair.primary.execute(f"INSERT INTO {db}.t1 VALUES (1, 1)")
        await caught_up(generation, {"a": pair.primary})
    first = int(pair.executed(pair.primary).rpartition("-")[2])
    pair.primary.execute(f"INSERT INTO {db}.t1 VALUES (2, 2)")
    # The replica applies the second one first.
    for key in (2, 1):
        pair.replica.execute(
            f"SET gtid_next = '{uuid}:{first + key - 1}'",
            f"INSERT INTO {db}.t1 VALUES ({key}, {key})",
            "SET gtid_next = AUTOMATIC",
        )
    pair.promote()
    it.line.switch(pair.replica.port)
    assert (await it.until_fault()).event == "source.other-order"
    if anew:
        it.number = 2
        await it.copy_anew(pair.replica)
        return
    it.line.switch(pair.primary.port)
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": pair.primary})
        it.assert_equal(pair.primary)


@pytest.mark.remedy("source.changed", "recopy")
@pytest.mark.remedy("source.other-order", "recopy")
@pytest.mark.remedy("source.failover-position-unknown", "recopy")
@pytest.mark.parametrize(
    "event", ["source.changed", "source.other-order", "source.failover-position-unknown"]
)
async def test_a_server_whose_binlog_does_not_go_on_is_begun_at_its_end(
    failing_over: FailingOver, start_server: StartServer, event: str
) -> None:
    """It lacks rows that the task has read from the former server, and has its own."""
    it = failing_over(MySQLServer)
    pair, db = it.pair, it.database
    it.values["task-mode"] = "all"
    del it.values["mysql-instances"][0]["meta"]
    it.values["sources"][0]["enable-gtid"] = event != "source.changed"
    it.write(pair.primary)
    pair.until_replicated()
    pair.replica.execute("STOP REPLICA")
    async with running(it.task, it.spark) as generation:
        await copied(generation)
        pair.primary.execute(f"INSERT INTO {db}.t1 VALUES (1000, 1)")
        await caught_up(generation, {"a": pair.primary})
    new = pair.replica
    if event == "source.other-order":
        uuid, _, last = pair.executed(pair.primary).rpartition(":")
        first = int(last.rpartition("-")[2])
        pair.primary.execute(f"INSERT INTO {db}.t1 VALUES (1001, 2)")
        for number in (first + 1, first):
            new.execute(
                f"SET gtid_next = '{uuid}:{number}'",
                f"INSERT INTO {db}.t1 VALUES ({number}, 7)",
                "SET gtid_next = AUTOMATIC",
            )
    elif event == "source.failover-position-unknown":
        new = start_server(MariaDBServer)
        new.execute(f"CREATE DATABASE {db}")
        new.execute(f"CREATE TABLE t1 {KEYED}", f"CREATE TABLE bag {KEYLESS}", database=db)
        new.execute("INSERT INTO t1 VALUES (1, 5), (77, 7)", database=db)
    if new is pair.replica:
        pair.promote()
    it.line.switch(new.port)
    fault = await it.until_fault()
    assert fault.event == event
    await begin_again(it.task, it, fault)
    async with running(it.task, it.spark) as generation:
        await copied(generation)
        it.write(new)
        queue = f"SELECT 1 FROM {db}_meta.{db}_reconciliation"
        await settles(lambda: it.target.execute(queue), ())
        it.write(new)
        await caught_up(generation, {"a": new})
        # The task starts again after a recopy, and applies again what it had not saved.
        await settles(lambda: it.unequal(new), [])
