"""Comparisons that are broken off, that pause, and that make rows right while the task writes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pymysql.connections
import pymysql.err
import pytest
from pyspark import SparkContext

import config
from actors.comparing import differing_rows
from actors.comparing.comparing import CompareOptions, TargetComparer
from actors.comparing.source_load import LoadGate, LoadLimit, load_limits
from actors.comparing.target_run import ComparisonView
from actors.comparing.task_progress import TaskProgress
from actors.setup.task_setup import address_of
from replicator.downstream.meta.held_shards import NOTHING_HELD, HeldShards
from replicator.mysql.names import Member, TableName
from replicator.pipeline.compare import compare_digests
from replicator.pipeline.compare.compare_plan import plan_comparison
from replicator.pipeline.compare.compare_rows import CompareServers
from replicator.pipeline.compare.compare_structures import ComparedShard
from replicator.pipeline.compare.findings import TargetComparison
from replicator.pipeline.compare.repair_now import RepairScope, repair_now
from replicator.routing.columns.member_columns import MemberColumns
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from replicator.schema.structure.structure import Column, Table
from tests.conftest import StartServer
from tests.support.tasks.key_estate import Estate
from tests.support.tasks.merging import Merging
from tests.support.tasks.saved_copies import save_as_copied

MergingFrom = Callable[..., Merging]
X = "(id INT PRIMARY KEY, v INT, s VARCHAR(40))"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def estate(
    mariadb_source: DatabaseServer, mariadb_target: DatabaseServer, database_name: str
) -> Iterator[Estate]:
    made = Estate(database_name, mariadb_target, mariadb_source)
    yield made
    made.drop()


class BrokenOffError(Exception):
    pass


class BreaksOff(ComparisonView):
    """Ends a comparison after so many steps."""

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.seen: list[str] = []

    def begun(self, target: TableName, rows_expected: int) -> None:
        self.seen.append(target.table)

    def went_on(self, result: TargetComparison, doubted: int) -> None:
        self.left -= 1
        if not self.left:
            raise BrokenOffError


async def compared(
    task: config.Task,
    spark: SparkContext,
    options: CompareOptions,
    view: ComparisonView | None = None,
) -> list[TargetComparison]:
    async def context() -> SparkContext:
        return spark

    return await TargetComparer(task, options, context, view).run()


def mend(estate: Estate, repair: Path) -> None:
    text = repair.read_text("ascii")
    estate.target.execute(*[statement for statement in text.split(";\n") if statement])


async def test_a_comparison_that_was_broken_off_goes_on(
    estate: Estate, spark: SparkContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from actors.comparing import target_run

    monkeypatch.setattr(target_run, "SETTLE_SECONDS", 0.0)
    rows = ",".join(f"({n},{n},'s')" for n in range(100))
    columns = "id INT PRIMARY KEY, v INT, s VARCHAR(40)"
    estate.shard("a", "t1", columns, rows)
    estate.into(columns)
    name = f"{estate.db}_all.t"
    estate.target.execute(f"INSERT INTO {name} VALUES {rows}")
    estate.target.execute(f"DELETE FROM {name} WHERE id IN (3, 97)")
    task = config.Task.model_validate(estate.task())
    options = CompareOptions(chunk_rows=5, repair=tmp_path / "repair.sql")
    with pytest.raises(BrokenOffError):
        await compared(task, spark, options, BreaksOff(2))
    again = BreaksOff(-1)
    (result,) = await compared(task, spark, replace(options, resume=True), again)
    assert (result.missing, result.rows) == (2, 98)
    assert list(result.by_shard.values()) == [100]
    assert [example.key for example in result.examples] == ["3", "97"]
    # Those that were looked at before the end are not looked at again.
    assert again.left > -4
    mend(estate, tmp_path / "repair.sql")
    # There is nothing to resume, so all of it is compared.
    (result,) = await compared(task, spark, replace(options, resume=True))
    assert (result.differing, result.rows) == (0, 100)


async def test_a_source_that_goes_away_is_named(
    start_server: StartServer,
    merging_from: MergingFrom,
    spark: SparkContext,
    mariadb_source: DatabaseServer,
) -> None:
    merging = merging_from(mariadb_source, start_server(MariaDBServer))
    for table in "xy":
        merging.create(table, X)
    for number, server in enumerate((*merging.sources.values(), merging.target)):
        first = 100 * (number % 2)
        rows = ",".join(f"({n}, 1, 'a')" for n in range(first, 200 if number == 2 else first + 100))
        shard = "" if number == 2 else "_1"
        merging.on(server, f"INSERT INTO x{shard} VALUES {rows}")

    class Ends(ComparisonView):
        def went_on(self, result: TargetComparison, doubted: int) -> None:
            merging.sources["b"].stop()

    options = CompareOptions(chunk_rows=5)
    results = await compared(merging.task, spark, options, Ends())
    assert [result.incomplete for result in results] == [True, True]
    assert results[0].failure.startswith("source b: ")
    assert not any(result.unequal for result in results)


@pytest.mark.parametrize("chunk_rows", [200, 5000], ids=["many ranges", "one range"])
async def test_a_target_that_lacks_nearly_all_rows(
    estate: Estate, spark: SparkContext, tmp_path: Path, chunk_rows: int
) -> None:
    """Ranges are those of the target, which has hardly any rows, so they are cut by the shards'."""
    columns = "a INT, b VARCHAR(9), v BLOB, PRIMARY KEY (a, b)"
    for number in (1, 2):
        rows = ",".join(f"({n},'{number}',REPEAT('x',{n % 50}))" for n in range(2500))
        estate.shard("a", f"t{number}", columns, rows)
    estate.into(columns)
    estate.target.execute(f"INSERT INTO {estate.db}_all.t VALUES (500,'1','y'),(2500,'1','z')")
    task = config.Task.model_validate(estate.task())
    await save_as_copied(task)
    options = CompareOptions(chunk_rows=chunk_rows, repair=tmp_path / "repair.sql")
    checksums = chunk_rows > 200
    (result,) = await compared(task, spark, replace(options, checksums=checksums))
    assert (result.missing, result.extra, result.different) == (4999, 1, 1)
    assert len(result.ranges) > 2
    assert sum(found.differing for found in result.ranges) == 5001
    mend(estate, tmp_path / "repair.sql")
    (result,) = await compared(task, spark, options)
    assert (result.differing, result.rows) == (0, 5000)


