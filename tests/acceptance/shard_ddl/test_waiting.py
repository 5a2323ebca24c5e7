"""A DDL waits for long: other targets keep their pace, nothing grows, a restart doubles nothing."""

from __future__ import annotations

import gc
import logging
from itertools import islice
from pathlib import Path
from statistics import median

import anyio
import anyio.to_thread
import pytest

from benchmarks.latency import arrivals, percentile
from replicator.status import TaskStatus
from tests.support.memory import resident
from tests.support.servers.binlog_ends import end_of
from tests.support.tasks.processes import TaskProcess, place_of, task_process
from tests.support.tasks.shard_ddl import ShardedEstate
from tests.support.tasks.task_files import write_task

COMMITS = 100
"""In each of the three parts; figures of such runs are in docs/inside/performance.md."""
FACTOR, SECONDS = 3, 0.5
"""So much later may half of the rows come while the DDL waits: only waiting for it is as slow."""
ROUNDS = 5
HELD_TRANSACTIONS, HELD_ROWS = 40, 500
OTHER_COMMITS = 1000
GROWTH = 40 << 20
"""Bytes: a fraction of the held rows that come after the first round, 80 MB."""
TRANSACTIONS = 500
SHARDS = ("A1", "A2", "B1", "uA1")
KEYLESS = "(id INT, filler VARCHAR(1000))"
"""Without a key a row that is applied twice is there twice."""

log = logging.getLogger(__name__)


@pytest.mark.slow
def test_rows_of_another_target_keep_their_latency(
    mariadb_estate: ShardedEstate, tmp_path: Path
) -> None:
    estate = mariadb_estate
    estate.create(*SHARDS)
    numbers = iter(range(1, 10**6))
    measured = []

    def measure() -> None:
        measured.append(
            arrivals(
                estate.server("uA1"),
                estate.target,
                f"INSERT INTO {estate.name('uA1')} (id) VALUES (%s)",
                f"SELECT 1 FROM {estate.db}.u WHERE id = %s",
                islice(numbers, COMMITS),
                [
                    f"INSERT INTO {estate.name('A1')} (id) VALUES (2 * %s)",
                    f"INSERT INTO {estate.name('A2')} (id) VALUES (2 * %s + 1)",
                ],
            )
        )

    with task_process(write_task(tmp_path, estate.task), tmp_path) as task:
        task.until_logged("task.running")
        for number in islice(numbers, 5):
            estate.insert("uA1", str(number))
        task.until_applied(estate.db, estate.sources)
        measure()
        before_ddl = end_of(estate.server("A1"))
        estate.ddl("A1", "ADD c INT")
        task.until_logged("lock.item")
        measure()
        task.until_applied(estate.db, estate.sources)
        waiting = _status(task, estate)
        assert not [e for e in task.events() if e["event"] == "source.restarting"]
        for shard in ("A2", "B1"):
            estate.ddl(shard, "ADD c INT")
        task.until(lambda: not estate.difference("t"), "equality")
        measure()
        task.until(lambda: not (estate.difference("t") or estate.difference("u")), "equality")
    assert [lock.rows_held for lock in waiting.locks] == [COMMITS]
    assert waiting.writer.queued_bytes == 0
    assert [source.reconnects for source in waiting.sources] == [0, 0]
    assert place_of(waiting.sources[0].saved_position).key <= before_ddl.key
    for name, values in zip(("before", "while it waits", "afterwards"), measured, strict=True):
        log.info(
            "%s: median %.0f ms, p95 %.0f ms, most %.0f ms",
            name,
            1000 * median(values),
            1000 * percentile(values, 0.95),
            1000 * max(values),
        )
    before, meanwhile, afterwards = map(median, measured)
    assert meanwhile < FACTOR * max(before, afterwards) + SECONDS


@pytest.mark.slow
def test_nothing_grows_and_a_restart_doubles_nothing(
    mariadb_estate: ShardedEstate, tmp_path: Path
) -> None:
    """Held rows of 100 MB, and many commits of another target; then the process is killed."""
    estate = mariadb_estate
    estate.create(*SHARDS, table=KEYLESS)
    path = write_task(tmp_path, estate.task)
    sizes = []
    with task_process(path, tmp_path) as task:
        task.until_logged("task.running")
        estate.ddl("A1", "ADD c INT")
        for _ in range(ROUNDS):
            _write(estate, "A1", "seq, REPEAT('x', 1000), 1", HELD_TRANSACTIONS, HELD_ROWS)
            _write(estate, "uA1", "seq, 'x'", OTHER_COMMITS, 1)
            _write(estate, "A2", "seq, 'x'", OTHER_COMMITS // 10, 1)
            task.until_applied(estate.db, estate.sources)
            sizes.append(resident(task.process.pid))
        held = _status(task, estate)
        task.process.kill()
        task.process.wait()
    with task_process(path, tmp_path) as task:
        task.until_applied(estate.db, estate.sources)
        again = _status(task, estate)
        assert not estate.difference("u")
        estate.insert("uA1", "0, 'late'")
        for shard in ("A2", "B1"):
            estate.ddl(shard, "ADD c INT")
        task.until(lambda: not (estate.difference("t") or estate.difference("u")), "equality")
    log.info("memory of the driver, MiB: %s", [size >> 20 for size in sizes])
    rows = ROUNDS * HELD_TRANSACTIONS * HELD_ROWS
    [lock], [same] = held.locks, again.locks
    # Row events, each of a few rows.
    assert lock.rows_held == same.rows_held > rows / 100
    assert held.writer.queued_bytes == again.writer.queued_bytes == 0
    # All was read again; what another target had of it, and older rows of this one, was left out.
    assert again.sources[0].saved_position == held.sources[0].saved_position
    others = ROUNDS * (OTHER_COMMITS + OTHER_COMMITS // 10)
    assert again.sources[0].rows == lock.rows_held + others
    assert again.writer.rows == 0
    assert max(sizes) - sizes[0] < GROWTH


async def test_no_object_is_kept_for_what_passes_by(mariadb_estate: ShardedEstate) -> None:
    """Neither for held rows nor for transactions of other tables, while a DDL waits."""
    estate = mariadb_estate
    estate.create(*SHARDS, table=KEYLESS)
    async with estate.merging():
        estate.ddl("A1", "ADD c INT")
        counts = []
        for _ in range(3):
            await anyio.to_thread.run_sync(_write, estate, "A1", "seq, 'x', 1", TRANSACTIONS, 2)
            await anyio.to_thread.run_sync(_write, estate, "uA1", "seq, 'x'", TRANSACTIONS, 1)
            await estate.caught_up()
            gc.collect()
            counts.append(len(gc.get_objects()))
        [view] = estate.views()
        assert view.rows_held == 3 * TRANSACTIONS
        for shard in ("A2", "B1"):
            estate.ddl(shard, "ADD c INT")
        await estate.settled()
    # The first time much is made once and for all.
    assert counts[2] - counts[1] < TRANSACTIONS / 2, counts


def _write(estate: ShardedEstate, shard: str, values: str, transactions: int, rows: int) -> None:
    """So many transactions of so many rows into a shard of a MariaDB."""
    insert = f"INSERT INTO {estate.name(shard)} SELECT {values} FROM {estate.db}.seq_1_to_{rows}"
    with estate.server(shard).connect() as connection, connection.cursor() as cursor:
        for _ in range(transactions):
            cursor.execute(insert)


def _status(task: TaskProcess, estate: ShardedEstate) -> TaskStatus:
    status = task.status(estate.db)
    assert status is not None
    return status
