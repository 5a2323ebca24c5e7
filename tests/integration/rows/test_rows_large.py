"""Transactions that are larger than a batch, and so than what is held in memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.memory import memory_growth
from tests.support.tasks.merging import Merging

ROWS = 1_000_000
TEXT = "REPEAT(MD5(seq), 6)"
ALL_ROWS = ROWS * 200
"""Bytes of these rows, which the driver would need were it to hold the transaction."""


@pytest.mark.slow
async def test_a_transaction_of_a_million_rows_takes_bounded_memory(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.batch_bytes = 4 << 20
    merging.create("t", "(id INT PRIMARY KEY, text CHAR(192) CHARACTER SET latin1)")
    merging.create("after", "(id INT PRIMARY KEY)")
    async with merging.running() as generation:
        merging.do("INSERT INTO t_1 SELECT seq, 'warm' FROM seq_5000001_to_5030000")
        await merging.check(generation)
        merging.do(
            "BEGIN",
            "INSERT INTO after_1 VALUES (1)",
            f"INSERT INTO t_1 SELECT seq, {TEXT} FROM seq_1_to_{ROWS}",
            "DELETE FROM t_1 WHERE id > 5000000",
            "COMMIT",
            "INSERT INTO after_1 VALUES (2)",
        )
        with memory_growth() as growth:
            await merging.caught_up(generation, patience=240)
        assert growth.workers
        assert growth.driver < ALL_ROWS * 3 / 4, f"the driver grew by {growth.driver >> 20} MiB"
        assert growth.worker < 400 << 20, f"a worker had {growth.worker >> 20} MiB"
    # Too many rows to bring them here.
    sums = [
        server.execute(
            f"SELECT COUNT(*), SUM(id), BIT_XOR(CAST(CONV(LEFT(MD5(CONCAT(id, text)), 15), 16, 10)"
            f" AS UNSIGNED)) FROM {merging.database}.{table}"
        )
        for server, table in ((merging.source, "t_1"), (merging.target, "t"))
    ]
    assert sums[0] == sums[1]
    assert sums[0][0][0] == ROWS


async def test_many_rows_move_between_shards_in_one_transaction(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    """The new shard has all rows before the old one gives any up, and in between the batch is
    full several times over."""
    merging = merging_from(mariadb_source)
    merging.batch_bytes = 1 << 20
    merging.create("t", "(id INT PRIMARY KEY, text CHAR(192) CHARACTER SET latin1)", shards=2)
    async with merging.running() as generation:
        merging.do(f"INSERT INTO t_1 SELECT seq, {TEXT} FROM seq_1_to_60000")
        await merging.check(generation)
        merging.do("BEGIN", "INSERT INTO t_2 SELECT * FROM t_1", "DELETE FROM t_1", "COMMIT")
        await merging.check(generation)
