"""XA transactions that are prepared when a source's replica takes over its address."""

from __future__ import annotations

import pytest

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import BinlogServer
from tests.support.servers.mysql import MySQLServer
from tests.support.tasks.failover import FailingOver
from tests.support.tasks.running import caught_up, running


@pytest.mark.slow
@pytest.mark.parametrize("kind", [MySQLServer, MariaDBServer])
async def test_prepared_transactions_are_ended_by_the_server_that_takes_over(
    kind: type[BinlogServer], failing_over: FailingOver
) -> None:
    it = failing_over(kind)
    pair, db = it.pair, it.database

    def prepare(name: str, *statements: str) -> None:
        with pair.primary.connect(database=db) as session, session.cursor() as cursor:
            end = (f"XA END '{name}'", f"XA PREPARE '{name}'")
            for statement in (f"XA START '{name}'", *statements, *end):
                cursor.execute(statement)

    it.write(pair.primary)
    prepare("early", "UPDATE t1 SET n = n + 100 WHERE id = 1", "INSERT INTO bag VALUES (50, 0)")
    async with running(it.task, it.spark) as generation:
        prepare("undone", "DELETE FROM t1 WHERE id = 2", "INSERT INTO bag VALUES (51, 0)")
        prepare("again", "INSERT INTO bag VALUES (52, 0), (52, 0)")
        await caught_up(generation, {"a": pair.primary})
        pair.primary.execute("XA COMMIT 'again'")
        await caught_up(generation, {"a": pair.primary})
    prepare("again", "INSERT INTO bag VALUES (53, 0), (53, 0)", "DELETE FROM t1 WHERE id = 3")
    prepare("late", "INSERT INTO bag VALUES (54, 0)")
    it.write(pair.primary, times=1)
    pair.primary.execute("XA COMMIT 'late'")
    new = it.fail_over()
    new.execute("XA COMMIT 'early'", "FLUSH BINARY LOGS")
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": new})
        new.execute("XA ROLLBACK 'undone'")
        await caught_up(generation, {"a": new})
    new.execute("XA COMMIT 'again'", f"INSERT INTO {db}.bag VALUES (55, 0)")
    async with running(it.task, it.spark) as generation:
        await caught_up(generation, {"a": new})
        it.assert_equal(new)
