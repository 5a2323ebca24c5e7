"""A source's replica takes over its address: the task goes on there, exactly once."""

from __future__ import annotations

import anyio
import pytest

from actors.task.operator.structure_commands import list_structures
from replicator.downstream.meta.lease import Lease, this_process
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import BinlogServer
from tests.support.servers.mysql import MySQLServer
from tests.support.tasks.checking import purge
from tests.support.tasks.failover import FailingOver
from tests.support.tasks.overriding import begin_again
from tests.support.tasks.running import (
    PATIENCE,
    caught_up,
    copied,
    fault_of,
    running,
    settles,
)
from tests.support.tasks.task_files import start_of

PAIRS = [MySQLServer, MariaDBServer]
KEYED = "(id INT PRIMARY KEY, n INT)"
KEYLESS = "(a INT, b INT)"


@pytest.mark.parametrize("kind", PAIRS)
async def test_a_task_goes_on_with_the_replica_and_back_again(
    kind: type[BinlogServer], failing_over: FailingOver
) -> None:
    """Also with a DDL before and behind; back on the first server, which is a replica by then."""
    it = failing_over(kind)
    pair, db = it.pair, it.database
    async with running(it.task, it.spark) as generation:
        it.write(pair.primary)
        pair.primary.execute(f"ALTER TABLE {db}.t1 ADD c INT DEFAULT 3")
        it.number += 100
        pair.primary.execute(f"INSERT INTO {db}.t1 VALUES (77, 7, 7)")
        await caught_up(generation, {"a": pair.primary})
    pair.primary.execute(f"INSERT INTO {db}.t1 VALUES (78, 7, 7)")
    new = it.fail_over()
    new.execute(f"ALTER TABLE {db}.t1 DROP c")
    it.write(new)
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": new})
        it.assert_equal(new)
        assert generation.running is not None
        lease = Lease(it.task.meta_schema, it.task.name, this_process())
        told = await list_structures(it.task, lease, generation.running.registry, None, {})
        places = [entry["since"] for entry in told.body["structures"]]
        assert "" in places, "a place of the former server's binlog is none any more"
        assert "-" not in "".join(places)
        new.execute(f"ALTER TABLE {db}.bag ADD c INT DEFAULT 4")
        await caught_up(generation, {"a": new})
        it.assert_equal(new)
    it.rebuild()
    new.execute(f"INSERT INTO {db}.t1 VALUES (79, 7)")
    pair.until_replicated()
    former = it.fail_over()
    former.execute(f"INSERT INTO {db}.bag VALUES (79, 7, 7)")
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": former})
        it.assert_equal(former)


@pytest.mark.parametrize("kind", PAIRS)
async def test_another_server_is_noticed_while_the_task_runs(
    kind: type[BinlogServer], failing_over: FailingOver
) -> None:
    it = failing_over(kind)
    pair = it.pair

    async def run() -> None:
        async with running(it.task, it.spark) as generation:
            it.write(pair.primary)
            await caught_up(generation, {"a": pair.primary})
            it.write(pair.primary)
            it.fail_over()
            await anyio.sleep_forever()

    with anyio.fail_after(PATIENCE):
        fault = await fault_of(run())
    assert fault.event == "source.changed"
    it.write(pair.replica)
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": pair.replica})
        it.assert_equal(pair.replica)
    it.values["sources"][0]["enable-gtid"] = False
    pair.replica.kill()
    pair.primary.start()
    it.line.switch(pair.primary.port)
    fault = await it.until_fault()
    assert fault.event == "source.changed"
    assert any("enable-gtid: true" in way for way in fault.remedies)


@pytest.mark.remedy("source.changed", "resume", "reload", "copy anew")
@pytest.mark.parametrize("kind", PAIRS)
async def test_a_task_that_follows_by_position_has_three_ways(
    kind: type[BinlogServer], failing_over: FailingOver
) -> None:
    it = failing_over(kind)
    pair, source = it.pair, it.values["sources"][0]
    it.values["mysql-instances"][0]["meta"] = start_of(pair.primary)
    source["enable-gtid"] = False
    async with running(it.task, it.spark) as generation:
        it.write(pair.primary)
        await caught_up(generation, {"a": pair.primary})
    pair.until_replicated()
    it.line.switch(pair.replica.port)
    assert (await it.until_fault()).event == "source.changed"
    it.line.switch(pair.primary.port)
    it.write(pair.primary)
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": pair.primary})
        it.assert_equal(pair.primary)
    new = it.fail_over(kill=False)
    fault = await it.until_fault()
    assert fault.event == "source.changed"
    source["enable-gtid"] = True
    if kind is MySQLServer:
        assert any("started with this setting at the former" in way for way in fault.remedies)
        it.line.switch(pair.primary.port)
        async with running(it.task, it.spark) as generation:
            await caught_up(generation, {"a": pair.primary})
        it.line.switch(new.port)
    it.write(new)
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": new})
        it.assert_equal(new)
    it.rebuild()
    pair.until_replicated()
    former = it.fail_over()
    source["enable-gtid"] = False
    assert (await it.until_fault()).event == "source.changed"
    await it.copy_anew(former)


