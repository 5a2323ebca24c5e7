"""Targets that refuse large transactions: the rows arrive in several ones, and none is lost.

Galera undoes the whole transaction above wsrep_max_ws_rows, and the session still looks as if it
were in one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from pyspark import SparkContext
from structlog.testing import capture_logs

from replicator.sandbox.server import DatabaseServer
from tests.support.servers.galera import GaleraCluster
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import fault_of

ROWS = 5000
LIMITS: Mapping[str, tuple[str, str]] = {
    "wsrep_max_ws_rows": ("1000", "0"),
    "wsrep_max_ws_size": ("65536", "2147483647"),
}
"""A low limit and the default."""


@contextmanager
def limited(galera: GaleraCluster, *names: str) -> Iterator[None]:
    with ExitStack() as limits:
        for name in names:
            low, usual = LIMITS[name]
            for node in galera.nodes:
                node.execute(f"SET GLOBAL {name} = {low}")
                limits.callback(node.execute, f"SET GLOBAL {name} = {usual}")
        yield


@pytest.fixture
def merging(
    spark: SparkContext,
    mariadb_source: DatabaseServer,
    galera: GaleraCluster,
    database_name: str,
    tmp_path: Path,
) -> Merging:
    made = Merging(spark, tmp_path, {"a": mariadb_source}, galera.nodes[0], database_name)
    made.more["writer"] = {"buckets": 2}
    return made


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("local_infile", ["ON", "OFF"])
async def test_all_rows_arrive_though_a_batch_is_above_a_limit(
    merging: Merging, galera: GaleraCluster, limit: str, local_infile: str
) -> None:
    merging.create("t", "(id INT PRIMARY KEY, v VARCHAR(200))")
    for node in galera.nodes:
        node.execute(f"SET GLOBAL local_infile = {local_infile}")
    try:
        with limited(galera, limit), capture_logs() as logs:
            async with merging.running() as generation:
                for statement in (
                    f"INSERT INTO t_1 SELECT seq, REPEAT('a', 100) FROM seq_1_to_{ROWS}",
                    "UPDATE t_1 SET v = CONCAT('b', id)",
                    f"DELETE FROM t_1 WHERE id <= {ROWS - 100}",
                    f"INSERT INTO t_1 SELECT seq, REPEAT('c', 100) FROM seq_1_to_{ROWS // 2}",
                ):
                    merging.do(statement)
                    await merging.caught_up(generation)
                    assert not merging.differences()
                written = generation.counts.targets
                assert sum(of.inserted for of in written.values()) == ROWS + ROWS // 2
                assert sum(of.missing for of in written.values()) == 0
        cut = [log for log in logs if log["event"] == "batch.cut"]
        assert len(cut) == 1
        assert cut[0]["transactions"] > 1
        galera.until_equal()
        tables = [node.execute(f"SELECT * FROM {merging.database}.t") for node in galera.nodes]
        assert tables[0] == tables[1] == tables[2]
    finally:
        for node in galera.nodes:
            node.execute("SET GLOBAL local_infile = ON")


async def test_rows_of_one_event_above_the_limit_are_a_fault_with_the_setting(
    merging: Merging, galera: GaleraCluster
) -> None:
    merging.create("t", "(id INT PRIMARY KEY, v LONGTEXT)")

    async def run() -> None:
        async with merging.running() as generation:
            merging.do("INSERT INTO t_1 VALUES (1, REPEAT('a', 200000))")
            await merging.caught_up(generation)

    with limited(galera, "wsrep_max_ws_size"):
        error = await fault_of(run())
        assert error.event == "rows.refused"
        assert "wsrep_max_ws_size = 2147483647" in error.remedies[0]
        assert not merging.on(merging.target, "SELECT id FROM t")
    async with merging.running() as generation:
        await merging.caught_up(generation)
    assert not merging.differences()


async def test_a_copy_above_the_limit_names_the_setting(
    merging: Merging, galera: GaleraCluster
) -> None:
    merging.mode = "full"
    merging.create("t", "(id INT PRIMARY KEY, v INT)", with_target=False)
    merging.do(f"INSERT INTO t_1 SELECT seq, seq FROM seq_1_to_{ROWS}")
    with limited(galera, "wsrep_max_ws_rows"):
        error = await fault_of(merging.copy())
        assert error.event == "copy.refused"
        assert "wsrep_max_ws_rows = 0" in error.remedies[0]
        assert merging.on(merging.target, "SELECT COUNT(*) FROM t") == ((0,),)
    await merging.copy()
    assert not merging.differences()


async def test_tied_targets_are_written_in_several_transactions(
    merging: Merging, galera: GaleraCluster
) -> None:
    merging.create("p", "(id INT PRIMARY KEY, v CHAR(50))")
    key = "FOREIGN KEY ({}) REFERENCES {} (id) ON DELETE CASCADE"
    merging.create(
        "c",
        f"(id INT PRIMARY KEY, p INT, {key.format('p', 'p_1')})",
        target=f"(id INT PRIMARY KEY, p INT, {key.format('p', 'p')})",
    )
    with limited(galera, "wsrep_max_ws_rows"):
        async with merging.running() as generation:
            merging.do(
                f"INSERT INTO p_1 SELECT seq, REPEAT('a', 50) FROM seq_1_to_{ROWS}",
                f"INSERT INTO c_1 SELECT seq, seq FROM seq_1_to_{ROWS}",
            )
            await merging.caught_up(generation)
            assert not merging.differences()
            merging.do("DELETE FROM p_1 WHERE id % 4 = 0")
            await merging.caught_up(generation)
            assert not merging.differences()
