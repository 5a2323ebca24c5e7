"""While tables are copied, their address leads to another server: a replica that is behind."""

from __future__ import annotations

import anyio
import pytest

from actors.errors.faults import FatalError
from actors.setup.task_setup import address_of
from actors.task.outcome import weightiest
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import BinlogServer
from tests.support.servers.mysql import MySQLServer
from tests.support.tasks.failover import Estate, FailingOver
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, caught_up, running


def copying(it: Estate) -> None:
    """Let the task copy what is there, slowly enough to be met at it."""
    it.values["task-mode"] = "all"
    it.values["mydumpers"] = {"small": {"rows": 10, "threads": 1}}
    it.values["copy"] = {"rows-per-second": 100}
    del it.values["mysql-instances"][0]["meta"]
    it.values["mysql-instances"][0]["mydumper-config-name"] = "small"


async def until_copied(it: Estate, rows: int) -> None:
    with anyio.fail_after(PATIENCE):
        while it.target.execute(f"SELECT COUNT(*) FROM {it.database}.t")[0][0] < rows:
            await anyio.sleep(LOOK_SECONDS)


@pytest.mark.remedy("source.failover-in-copy", "resume")
@pytest.mark.parametrize(("kind", "by_gtid"), [(MySQLServer, True), (MariaDBServer, False)])
async def test_no_row_is_read_of_another_server(
    kind: type[BinlogServer], by_gtid: bool, failing_over: FailingOver
) -> None:
    """It has not what was changed before the copy began, which no binlog event will tell again."""
    it = failing_over(kind)
    pair, db = it.pair, it.database
    copying(it)
    it.number = 1000
    it.values["sources"][0]["enable-gtid"] = by_gtid
    rows = ", ".join(f"({n}, 0)" for n in range(400))
    pair.primary.execute(f"INSERT INTO {db}.t1 VALUES {rows}")
    pair.until_replicated()
    pair.replica.execute("STOP REPLICA" if pair.mysql else "STOP SLAVE")
    pair.primary.execute(f"UPDATE {db}.t1 SET n = 1")

    async def copy() -> None:
        async with running(it.task, it.spark):
            await until_copied(it, 40)
            it.line.switch(pair.replica.port)
            await anyio.sleep_forever()

    with anyio.fail_after(PATIENCE), pytest.raises(ExceptionGroup) as caught:
        await copy()
    # Who plans and who copies may both meet it.
    fault = weightiest(caught.value, address_of(it.task.target_database))
    assert isinstance(fault, FatalError)
    assert fault.event == "source.failover-in-copy"
    assert fault.scope is not None
    assert fault.scope.sources == {"a"}
    for server in (pair.primary, pair.replica):
        assert f"server_id {server.execute('SELECT @@server_id')[0][0]}" in fault.message
    assert not it.target.execute(f"SELECT * FROM {db}.t WHERE n = 0")
    it.line.switch(pair.primary.port)
    async with running(it.task, it.spark) as generation:
        with anyio.fail_after(PATIENCE):
            while generation.running is None:
                await anyio.sleep(LOOK_SECONDS)
        it.write(pair.primary)
        await caught_up(generation, {"a": pair.primary})
        it.assert_equal(pair.primary)
