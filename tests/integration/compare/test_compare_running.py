"""Comparisons while the task runs: rows on their way are no differences, lost ones are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import anyio
import anyio.to_thread
import pytest
from pyspark import SparkContext

from actors.comparing.comparing import CompareOptions, TargetComparer
from actors.comparing.task_progress import TaskProgress
from replicator.downstream.meta.held_shards import NOTHING_HELD, HeldShards
from replicator.mysql.names import TableName
from replicator.pipeline.compare.doubts import BinlogEnds
from replicator.pipeline.compare.findings import TargetComparison
from replicator.sandbox.server import DatabaseServer
from replicator.terminal.comparison import example_text
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles

MergingFrom = Callable[..., Merging]
X = "(id INT PRIMARY KEY, v INT, s VARCHAR(40))"


async def all_compared(
    merging: Merging, spark: SparkContext, settle: float = 30
) -> list[TargetComparison]:
    async def context() -> SparkContext:
        return spark

    options = CompareOptions(chunk_rows=200, settle=settle)
    results = await TargetComparer(merging.task, options, context).run()
    assert not any(result.failure for result in results)
    return results


async def compared(merging: Merging, spark: SparkContext) -> TargetComparison:
    (result,) = await all_compared(merging, spark)
    return result


BETWEEN = 0.1
"""Seconds between two rounds of the clients: several to each look."""


class Writers:
    """Clients that change rows of all shards until they are told to end."""

    def __init__(self, merging: Merging) -> None:
        self._merging = merging
        self.ended = False
        self.rounds = 0

    def write(self) -> None:
        merging = self._merging
        while not self.ended:
            self.rounds += 1
            for number, server in enumerate(merging.sources.values()):
                key = 10_000 * number + self.rounds % 500
                merging.on(
                    server,
                    f"UPDATE x_1 SET v=v+1 WHERE id BETWEEN {key} AND {key + 20}",
                    f"REPLACE INTO x_1 VALUES ({key + 1000}, 0, 'new')",
                    f"DELETE FROM x_2 WHERE id={key + 5000}",
                    f"INSERT IGNORE INTO x_2 VALUES ({key + 5001}, {self.rounds}, 'again')",
                )
            time.sleep(BETWEEN)


async def test_rows_on_their_way_are_no_differences(
    merging_from: MergingFrom,
    spark: SparkContext,
    mariadb_source: DatabaseServer,
    mysql_source: DatabaseServer,
) -> None:
    merging = merging_from(mariadb_source, mysql_source)
    merging.create("x", X, shards=2)
    for number, server in enumerate(merging.sources.values()):
        rows = ",".join(f"({10_000 * number + n}, 0, 'old')" for n in range(600))
        others = ",".join(f"({10_000 * number + 5000 + n}, 0, 'old')" for n in range(600))
        merging.on(server, f"INSERT INTO x_1 VALUES {rows}", f"INSERT INTO x_2 VALUES {others}")
    writers = Writers(merging)
    merging.mode = "all"
    async with merging.running() as generation:
        await merging.copied(generation)
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, writers.write)
            try:
                result = await compared(merging, spark)
                assert (result.differing, result.unsettled) == (0, 0), result
                statements = ("DELETE FROM x WHERE id=590", "UPDATE x SET s='x' WHERE id=15590")
                merging.on(merging.target, *statements)
                result = await compared(merging, spark)
                assert (result.missing, result.different) == (1, 1), result
                assert result.extra == result.unsettled == 0
            finally:
                writers.ended = True
        assert writers.rounds > 1


EVERY_TYPE = (
    "(id BIGINT UNSIGNED PRIMARY KEY, a TINYINT, b DECIMAL(30,10), c FLOAT, d DOUBLE,"
    " e CHAR(9) CHARACTER SET latin1, f TEXT CHARACTER SET utf8mb4, g VARBINARY(20), h DATE,"
    " i DATETIME(3), j TIMESTAMP(6) NULL, k TIME(1), l YEAR, m ENUM('x','y'), n SET('p','q','r'),"
    " o BIT(12), p LONGBLOB, q BINARY(4))"
)
ROWS = (
    "(1, -1, 1.5, 0.1, 0.1, 'é ', 'ü€', x'00FF5C', '2024-02-29', '2024-01-01 10:00:00.5',"
    " '2024-01-01 10:00:00.000001', '-100:00:00.5', 2024, 'y', 'r,p', b'100000000001', x'0A09',"
    " x'01')",
    "(2, 127, -0.0000000001, -1e20, 1e300, '', '', '', '0000-00-00', '0000-00-00', NULL, '0:0:0',"
    " 0, NULL, '', 0, '', '')",
    "(18446744073709551615, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,"
    " NULL, NULL, NULL, NULL, NULL)",
)


async def test_values_that_servers_write_in_their_own_ways(
    merging: Merging, spark: SparkContext
) -> None:
    merging.create("x", EVERY_TYPE, shards=2)
    merging.do(f"INSERT INTO x_1 VALUES {ROWS[0]}", f"INSERT INTO x_2 VALUES {ROWS[1]},{ROWS[2]}")
    merging.mode, merging.show_values = "full", True
    await merging.copy()
    result = await compared(merging, spark)
    assert (result.differing, result.incomplete, result.rows) == (0, False, 3), result
    merging.on(merging.target, "UPDATE x SET c=1.5 WHERE id=1", "UPDATE x SET j=NULL WHERE id=1")
    result = await compared(merging, spark)
    assert (result.missing, result.extra, result.different) == (0, 0, 1)
    (example,) = result.examples
    assert example.key == "1"
    text = example_text(example)
    assert "c: '0.1" in text
    assert "j: '2024-01-01 10:00:00.000001' in the shard, NULL on the target" in text


@contextmanager
def changing(merging: Merging, statement: str) -> Iterator[list[bool]]:
    """The shards change before each further look; whether all was applied, look by look."""
    looks: list[bool] = []
    applied = TaskProgress.applied

    async def noted(
        progress: TaskProgress, ends: Iterable[BinlogEnds], target: TableName, patience: float
    ) -> tuple[bool, HeldShards]:
        found = await applied(progress, ends, target, patience)
        looks.append(found[0])
        merging.do(statement)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TaskProgress, "applied", noted)
        yield looks


async def test_rows_behind_a_lock_are_held(
    merging_from: MergingFrom, spark: SparkContext, mariadb_source: DatabaseServer
) -> None:
    """What changes behind it at each look is held, too: one look is enough."""
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = "pessimistic"
    merging.create("x", X, shards=2)
    merging.do("INSERT INTO x_1 VALUES (1,1,'a')", "INSERT INTO x_2 VALUES (2,1,'a')")
    merging.mode = "all"
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("ALTER TABLE x_1 ADD COLUMN c INT", "INSERT INTO x_1 VALUES (3,1,'a',7)")
        merging.do("INSERT INTO x_2 VALUES (4,1,'a')")
        await settles(lambda: len(merging.on(merging.target, "SELECT id FROM x")), 3)
        with changing(merging, "UPDATE x_1 SET v=v+1") as looks:
            result = await compared(merging, spark)
        assert (result.held, result.differing, result.unsettled) == (1, 0, 0), result
        # One for the rows, and perhaps one for the structures.
        assert len(looks) <= 2
        assert [out.column for out in result.left_out] == ["c"]
        merging.do("ALTER TABLE x_2 ADD COLUMN c INT")
        await settles(lambda: len(merging.on(merging.target, "SELECT id FROM x")), 4)
        result = await compared(merging, spark)
        assert (result.held, result.differing, result.incomplete) == (0, 0, False), result


@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
async def test_a_stopped_task_behind_a_lock_holds_only_the_rows_that_wait(
    merging_from: MergingFrom, spark: SparkContext, mariadb_source: DatabaseServer, mode: str
) -> None:
    """Not what differs in the shards that go on, nor in other targets of their source."""
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = mode
    for table in "xy":
        merging.create(table, X, shards=2)
        merging.do(*(f"INSERT INTO {table}_{n} VALUES ({n}0,1,'a'),({n}1,1,'a')" for n in (1, 2)))
    merging.mode = "all"
    if mode == "pessimistic":
        change, row = "ALTER TABLE x_1 ADD COLUMN c INT", "3, 1, 'a', 7"
    else:
        change, row = "ALTER TABLE x_1 CHANGE v w INT", "3, 1, 'a'"
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do(change, f"INSERT INTO x_1 VALUES ({row})")
        merging.do("INSERT INTO x_2 VALUES (4, 1, 'a')", "INSERT INTO y_1 VALUES (4, 1, 'a')")
        await merging.caught_up(generation)
        merging.on(merging.target, "DELETE FROM x WHERE id=20", "DELETE FROM y WHERE id=20")
        await said(merging, spark)
    await said(merging, spark)


async def said(merging: Merging, spark: SparkContext) -> None:
    x, y = await all_compared(merging, spark)
    assert (x.held, x.missing, x.differing, x.unsettled) == (1, 1, 1, 0), x
    assert (y.held, y.missing, y.differing, y.unsettled) == (0, 1, 1, 0), y
    assert not any(found.incomplete or found.structure for found in (x, y)), (x, y)


async def test_rows_without_a_key_that_wait_for_a_lock(
    merging_from: MergingFrom, spark: SparkContext, mariadb_source: DatabaseServer
) -> None:
    """They differ each time they are read."""
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = "pessimistic"
    merging.create("x", "(id INT, v INT)", shards=2)
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1)", "INSERT INTO x_2 VALUES (2, 2)")
        merging.do("ALTER TABLE x_1 ADD w INT", "INSERT INTO x_1 VALUES (3, 3, 3)")
        await merging.caught_up(generation)
        with changing(merging, "INSERT INTO x_1 VALUES (3, 3, 3)") as looks:
            result = await compared(merging, spark)
        assert (result.held, result.differing, result.unsettled) == (2, 0, 0), result
        # One for the rows, and perhaps one for the structures.
        assert len(looks) <= 2


async def test_a_column_that_a_shard_drops_before_the_task_knows_it(
    merging_from: MergingFrom,
    spark: SparkContext,
    mariadb_source: DatabaseServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its older rows have what they had, not what rows without the column get."""
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = "optimistic"
    merging.create("x", X, shards=2)
    merging.do("INSERT INTO x_1 VALUES (1,1,'a')", "INSERT INTO x_2 VALUES (2,1,'a')")
    merging.mode = "all"
    async with merging.running() as generation:
        await merging.copied(generation)
        for change in ("ADD COLUMN c INT DEFAULT 7", "MODIFY c BIGINT"):
            merging.do(*(f"ALTER TABLE x_{n} {change}" for n in (1, 2)))
        merging.do("INSERT INTO x_1 (id, v, s) VALUES (3, 1, 'NULL')")
        await merging.caught_up(generation)
    merging.do("ALTER TABLE x_1 DROP COLUMN c")
    begins, follows, ends = (anyio.Event() for _ in range(3))

    async def follow() -> None:
        await begins.wait()
        async with merging.running() as generation:
            await merging.copied(generation)
            await merging.caught_up(generation)
            follows.set()
            await ends.wait()

    async def applied(*_: object) -> tuple[bool, HeldShards]:
        begins.set()
        await follows.wait()
        return True, NOTHING_HELD

    monkeypatch.setattr(TaskProgress, "applied", applied)
    async with anyio.create_task_group() as group:
        group.start_soon(follow)
        result = await compared(merging, spark)
        ends.set()
    assert begins.is_set()
    assert (result.held, result.differing, result.unsettled) == (0, 0, 0), result


