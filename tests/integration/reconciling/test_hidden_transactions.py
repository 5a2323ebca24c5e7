"""Transactions that a source has logged, and does not show yet: it waits for its replica."""

from __future__ import annotations

from functools import partial
from threading import Thread

import anyio

from replicator.sandbox.mariadb import MariaDBServer
from tests.conftest import StartServer
from tests.integration.reconciling.test_numbered_rows import MergingFrom
from tests.integration.reconciling.test_reconcile import asked, until_reconciled
from tests.support.tasks.running import settles

SECONDS = 12.0
"""Time in which a pass would end that believes what it reads."""


async def test_rows_of_a_transaction_that_is_not_visible_stay(
    merging_from: MergingFrom, start_server: StartServer
) -> None:
    """The target has them. For the reconciler, it must not look as if somebody had changed it."""
    server = start_server(MariaDBServer)
    merging = merging_from(server)
    merging.mode = "all"
    tables = {"x": "(id INT PRIMARY KEY, v INT)", "bag": "(id INT, v INT)"}
    for table, columns in tables.items():
        merging.create(table, columns)
        merging.do(f"INSERT INTO {table}_1 VALUES (1, 1), (2, 2), (3, 3)")
    changes = [
        change
        for table in tables
        for change in (
            f"INSERT INTO {table}_1 VALUES (4, 4)",
            f"DELETE FROM {table}_1 WHERE id = 1",
            f"UPDATE {table}_1 SET v = 5 WHERE id = 2",
        )
    ]
    async with merging.running() as generation:
        await merging.copied(generation)
        semi_sync = "GLOBAL rpl_semi_sync_master"
        server.execute(
            f"SET {semi_sync}_timeout = 60000, {semi_sync}_wait_point = 'AFTER_SYNC'",
            f"SET {semi_sync}_enabled = ON",
        )
        writer = Thread(target=partial(merging.do, "BEGIN", *changes, "COMMIT"))
        writer.start()
        rows = "SELECT * FROM bag WHERE id = 4"
        await settles(lambda: merging.on(merging.target, rows), ((4, 4),))
        assert not merging.on(server, "SELECT * FROM bag_1 WHERE id = 4")
        await asked(merging, generation)
        with anyio.move_on_after(SECONDS):
            await until_reconciled(merging, generation)
        server.execute(f"SET {semi_sync}_enabled = OFF")
        await anyio.to_thread.run_sync(writer.join)
        await merging.caught_up(generation)
        await until_reconciled(merging, generation)
        assert not merging.differences()