@pytest.mark.parametrize("chunk_rows", [2, 100])
async def test_a_row_whose_key_is_null_in_its_shard_alone_is_missing(
    estate: Estate, spark: SparkContext, chunk_rows: int
) -> None:
    rows = ",".join(f"({n},{n})" for n in range(1, 9))
    estate.shard("a", "t1", "id INT UNIQUE, v INT", rows, "(NULL,77)")
    estate.into("id INT PRIMARY KEY, v INT")
    estate.target.execute(f"INSERT INTO {estate.db}_all.t VALUES {rows}")
    task = config.Task.model_validate(estate.task())
    (result,) = await compared(task, spark, CompareOptions(chunk_rows=chunk_rows))
    assert (result.missing, result.extra, result.different) == (1, 0, 0), result
    assert result.examples[0].key == "NULL"


@pytest.mark.parametrize("collation", ["utf8mb4_bin", "utf8mb4_general_ci"])
async def test_a_condition_that_holds_on_one_side_alone_deletes_no_row(
    estate: Estate,
    spark: SparkContext,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    collation: str,
) -> None:
    """With the second one, no key makes ranges."""
    from actors.comparing import target_run

    monkeypatch.setattr(target_run, "DOUBTED_ROWS", 500)
    key = "k VARCHAR(9) CHARACTER SET utf8mb4 COLLATE {} PRIMARY KEY, v INT"
    rows = "SELECT CONCAT('k', seq), IF(seq < 600, {}, {}) FROM seq_1_to_700"
    estate.shard("a", "t1", key.format(collation))
    insert = f"INSERT INTO t1 {rows.format(3, 9)}"
    estate.sources["a"].execute(insert, database=estate.db)
    estate.into(key.format("utf8mb4_bin"))
    insert = f"INSERT INTO t {rows.format(7, 2)}"
    estate.target.execute(insert, database=f"{estate.db}_all")
    task = config.Task.model_validate(estate.task())
    options = CompareOptions(where="v > 5", repair=tmp_path / "repair.sql")
    (result,) = await compared(task, spark, options)
    assert (result.different, result.missing, result.extra) == (700, 0, 0), result
    mend(estate, tmp_path / "repair.sql")
    (result,) = await compared(task, spark, CompareOptions())
    assert (result.differing, result.rows) == (0, 700)