async def test_rows_without_a_key_that_always_change_end_after_some_time(
    merging_from: MergingFrom, spark: SparkContext, mariadb_source: DatabaseServer
) -> None:
    """Every read of a table without a key reads all of it, so the number of reads is no bound."""
    merging = merging_from(mariadb_source)
    merging.create("x", "(id INT, v INT)", shards=2)
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1)")
        await merging.caught_up(generation)
        merging.on(merging.target, "INSERT INTO x VALUES (1, 1)")
        # The shard takes a second to answer, as a large table does.
        with changing(merging, "UPDATE x_1 SET v = v + 1 + SLEEP(1)") as looks:
            (result,) = await all_compared(merging, spark, settle=3)
        assert len(looks) <= 4
        assert (result.unsettled, result.differing, result.incomplete) == (1, 0, True), result
        assert f"were read {1 + len(looks)} times" in result.unsettled_remark
        assert "--settle 30`" in result.unsettled_remark


async def test_a_task_that_does_not_advance_is_waited_for_once(
    merging_from: MergingFrom,
    spark: SparkContext,
    mariadb_source: DatabaseServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other targets only look whether it has advanced."""
    merging = merging_from(mariadb_source)
    for name in ("x", "y", "z"):
        merging.create(name, "(id INT PRIMARY KEY)" if name == "x" else "(id INT)")
    merging.mode = "full"
    await merging.copy()
    merging.do(*(f"INSERT INTO {name}_1 VALUES (1)" for name in ("x", "y", "z")))
    polls: list[int] = []
    places = TaskProgress._places

    async def counted(progress: TaskProgress, status: None) -> tuple[dict[str, int], bool]:
        polls[-1] += 1
        return await places(progress, status)

    applied = TaskProgress.applied

    async def noted(
        progress: TaskProgress, ends: Iterable[BinlogEnds], target: TableName, patience: float
    ) -> tuple[bool, HeldShards]:
        polls.append(0)
        return await applied(progress, ends, target, patience)

    monkeypatch.setattr(TaskProgress, "_places", counted)
    monkeypatch.setattr(TaskProgress, "applied", noted)
    results = await all_compared(merging, spark, settle=2)
    first, *later = polls
    assert first > 1
    assert later == [1, 1]
    assert [result.unsettled for result in results] == [1, 1, 1]
    (source,) = merging.sources
    for result in results:
        assert f"what {source} had written" in result.unsettled_remark