@pytest.mark.remedy("source.lacks-transactions", "resume", "copy anew")
@pytest.mark.parametrize("kind", PAIRS)
async def test_transactions_that_the_new_server_lacks_are_listed(
    kind: type[BinlogServer], failing_over: FailingOver
) -> None:
    it = failing_over(kind)
    pair = it.pair
    it.write(pair.primary)
    pair.until_replicated()
    pair.promote()
    async with running(it.task, it.spark) as generation:
        it.write(pair.primary, times=1)
        await caught_up(generation, {"a": pair.primary})
    lost = pair.executed(pair.primary)
    it.line.switch(pair.replica.port)
    it.write(pair.replica)
    fault = await it.until_fault()
    assert fault.event == "source.lacks-transactions"
    assert lost.split("-")[-1] in fault.message
    # The former one again: nothing was changed.
    it.line.switch(pair.primary.port)
    async with running(it.task, it.spark) as generation:
        it.write(pair.primary, times=1)
        await caught_up(generation, {"a": pair.primary})
        it.assert_equal(pair.primary)
    it.line.switch(pair.replica.port)
    assert (await it.until_fault()).event == "source.lacks-transactions"
    await it.copy_anew(pair.replica)


@pytest.mark.remedy("source.lacks-transactions", "recopy")
@pytest.mark.parametrize("kind", PAIRS)
async def test_rows_that_a_new_server_lacks_are_taken_back(
    kind: type[BinlogServer], failing_over: FailingOver
) -> None:
    it = failing_over(kind)
    pair = it.pair
    it.values["task-mode"] = "all"
    del it.values["mysql-instances"][0]["meta"]
    it.write(pair.primary)
    pair.until_replicated()
    pair.promote()
    async with running(it.task, it.spark) as generation:
        await copied(generation)
        it.write(pair.primary, times=1)
        await caught_up(generation, {"a": pair.primary})
    it.line.switch(pair.replica.port)
    it.write(pair.replica)
    fault = await it.until_fault()
    assert fault.event == "source.lacks-transactions"
    # A row that this source has deleted may have come from another one since then.
    await begin_again(it.task, it, fault, meanwhile=[f"{it.database}.t"])
    async with running(it.task, it.spark) as generation:
        await copied(generation)
        it.write(pair.replica)
        queue = f"SELECT 1 FROM {it.database}_meta.{it.database}_reconciliation"
        await settles(lambda: it.target.execute(queue), ())
        await caught_up(generation, {"a": pair.replica})
        it.assert_equal(pair.replica)
    # Once more, with what is saved from before.
    async with running(it.task, it.spark) as generation:
        await copied(generation)
        it.write(pair.replica)
        await caught_up(generation, {"a": pair.replica})
        it.assert_equal(pair.replica)


@pytest.mark.remedy("source.purged", "resume")
async def test_a_replica_has_the_binlog_that_the_source_has_purged(
    failing_over: FailingOver,
) -> None:
    it = failing_over(MariaDBServer)
    pair = it.pair
    async with running(it.task, it.spark) as generation:
        it.write(pair.primary)
        await caught_up(generation, {"a": pair.primary})
    it.write(pair.primary)
    pair.primary.execute("FLUSH BINARY LOGS")
    pair.until_replicated()
    pair.promote()
    purge(pair.primary)
    assert (await it.until_fault()).event == "source.purged"
    it.line.switch(pair.replica.port)
    it.write(pair.replica)
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": pair.replica})
        it.assert_equal(pair.replica)


@pytest.mark.slow
@pytest.mark.remedy("source.failover-in-copy", "copy anew")
async def test_a_copy_that_is_done_is_gone_on_from(failing_over: FailingOver) -> None:
    """Also of tables without a key, and of one that is under way: that is refused."""
    it = failing_over(MySQLServer)
    pair, db = it.pair, it.database
    it.values["task-mode"] = "all"
    del it.values["mysql-instances"][0]["meta"]
    it.write(pair.primary)
    async with running(it.task, it.spark) as generation:
        with anyio.fail_after(PATIENCE):
            while generation.running is None:
                await anyio.sleep(0.02)
        it.write(pair.primary)
        await caught_up(generation, {"a": pair.primary})
    new = it.fail_over()
    it.write(new)
    async with running(it.task, it.spark) as generation:
        with anyio.fail_after(PATIENCE):
            while generation.running is None:
                await anyio.sleep(0.02)
        await caught_up(generation, {"a": new})
        it.assert_equal(new)
    it.rebuild()
    former = it.fail_over()
    it.target.execute(f"UPDATE {db}_meta.{db}_copy SET done = 0")
    assert (await it.until_fault()).event == "source.failover-in-copy"
    await it.copy_anew(former)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PAIRS)
async def test_a_task_that_began_at_a_file_and_position_fails_over(
    kind: type[BinlogServer], failing_over: FailingOver
) -> None:
    """And a task that was not to be followed by GTID when it began."""
    it = failing_over(kind)
    pair = it.pair
    await it.follow_by_position()
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": pair.primary})
    it.write(pair.primary)
    new = it.fail_over()
    it.write(new)
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": new})
        it.assert_equal(new)