async def test_any_number_of_rows_of_a_table_without_ranges(
    estate: Estate, spark: SparkContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare_digests, "PAGE_ROWS", 4)
    rows = ",".join(f"({n % 30})" for n in range(60))
    estate.shard("a", "t1", "v INT", rows)
    estate.into("v INT")
    estate.target.execute(f"INSERT INTO {estate.db}_all.t VALUES (1),(1),(1),(40),(2)")
    task = config.Task.model_validate(estate.task())
    await save_as_copied(task)
    options = CompareOptions(repair=tmp_path / "repair.sql")
    (result,) = await compared(task, spark, options)
    assert (result.missing, result.extra, result.different) == (57, 2, 0)
    mend(estate, tmp_path / "repair.sql")
    (result,) = await compared(task, spark, options)
    assert (result.differing, result.rows) == (0, 60)


@pytest.mark.parametrize("at_once", [False, True], ids=["file", "now"])
async def test_rows_that_exchange_values_of_a_unique_key(
    estate: Estate,
    spark: SparkContext,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    at_once: bool,
) -> None:
    """Each needs what another one has: two rows, a ring of three, one that is missing."""
    monkeypatch.setattr(differing_rows, "TRANSACTION_ROWS", 1)
    columns = "id INT PRIMARY KEY, a VARCHAR(9) NOT NULL UNIQUE, b INT, c INT, UNIQUE (b, c)"
    rows = ",".join(f"({n},'a{n}',{n},{n})" for n in range(1, 13))
    estate.shard("a", "t1", columns, rows)
    estate.into(columns)
    name = f"{estate.db}_all.t"
    estate.target.execute(f"INSERT INTO {name} VALUES {rows}")
    estate.target.execute(
        f"UPDATE {name} SET a = CONCAT('x', a) WHERE id IN (1, 9, 3, 4, 5)",
        f"UPDATE {name} SET a = IF(id=1, 'a9', 'a1') WHERE id IN (1, 9)",
        f"UPDATE {name} SET a = ELT(id-2, 'a4', 'a5', 'a3') WHERE id IN (3, 4, 5)",
        f"UPDATE {name} SET b = 99 WHERE id IN (6, 12)",
        f"UPDATE {name} SET b = 18-id, c = 18-id WHERE id IN (6, 12)",
        f"DELETE FROM {name} WHERE id = 7",
        f"UPDATE {name} SET a = 'a7' WHERE id = 10",
    )
    repair = None if at_once else tmp_path / "repair.sql"
    task = config.Task.model_validate(estate.task())
    options = CompareOptions(chunk_rows=4, repair=repair, repair_now=at_once)
    (result,) = await compared(task, spark, options)
    assert not result.failure
    assert (result.missing, result.different) == (1, 8)
    assert result.repaired == (9 if at_once else 0)
    if repair is not None:
        mend(estate, repair)
    (result,) = await compared(task, spark, CompareOptions())
    assert (result.differing, result.rows) == (0, 12)


async def test_columns_of_the_target_alone_outlive_a_repair(
    estate: Estate, spark: SparkContext, tmp_path: Path
) -> None:
    columns = "id INT PRIMARY KEY, a INT UNIQUE"
    estate.shard("a", "t1", columns, "(1,1),(2,2)")
    estate.into(f"{columns}, note VARCHAR(9)")
    name = f"{estate.db}_all.t"
    estate.target.execute(f"INSERT INTO {name} VALUES (1,1,'x'),(2,7,'kept')")
    repair = tmp_path / "repair.sql"
    task = config.Task.model_validate(estate.task())
    (result,) = await compared(task, spark, CompareOptions(repair=repair))
    assert result.different == 1
    mend(estate, repair)
    assert estate.target.execute(f"SELECT a, note FROM {name} WHERE id=2") == ((2, "kept"),)


async def test_rows_without_a_key_are_made_right_at_once(
    estate: Estate, spark: SparkContext
) -> None:
    columns = "v INT, s VARCHAR(9)"
    estate.shard("a", "t1", columns, "(1,'x'),(1,'x'),(2,NULL),(3,'z')")
    estate.shard("a", "t2", columns, "(1,'x'),(2,NULL)")
    estate.into(columns)
    name = f"{estate.db}_all.t"
    spoiled = "(1,'x'),(1,'x'),(1,'x'),(1,'X'),(2,NULL),(2,NULL),(2,NULL),(2,NULL)"
    estate.target.execute(f"INSERT INTO {name} VALUES {spoiled}")
    task = config.Task.model_validate(estate.task())
    await save_as_copied(task)
    (result,) = await compared(task, spark, CompareOptions(repair_now=True))
    assert (result.missing, result.extra, result.repaired) == (1, 3, 4), result
    (result,) = await compared(task, spark, CompareOptions())
    assert (result.differing, result.rows) == (0, 6)


