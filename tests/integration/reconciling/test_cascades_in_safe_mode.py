"""Children of rows that are deleted, or whose key changes, while events meet newer rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import anyio
import anyio.to_thread
import pytest
from structlog.testing import capture_logs

from actors.task.generation import Generation
from replicator.sandbox.server import DatabaseServer
from tests.integration.reconciling.test_reconcile import until_reconciled
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS, fault_of, settles

MergingFrom = Callable[..., Merging]
PARENT = "(id INT PRIMARY KEY, v INT)"
CHILD = (
    "(id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES {} (id)"
    " ON DELETE CASCADE ON UPDATE CASCADE)"
)

KEYED_CHILD = (
    "(p INT, n INT, v INT, PRIMARY KEY (p, n), FOREIGN KEY (p) REFERENCES {} (id)"
    " ON DELETE CASCADE ON UPDATE CASCADE)"
)


def create(merging: Merging, table: str, columns: str, parent: str) -> None:
    merging.create(table, columns.format(parent), shards=0)
    merging.do(f"CREATE TABLE {table}_1 {columns.format(f'{parent}_1')}")
    merging.shards(table, 1)


def copies_slowly(merging: Merging) -> None:
    """Copy a row each twentieth of a second, one chunk of two rows after the other."""
    merging.mode = "all"
    merging.more |= {
        "mydumpers": {"small": {"rows": 2, "threads": 1}},
        "copy": {"rows-per-second": 20},
    }
    merging.instance = {"mydumper-config-name": "small"}


async def until_there(merging: Merging, generation: Generation, table: str, rows: int) -> None:
    """Wait until the copy has written so many rows of a table."""
    query = f"SELECT COUNT(*) FROM {table}"
    while merging.on(merging.target, query) < ((rows,),):
        await anyio.sleep(LOOK_SECONDS)


async def ends_equal(merging: Merging, generation: Generation) -> None:
    await merging.copied(generation)
    await merging.caught_up(generation)
    await until_reconciled(merging, generation)
    await settles(merging.differences, {})


async def test_a_row_copied_before_its_parent_was_deleted_goes_too(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    """The child is not copied any more, so nothing on the target refers to the deleted row."""
    merging = merging_from(mariadb_source)
    copies_slowly(merging)
    merging.create("m", PARENT)
    create(merging, "z", CHILD, "m")
    create(merging, "a", CHILD, "z")
    for table in ("m", "z", "a"):
        rows = ",".join(f"({n}, {n})" for n in range(1, 41))
        merging.do(f"INSERT INTO {table}_1 VALUES {rows}")
    async with merging.running() as generation:
        await until_there(merging, generation, "a", 40)
        assert merging.on(merging.target, "SELECT COUNT(*) FROM z WHERE id > 30") == ((0,),)
        await anyio.to_thread.run_sync(merging.do, "DELETE FROM m_1 WHERE id > 35")
        await ends_equal(merging, generation)
        assert merging.on(merging.target, "SELECT COUNT(*) FROM a") == ((35,),)


async def test_a_row_that_has_its_parent_by_a_changed_key_stays(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    """It is copied with the key of a row that was deleted before; no event of its own follows."""
    merging = merging_from(mariadb_source)
    copies_slowly(merging)
    merging.create("a", PARENT)
    create(merging, "z", CHILD, "a")
    for table in ("a", "z"):
        rows = ",".join(f"({n}, {n})" for n in range(1, 41))
        merging.do(f"INSERT INTO {table}_1 VALUES {rows}")
    async with merging.running() as generation:
        await until_there(merging, generation, "a", 20)
        for sql in ("DELETE FROM a_1 WHERE id = 39", "UPDATE a_1 SET id = 39 WHERE id = 40"):
            await anyio.to_thread.run_sync(merging.do, sql)
        await ends_equal(merging, generation)
        assert merging.on(merging.target, "SELECT p FROM z WHERE id = 40") == ((39,),)


@pytest.mark.remedy("rows.cascade-in-safe-mode", "resume")
async def test_rows_that_may_be_those_of_others_are_a_fault(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    """The target had a row before the task, so nobody knows which rows a key has left there."""
    merging = merging_from(mariadb_source)
    copies_slowly(merging)
    merging.create("a", PARENT)
    create(merging, "z", KEYED_CHILD, "a")
    merging.do(f"INSERT INTO a_1 VALUES {','.join(f'({n}, {n})' for n in range(1, 41))}")
    merging.do(f"INSERT INTO z_1 VALUES {','.join(f'({n}, 1, {n})' for n in range(1, 41))}")
    merging.on(merging.target, "INSERT INTO a VALUES (999, 0)", "INSERT INTO z VALUES (999, 1, 0)")
    changes = "UPDATE z_1 SET v = 77 WHERE p = 40", "UPDATE a_1 SET id = 50 WHERE id = 40"

    async def run() -> None:
        async with merging.running() as generation:
            await until_there(merging, generation, "a", 20)
            await anyio.to_thread.run_sync(merging.do, *changes)
            await anyio.sleep_forever()

    found = await fault_of(run())
    assert found.event == "rows.cascade-in-safe-mode"
    rows = "SELECT p FROM z WHERE p NOT BETWEEN 1 AND 39 ORDER BY p"
    assert merging.on(merging.target, rows) == ((40,), (50,), (999,))
    merging.on(merging.target, "DELETE FROM z WHERE p IN (40, 999)", "DELETE FROM a WHERE id = 999")
    async with merging.running() as generation:
        await until_reconciled(merging, generation)
        await settles(merging.differences, {})


async def test_a_batch_that_is_tried_again_queues_its_children(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    """The children are committed by the first attempt, which a lock of another target ends."""
    merging = merging_from(mariadb_source)
    merging.more["syncers"] = {"sync": {"safe-mode": True}}
    merging.create("p", PARENT)
    create(merging, "c", CHILD, "p")
    merging.create("x", PARENT)
    async with merging.running() as generation:
        merging.do("INSERT INTO p_1 VALUES (1, 1), (2, 1)", "INSERT INTO c_1 VALUES (1, 1), (2, 2)")
        await merging.caught_up(generation)
    merging.do(
        "BEGIN", "INSERT INTO x_1 VALUES (1, 1)", "UPDATE p_1 SET id = 9 WHERE id = 1", "COMMIT"
    )
    with capture_logs() as logs, closing(merging.target.connect(database=merging.database)) as lock:
        lock.cursor().execute("BEGIN")
        lock.cursor().execute("INSERT INTO x VALUES (1, 5)")
        async with merging.running() as generation:
            while not any(entry["event"] == "batch.retry" for entry in logs):
                await anyio.sleep(LOOK_SECONDS)
            lock.rollback()
            await merging.caught_up(generation)
            await until_reconciled(merging, generation)
            await settles(merging.differences, {})


async def test_a_task_that_is_always_in_safe_mode_reconciles(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.more["syncers"] = {"sync": {"safe-mode": True}}
    merging.create("p", PARENT)
    create(merging, "c", CHILD, "p")
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO p_1 VALUES (1, 1), (2, 1), (3, 1)",
            "INSERT INTO c_1 VALUES (1, 1), (2, 2), (3, 3)",
            "UPDATE p_1 SET id = 9 WHERE id = 1",
            "DELETE FROM p_1 WHERE id = 2",
        )
        await merging.caught_up(generation)
        await until_reconciled(merging, generation)
        await settles(merging.differences, {})