async def test_equal_rows_without_a_key_are_not_sorted(
    estate: Estate, spark: SparkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare_digests.DigestComparer, "look", None)
    estate.shard("a", "t1", "v INT, s VARCHAR(9)", "(1,'x'),(1,'x'),(2,NULL)")
    estate.shard("a", "t2", "v INT, s VARCHAR(9)", "(1,'x'),(3,'z')")
    estate.into("v INT, s VARCHAR(9)")
    name = f"{estate.db}_all.t"
    estate.target.execute(f"INSERT INTO {name} VALUES (3,'z'),(1,'x'),(2,NULL),(1,'x'),(1,'x')")
    task = config.Task.model_validate(estate.task())
    await save_as_copied(task)
    (result,) = await compared(task, spark, CompareOptions())
    assert (result.failure, result.differing, result.rows) == ("", 0, 5)
    assert list(result.by_shard.values()) == [3, 2]


async def test_as_many_rows_without_a_key_but_another_one_twice(
    estate: Estate, spark: SparkContext
) -> None:
    estate.shard("a", "t1", "v INT", "(1),(1),(2)")
    estate.shard("a", "t2", "v INT", "(5)")
    estate.into("v INT")
    estate.target.execute(f"INSERT INTO {estate.db}_all.t VALUES (1),(2),(2),(5)")
    task = config.Task.model_validate(estate.task())
    await save_as_copied(task)
    (result,) = await compared(task, spark, CompareOptions())
    assert (result.missing, result.extra, result.rows) == (1, 1, 4)


def test_rows_without_a_key_whose_number_has_changed_since_are_left_alone(
    merging_from: MergingFrom, spark: SparkContext, mariadb_source: DatabaseServer
) -> None:
    """Equal rows come all the time, and the target is a little behind: nothing is wrong."""
    merging = merging_from(mariadb_source)
    merging.create("x", "(v INT)")
    merging.do("INSERT INTO x_1 VALUES (1),(1),(5)")
    merging.on(merging.target, "INSERT INTO x VALUES (1),(7),(7)")
    target = Table(merging.database, "x", (Column("v", "int(11)"),), (), "")
    servers = CompareServers(
        address_of(merging.task.target_database),
        {"a": address_of(merging.task.sources[0].connection)},
    )
    shard = ComparedShard(
        Member("a", TableName(merging.database, "x_1")),
        replace(target, name="x_1"),
        MemberColumns(),
    )
    plan = plan_comparison(target, [shard])
    comparer = compare_digests.DigestComparer(spark, plan, servers)
    read = partial(comparer.look, counts=True, tasks=2)
    assert read() == (3, 3)
    assert comparer.decide(1) == compare_digests.Decided(0, 0, 0, left=4)
    merging.do("INSERT INTO x_1 VALUES (1)")
    merging.on(merging.target, "INSERT INTO x VALUES (1)")
    # Still a 1 is missing, but it may be another one.
    assert read() == (4, 4)
    assert comparer.decide(2) == compare_digests.Decided(0, 0, 0, left=4)
    comparer.look(counts=False, tasks=1)
    assert not comparer.decide(1).some
    merging.do("INSERT INTO x_1 VALUES (8)")
    read()
    assert comparer.decide(2).left == 4
    merging.do("INSERT INTO x_1 VALUES (1)")
    read()
    assert comparer.decide(2) == compare_digests.Decided(1, 2, 0, left=2)
    found = {difference.kind: difference for difference in comparer.differences()}
    assert (found["extra"].times, found["extra"].seen) == (2, 2)
    merging.on(merging.target, "INSERT INTO x VALUES (7)")
    scope = RepairScope("`nowhere`.`nothing`")
    assert repair_now(plan, list(found.values()), servers, scope).rows == 1
    rows = merging.on(merging.target, "SELECT v FROM x ORDER BY v")
    assert [v for (v,) in rows] == [1, 1, 5, 7, 7, 7]


def number_of(connection: pymysql.connections.Connection[Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        return int(cursor.fetchall()[0][0])


@contextmanager
def busy(server: DatabaseServer, sessions: int) -> Iterator[Callable[[], None]]:
    """Sessions that run a statement until they are told to end."""
    connections = [server.connect() for _ in range(sessions)]
    numbers = [number_of(connection) for connection in connections]

    def wait(number: int) -> None:
        with suppress(pymysql.err.MySQLError), connections[number].cursor() as cursor:
            cursor.execute("SELECT SLEEP(600)")

    threads = [threading.Thread(target=wait, args=(n,), daemon=True) for n in range(sessions)]
    for thread in threads:
        thread.start()

    def end() -> None:
        for number in numbers:
            server.execute(f"KILL {number}")
        for thread in threads:
            thread.join()

    yield end
    for connection in connections:
        with suppress(pymysql.err.MySQLError):
            connection.close()


async def test_it_pauses_while_a_source_is_busy(
    estate: Estate, mariadb_source: DatabaseServer
) -> None:
    task = config.Task.model_validate(estate.task())
    address = address_of(task.sources[0].connection)
    told: list[str] = []

    def running() -> int:
        return int(mariadb_source.execute("SHOW GLOBAL STATUS LIKE 'Threads_running'")[0][1])

    most = running() + 2
    with busy(mariadb_source, 6) as end:

        def tell(why: str) -> None:
            if why and not told:
                # The event that lets it go on.
                threading.Thread(target=end).start()
            told.append(why)

        with anyio.fail_after(60):
            while running() <= most:
                await anyio.sleep(0.05)
            gate = LoadGate((LoadLimit("Threads_running", most),), {"source a": address}, tell, 99)
            # It leaves room for other clients.
            assert 1 <= await gate.wait() < most
            gate.close()
    assert told[0].startswith("paused: source a has Threads_running=")
    assert told[-1] == ""


def test_limits_are_read_as_they_are_given() -> None:
    assert load_limits(["Threads_running=25, Threads_connected=300"]) == (
        LoadLimit("Threads_running", 25),
        LoadLimit("Threads_connected", 300),
    )
    assert load_limits([""]) == ()
    for wrong in ("Threads_running", "Threads_running=many", "a b=3"):
        with pytest.raises(ValueError, match="is no limit"):
            load_limits([wrong])


BETWEEN = 0.1
"""Seconds between two rounds of a client: there are several to each look."""


class Writer:
    """A client that changes rows until it is told to end."""

    def __init__(self, merging: Merging, *statements: str) -> None:
        self._merging = merging
        self._statements = statements
        self.ended = False

    def write(self) -> None:
        while not self.ended:
            self._merging.do(*self._statements)
            time.sleep(BETWEEN)


@contextmanager
def writing(writer: Writer) -> Iterator[None]:
    thread = threading.Thread(target=writer.write)
    thread.start()
    try:
        yield
    finally:
        writer.ended = True
        thread.join()


async def test_a_value_that_flips_where_no_key_makes_ranges_is_right(
    estate: Estate, spark: SparkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target is a little behind at each look, and right at each."""
    estate.shard("a", "t1", "k INT PRIMARY KEY, flag INT", "(1,0),(2,0)")
    estate.into("c VARCHAR(9), k INT, flag INT, PRIMARY KEY (c, k)")
    there = f"{estate.db}_all.t"
    estate.target.execute(f"INSERT INTO {there} VALUES ('1',1,1),('1',2,0)")
    looks = 0

    async def applied(*_: object) -> tuple[bool, HeldShards]:
        nonlocal looks
        looks += 1
        shard = f"UPDATE {estate.db}.t1 SET flag={looks // 2} WHERE k=1"
        estate.sources["a"].execute(f"CREATE TABLE {estate.db}.other{looks} (i INT)", shard)
        estate.target.execute(f"UPDATE {there} SET flag={1 - looks // 2} WHERE k=1")
        return True, NOTHING_HELD

    monkeypatch.setattr(TaskProgress, "applied", applied)
    route = {"schema-pattern": estate.db, "target-schema": f"{estate.db}_all"}
    extract = {"table-regexp": "t(.*)", "target-column": "c"}
    merge = {**route, "table-pattern": "t*", "target-table": "t", "extract-table": extract}
    task = config.Task.model_validate(estate.task(routes={"merge": merge, "schema": route}))
    result, *_ = [r for r in await compared(task, spark, CompareOptions()) if r.rows]
    assert (result.differing, result.unsettled, result.failure) == (0, 0, "")
    assert looks >= 2


async def test_a_wrong_row_that_changes_all_the_time_is_found(
    merging_from: MergingFrom, spark: SparkContext, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("x", X)
    merging.do("INSERT INTO x_1 VALUES (1,0,'right'),(2,0,'right'),(3,0,'right')")
    merging.mode, merging.show_values = "all", True
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.on(
            merging.target,
            "CREATE TRIGGER spoil BEFORE INSERT ON x FOR EACH ROW"
            " SET NEW.s = IF(NEW.id = 1, 'wrong', NEW.s)",
        )
        update = "UPDATE x_1 SET v=v+1 WHERE id IN (1,2)"
        with writing(Writer(merging, update, update)):
            options = CompareOptions(repair=None)
            (result,) = await compared(merging.task, spark, options)
        assert (result.different, result.missing, result.extra) == (1, 0, 0), result
        (example,) = result.examples
        assert example.key == "1"
        merging.on(merging.target, "DROP TRIGGER spoil")


async def test_rows_are_made_right_while_the_task_writes(
    merging_from: MergingFrom, spark: SparkContext, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("x", X, shards=2)
    for number in (1, 2):
        rows = ",".join(f"({1000 * number + n}, 0, 'old')" for n in range(300))
        merging.do(f"INSERT INTO x_{number} VALUES {rows}")
    merging.mode = "all"
    async with merging.running() as generation:
        await merging.copied(generation)
        statements: list[str] = [
            "UPDATE x_1 SET v=v+1 WHERE id BETWEEN 1000 AND 1020",
            "DELETE FROM x_1 WHERE id=1100",
            "INSERT INTO x_1 VALUES (1100, 1, 'again')",
        ]
        with writing(Writer(merging, *statements)):
            merging.on(
                merging.target,
                "DELETE FROM x WHERE id IN (1010, 1200, 2005)",
                "UPDATE x SET s='spoiled' WHERE id IN (2006, 1250)",
                "INSERT INTO x VALUES (9999, 1, 'nobody'), (9998, 1, 'nobody')",
            )
            (result,) = await compared(merging.task, spark, CompareOptions(repair_now=True))
            # The task itself puts rows back that it writes.
            assert result.missing + result.different + result.extra >= 6, result
            assert result.repaired >= 6
            assert not result.failure
        await merging.caught_up(generation)
        assert not merging.differences()
        (result,) = await compared(merging.task, spark, CompareOptions())
        assert (result.differing, result.unsettled) == (0, 0), result


async def test_a_repair_waits_for_those_who_write(
    merging_from: MergingFrom, spark: SparkContext, mariadb_source: DatabaseServer
) -> None:
    """A transaction that holds a bucket's watermark, as a batch does, keeps the repair out."""
    merging = merging_from(mariadb_source)
    merging.create("x", X)
    merging.do("INSERT INTO x_1 VALUES (1,0,'a')")
    merging.mode = "all"
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("INSERT INTO x_1 VALUES (2,0,'a')")
        await merging.caught_up(generation)
    meta = f"`{merging.task.meta_schema}`.`{merging.task.name}_watermark`"
    merging.on(merging.target, "DELETE FROM x WHERE id=1")
    order: list[str] = []
    with merging.target.connect() as writer, writer.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"SELECT * FROM {meta} FOR UPDATE")
        assert cursor.fetchall()

        async def compare() -> None:
            (result,) = await compared(merging.task, spark, CompareOptions(repair_now=True))
            order.append(f"repaired {result.repaired}")

        async with anyio.create_task_group() as group:
            group.start_soon(compare)
            waits: Any = ()
            with anyio.fail_after(60):
                while not waits:
                    waits = merging.target.execute(
                        "SELECT 1 FROM information_schema.INNODB_TRX WHERE trx_state='LOCK WAIT'"
                    )
                    await anyio.sleep(0.1)
            assert not merging.on(merging.target, "SELECT id FROM x WHERE id=1")
            order.append("committed")
            writer.commit()
    assert order == ["committed", "repaired 1"]
    assert merging.on(merging.target, "SELECT id FROM x WHERE id=1")
