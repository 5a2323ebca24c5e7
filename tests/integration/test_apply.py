"""Row events of a real server, applied through Spark to a real target."""

from __future__ import annotations

import asyncio
import os
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.binlog.events import ROW_EVENTS, EventType
from replicator.binlog.position import BinlogPosition
from replicator.binlog.table_map import TableMap, parse_table_map
from replicator.downstream.load_data import probe_load_data
from replicator.downstream.session import Session
from replicator.downstream.watermarks import (
    LOW_WATERMARK_BUCKET,
    WATERMARK_TABLE,
)
from replicator.mysql.connection import Connection, DatabaseAddress
from replicator.mysql.names import TableName
from replicator.pipeline import apply as apply_module
from replicator.pipeline.apply import apply_batch
from replicator.pipeline.batch import ApplySettings, Batch, BatchResult, Outcome
from replicator.pipeline.plan import TablePlan
from replicator.pipeline.planning import PlanError, plan_table
from replicator.sandbox.mysql56 import MySQL56Server
from replicator.sandbox.server import DatabaseServer
from replicator.sandbox.tidb import TiDBServer
from replicator.schema.inspection import read_table, read_target
from replicator.schema.structure import Table

BUCKETS = 4


ReadTable = Callable[[Connection, TableName], Awaitable[Table | None]]


def address_of(server: DatabaseServer) -> DatabaseAddress:
    return DatabaseAddress(server.host, server.port, server.user, server.password)


def structure(
    server: DatabaseServer, schema: str, table: str, read: ReadTable = read_table
) -> Table:
    async def found_there() -> Table | None:
        connection = Connection(address_of(server))
        try:
            return await read(connection, TableName(schema, table))
        finally:
            connection.close()

    found = asyncio.run(found_there())
    assert found is not None
    return found


def takes_load_data(server: DatabaseServer, schema: str) -> bool:
    session = Session(address_of(server))
    try:
        return probe_load_data(session, schema)
    finally:
        session.close()


class Merge:
    """Shards on one server (schemas a, b, … are its sources), one target ``t`` on another."""

    def __init__(
        self, spark: SparkSession, source: DatabaseServer, target: DatabaseServer, name: str
    ) -> None:
        self.spark = spark
        self.source = source
        self.target = target
        self.name = name
        target.execute(f"CREATE DATABASE {name}", f"CREATE DATABASE {name}_meta")
        self.settings = ApplySettings(
            address_of(target),
            WATERMARK_TABLE.qualified(f"{name}_meta", "task"),
            load_data=takes_load_data(target, f"{name}_meta"),
            patience=20,
        )
        target.execute(WATERMARK_TABLE.create_sql(f"{name}_meta", "task"))

    def create(self, columns: str, shards: str = "ab", target: str | None = None) -> None:
        for shard in shards:
            schema = f"{self.name}_{shard}"
            self.source.execute(
                f"CREATE DATABASE IF NOT EXISTS {schema}", f"CREATE TABLE {schema}.t ({columns})"
            )
        self.target.execute(f"CREATE TABLE {self.name}.t ({target or columns})")

    def record(self, *statements: str) -> Batch:
        """Run statements on the source, ``a.t`` being shard a's table; the rows they log."""
        file, start = self.source.execute("SHOW MASTER STATUS")[0][:2]
        for shard in "abc":
            statements = tuple(
                s.replace(f" {shard}.t", f" {self.name}_{shard}.t") for s in statements
            )
        mode = "SET sql_mode='ALLOW_INVALID_DATES'"
        self.source.execute(mode, *statements, database=f"{self.name}_a")
        data = Path(self.source.folder, "data", file).read_bytes()
        return self._batch(file, start, data)

    def _batch(self, file: str, at: int, data: bytes) -> Batch:
        plans: dict[TableMap, tuple[int, TablePlan]] = {}
        batch = Batch((), (f"{self.name}_a", f"{self.name}_b", f"{self.name}_c"))
        maps: dict[bytes, TableMap] = {}
        transaction = ordinal = 0
        while at < len(data):
            size = int.from_bytes(data[at + 9 : at + 13], "little")
            kind, event = data[at + 4], data[at : at + size - 4]
            if kind == EventType.MARIADB_GTID:
                transaction, ordinal = BinlogPosition(file, at).key, 0
            elif kind == EventType.TABLE_MAP:
                maps[event[19:25]] = parse_table_map(event[19:])
            elif kind in ROW_EVENTS:
                ordinal += 1
                table_map = maps[event[19:25]]
                if table_map not in plans:
                    plans[table_map] = (len(plans), self.plan(table_map))
                batch.plan.append(plans[table_map][0])
                batch.source.append(batch.sources.index(table_map.schema))
                batch.version.append(0)
                batch.transaction.append(transaction)
                batch.ordinal.append(ordinal)
                batch.event.append(event)
            at += size
        batch.plans = tuple(plan for _, plan in plans.values())
        return batch

    def plan(self, table_map: TableMap) -> TablePlan:
        return plan_table(
            f"{table_map.schema}: {table_map.schema}.{table_map.table}",
            structure(self.source, table_map.schema, table_map.table),
            table_map,
            structure(self.target, self.name, "t", read=read_target),
            7,
            BUCKETS,
        )

    def apply(self, batch: Batch, **settings: Any) -> BatchResult:
        return apply_batch(self.spark, batch, replace(self.settings, **settings))

    def done(self, *statements: str, **settings: Any) -> BatchResult:
        result = self.apply(self.record(*statements), **settings)
        assert result.failures == ()
        return result

    def shards(self, shards: str = "ab") -> list[tuple[Any, ...]]:
        return sorted(
            (
                row
                for shard in shards
                for row in self.source.execute(f"SELECT * FROM {self.name}_{shard}.t")
            ),
            key=repr,
        )

    def rows(self) -> list[tuple[Any, ...]]:
        return sorted(self.target.execute(f"SELECT * FROM {self.name}.t"), key=repr)


@pytest.fixture
def merge(
    spark: SparkSession,
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
) -> Merge:
    return Merge(spark, mariadb_source, target_server, database_name)


@pytest.fixture(params=["fused", "shuffled"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "shuffled":
        monkeypatch.setattr(apply_module, "SMALL_EVENTS", 0)
    return str(request.param)


@pytest.mark.usefixtures("path")
def test_inserts_updates_deletes_and_key_changes(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY, v VARCHAR(20)")
    result = merge.done(
        "INSERT INTO a.t VALUES (1,'one'),(2,'two'),(3,'it''s')",
        "INSERT INTO b.t SELECT seq, CONCAT('b', seq) FROM seq_100_to_399",
    )
    assert result.total("inserted") == 303
    assert merge.rows() == merge.shards()
    result = merge.done(
        "UPDATE a.t SET v = CONCAT(v, '!') WHERE id < 3",
        "UPDATE a.t SET id = 30 WHERE id = 3",
        "DELETE FROM b.t WHERE id > 200",
        "UPDATE b.t SET id = id + 1000, v = 'moved'",
        "INSERT INTO a.t VALUES (100, 'taken over')",
    )
    assert merge.rows() == merge.shards()
    assert result.total("missing") == 0
    assert result.total("deleted") == 301 - 1  # key 100 is overwritten by shard a's row


def test_applying_a_batch_again_changes_nothing(merge: Merge) -> None:
    merge.create("v INT, w INT")
    batch = merge.record(
        "INSERT INTO a.t VALUES (1,1),(1,1),(2,NULL)",
        "INSERT INTO b.t VALUES (1,1)",
        "DELETE FROM a.t WHERE v = 1 LIMIT 1",
    )
    assert merge.apply(batch).total("inserted") == 3
    again = merge.apply(batch)
    assert again.total("inserted") == again.total("deleted") == 0
    assert again.total("skipped") == 5
    assert merge.rows() == merge.shards()


@pytest.mark.not_on_tidb("it has no POINT, UUID and INET6")
@pytest.mark.usefixtures("path")
def test_rows_without_a_key_are_counted(merge: Merge) -> None:
    columns = (
        "i INT, f FLOAT, d DOUBLE, n DECIMAL(10,3), b BIT(10), s VARCHAR(20), y YEAR,"
        " ts TIMESTAMP(3) NULL, x VARBINARY(10), e ENUM('a','b'), g POINT, u UUID, p INET6, j JSON"
    )
    row = (
        "1, 0.1, 0.1, -1.5, 5, 'A\\\\\\'\\t', 2020, '2020-01-01 00:00:00.123', x'00ff0a', 'b',"
        " POINT(1,2), UUID(), '2001:db8::123:45', '{\"a\": \"\\\\\\\\\"}'"
    )
    merge.create(columns)
    merge.done(
        f"INSERT INTO a.t VALUES ({row}), ({row})",
        f"INSERT INTO b.t VALUES ({row})",
        "INSERT INTO a.t (i, s) VALUES (2, 'a'), (2, 'A'), (2, 'a'), (NULL, NULL), (NULL, NULL)",
    )
    assert merge.rows() == merge.shards()
    result = merge.done(
        "DELETE FROM a.t WHERE s = BINARY 'a' LIMIT 1",
        "DELETE FROM a.t WHERE i IS NULL LIMIT 1",
        "UPDATE a.t SET i = 3 WHERE i = 1 LIMIT 1",
        "DELETE FROM b.t",
    )
    assert result.total("missing") == 0
    assert merge.rows() == merge.shards()


@pytest.mark.parametrize("load_data", [True, False])
def test_unique_values_swap_between_rows(merge: Merge, load_data: bool) -> None:
    merge.create("id INT PRIMARY KEY, u INT UNIQUE, v INT")
    rows = "SELECT seq, seq, 0 FROM seq_1_to_200"
    merge.done(f"INSERT INTO a.t {rows}", load_data=load_data)
    result = merge.done(
        "UPDATE a.t SET u = -u",
        "UPDATE a.t SET u = 201 + u",
        "INSERT INTO b.t VALUES (300, NULL, 1), (301, NULL, 1)",
        load_data=load_data,
    )
    assert result.total("missing") == 0
    assert merge.rows() == merge.shards()


def test_only_a_nullable_unique_key(merge: Merge) -> None:
    merge.create("u INT UNIQUE, v INT")
    merge.done("INSERT INTO a.t VALUES (1,1),(2,2),(NULL,3),(NULL,3)")
    merge.done("UPDATE a.t SET u = 10 WHERE u = 1", "UPDATE a.t SET u = 1 WHERE u = 2")
    merge.done("DELETE FROM a.t WHERE u IS NULL LIMIT 1", "INSERT INTO b.t VALUES (NULL, 3)")
    assert merge.rows() == merge.shards()


@pytest.mark.usefixtures("path")
def test_composite_keys_of_many_types(merge: Merge) -> None:
    merge.create(
        "a BINARY(4), b VARCHAR(10) CHARACTER SET latin1, c DATETIME(2), d DECIMAL(6,2), e INT,"
        " PRIMARY KEY (a, b, c, d)"
    )
    merge.done(
        "INSERT INTO a.t VALUES (x'61000000', 'é\\'', '2020-01-01 00:00:00.5', -1.25, 1),"
        " (x'61', 'e', '0000-00-00', 0, 2), (x'62', '', '2020-02-31', 9999.99, 3)",
        "INSERT INTO b.t VALUES (x'61000001', 'é\\'', '2020-01-01 00:00:00.5', -1.25, 1)",
    )
    assert merge.rows() == merge.shards()
    result = merge.done(
        "UPDATE a.t SET e = e + 1",
        "DELETE FROM a.t WHERE d < 0",
        "UPDATE a.t SET b = UPPER(b), e = 9",
        "UPDATE b.t SET a = x'00'",
    )
    assert result.total("missing") == 0
    assert merge.rows() == merge.shards()


@pytest.mark.usefixtures("path")
def test_two_shards_with_one_key_are_a_duplicate_and_nothing_is_written(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY, v INT")
    both = merge.record("INSERT INTO a.t VALUES (5, 1)", "INSERT INTO b.t VALUES (5, 2)")
    (failure,) = merge.apply(both).failures
    assert failure.outcome is Outcome.DUPLICATE
    assert [m.partition(":")[0][-2:] for m in failure.members] == ["_a", "_b"]
    assert failure.row == "5"
    assert merge.rows() == []


@pytest.mark.parametrize("rows", ["VALUES (5, 2)", "SELECT seq, 2 FROM seq_1_to_300"])
def test_a_key_that_the_target_has_from_elsewhere_is_a_duplicate(merge: Merge, rows: str) -> None:
    merge.create("id VARCHAR(10) PRIMARY KEY, v INT")
    merge.done("INSERT INTO a.t VALUES (5, 1)")
    (failure,) = merge.apply(merge.record(f"INSERT INTO b.t {rows}")).failures
    assert failure.outcome is Outcome.DUPLICATE
    # TiDB and MySQL 8 name the table before the key.
    assert re.search(r"'5' for key '(t\.)?PRIMARY'", failure.message)
    assert failure.members == (f"{merge.name}_b: {merge.name}_b.t",)
    assert merge.rows() == merge.shards("a")
    assert merge.target.execute(
        f"SELECT COUNT(*) FROM {merge.settings.watermark_table} WHERE source LIKE '%_b'"
    ) == ((0,),)


def test_a_row_that_moves_between_shards(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY, v INT")
    merge.done("INSERT INTO a.t VALUES (1, 1)")
    merge.done("INSERT INTO b.t VALUES (1, 2)", "DELETE FROM a.t")
    assert merge.rows() == merge.shards()


def part_of(batch: Batch, events: list[int]) -> Batch:
    lists = ("plan", "source", "version", "transaction", "ordinal", "event")
    return replace(batch, **{name: [getattr(batch, name)[i] for i in events] for name in lists})


def test_replay_after_some_buckets_were_committed(merge: Merge) -> None:
    merge.create("id INT, v INT")
    batch = merge.record(
        *(f"INSERT INTO a.t VALUES ({n % 7}, 1)" for n in range(40)),
        "DELETE FROM a.t WHERE id = 3 LIMIT 2",
        "UPDATE a.t SET v = 2 WHERE id = 4 LIMIT 3",
    )
    # The buckets of these events go ahead of the others.
    first = part_of(batch, list(range(25)))
    merge.apply(first)
    merge.apply(batch)
    merge.apply(batch)
    assert merge.rows() == merge.shards()
    # One bucket has everything, the others nothing.
    merge.target.execute(
        f"UPDATE {merge.settings.watermark_table} SET version=0, transaction_key=0, ordinal=0"
        " WHERE bucket <> 0"
    )
    before = merge.rows()
    again = merge.apply(batch)
    assert again.total("skipped") > 0
    assert len(merge.rows()) > len(before), "the buckets without a watermark do their rows again"


def test_two_writers_of_the_same_batch_at_a_time(merge: Merge) -> None:
    merge.create("id INT, v INT")
    batch = merge.record(
        *(f"INSERT INTO a.t SELECT seq % 5, {n} FROM seq_1_to_50" for n in range(20)),
        "DELETE FROM a.t WHERE id = 3",
    )
    with ThreadPoolExecutor() as pool:
        results = list(pool.map(merge.apply, [batch] * 3))
    assert [result.failures for result in results] == [()] * 3
    assert sum(result.total("inserted") for result in results) == 800
    assert merge.rows() == merge.shards()


def test_the_low_watermark_counts_for_every_bucket(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY")
    batch = merge.record("INSERT INTO a.t VALUES (1)", "INSERT INTO a.t VALUES (2)")
    merge.target.execute(
        f"INSERT INTO {merge.settings.watermark_table} VALUES"
        f" ('{merge.name}_a', '{merge.name}.t', {LOW_WATERMARK_BUCKET}, 0,"
        f" {batch.transaction[0]}, 1)"
    )
    assert merge.apply(batch).total("skipped") == 1
    assert merge.rows() == [(2,)]


def test_rows_that_were_not_there_are_counted(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY, v INT")
    merge.done("INSERT INTO a.t SELECT seq, 1 FROM seq_1_to_100")
    merge.target.execute(f"DELETE FROM {merge.name}.t WHERE id <= 10")
    result = merge.done("UPDATE a.t SET v = 2 WHERE id <= 5", "DELETE FROM a.t WHERE id = 10")
    assert result.total("missing") == 6
    result = merge.done("UPDATE a.t SET v = 3 WHERE id BETWEEN 6 AND 100")
    assert result.total("missing") == 4


def test_rows_that_stay_as_they_are_on_the_target_are_not_missing(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY, v INT")
    merge.done("INSERT INTO a.t SELECT seq, 1 FROM seq_1_to_100")
    merge.target.execute(f"UPDATE {merge.name}.t SET v = 2")
    few = merge.done("UPDATE a.t SET v = 2 WHERE id <= 5")
    many = merge.done("UPDATE a.t SET v = 2 WHERE id > 5")
    assert (few.total("overwritten"), few.total("missing")) == (5, 0)
    assert (many.total("overwritten"), many.total("missing")) == (95, 0)
    assert merge.rows() == merge.shards("a")


def test_safe_mode_bears_rows_that_are_there_or_not(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY, u INT UNIQUE, v INT")
    batch = merge.record(
        "INSERT INTO a.t VALUES (1, 1, 0), (2, 2, 0), (3, 3, 0)",
        "UPDATE a.t SET u = 20 WHERE id = 2",
        "UPDATE a.t SET u = 2 WHERE id = 1",
        "DELETE FROM a.t WHERE id = 3",
    )
    merge.target.execute(f"INSERT INTO {merge.name}.t VALUES (1, 2, 9), (2, 20, 0)")
    result = merge.apply(batch, safe_until=dict.fromkeys(batch.sources, 1 << 62))
    assert result.failures == ()
    assert result.total("missing") == 0
    assert merge.rows() == merge.shards("a")


TYPES = (
    "id INT PRIMARY KEY, s VARCHAR(30), w VARCHAR(9) CHARACTER SET utf16, b VARBINARY(20),"
    " t BIT(12), n DECIMAL(20,5), f FLOAT, d DOUBLE, dt DATETIME(6), e ENUM('x','y'),"
    " z SET('p','q'), u UUID, p INET6, j JSON, g POINT"
)
VALUES = (
    "'tab\\t nl\\n bs\\\\ q\\' \\0 é', 'wé\\'', x'00095c0a275c4e', 2741, -12.5, 0.1, 1e-300,"
    " '2020-02-31 01:02:03.000004', 'y', 'p,q', UUID(), '2001:db8::123:45', '[\"\\\\\\\\N\"]',"
    " POINT(1,2)"
)


@pytest.mark.not_on_tidb("rows are not loaded there")
@pytest.mark.parametrize("rows", [1, 200])
def test_statements_and_loads_write_the_same(merge: Merge, rows: int) -> None:
    merge.create(TYPES)
    batch = merge.record(
        f"INSERT INTO a.t SELECT seq, {VALUES} FROM seq_1_to_{rows}",
        "INSERT INTO a.t (id, s) VALUES (-1, '\\\\N')",
    )
    merge.apply(batch, load_data=True)
    loaded = merge.rows()
    merge.target.execute(
        f"DELETE FROM {merge.name}.t", f"DELETE FROM {merge.settings.watermark_table}"
    )
    merge.apply(batch, load_data=False)
    assert loaded == merge.rows() == merge.shards("a")


@pytest.mark.parametrize("rows", [1, 200])
def test_the_empty_value_of_an_enum_arrives(merge: Merge, rows: int) -> None:
    merge.create("id INT PRIMARY KEY, e ENUM('x','y')")
    merge.done(
        f"INSERT INTO a.t SELECT seq, 'x' FROM seq_1_to_{rows}", "INSERT INTO a.t VALUES (0, 0)"
    )
    assert merge.rows() == merge.shards("a")
    assert (0, "") in merge.rows()


@pytest.mark.parametrize("rows", [1, 200])
@pytest.mark.parametrize(
    ("source", "target", "value"),
    [
        ("VARCHAR(20)", "VARCHAR(5)", "'longer than five'"),
        ("DECIMAL(9,3)", "DECIMAL(9,1)", "1.239"),
        ("INT", "TINYINT", "1000"),
        ("INT", "INT NOT NULL", "NULL"),
    ],
)
def test_no_value_is_changed_in_silence(
    merge: Merge, source: str, target: str, value: str, rows: int
) -> None:
    merge.create(f"id INT PRIMARY KEY, v {source}", "a", target=f"id INT PRIMARY KEY, v {target}")
    batch = merge.record(f"INSERT INTO a.t SELECT seq, {value} FROM seq_1_to_{rows}")
    failures = merge.apply(batch).failures
    assert {failure.outcome for failure in failures} == {Outcome.REFUSED}
    assert all(failure.code and "v" in failure.message for failure in failures)
    assert merge.rows() == []


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("DATETIME(3)", "DATETIME"),
        ("DATETIME", "DATE"),
        ("DOUBLE", "FLOAT"),
        ("BINARY(2)", "BINARY(3)"),
        ("BIT", "INT"),
        ("TEXT", "CHAR(9)"),
    ],
)
def test_types_that_lose_values_without_a_warning_are_refused(
    merge: Merge, source: str, target: str
) -> None:
    merge.create(f"v {source}", "a", target=f"v {target}")
    with pytest.raises(PlanError, match="column v is"):
        merge.record("INSERT INTO a.t VALUES (1)")


def test_charsets_are_converted(merge: Merge) -> None:
    merge.create(
        "id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET latin1, e ENUM('é') CHARACTER SET latin1",
        "a",
        target="id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET utf8mb4, e ENUM('é')",
    )
    merge.done("INSERT INTO a.t VALUES (1, 'né', 'é')")
    assert merge.rows() == merge.shards("a") == [(1, "né", "é")]


def test_columns_that_only_the_target_has_keep_their_values(merge: Merge) -> None:
    merge.create(
        "id INT PRIMARY KEY, v INT", "a", target="x INT DEFAULT 5, v INT, id INT PRIMARY KEY"
    )
    merge.done("INSERT INTO a.t VALUES (1, 1)")
    merge.target.execute(f"UPDATE {merge.name}.t SET x = 6")
    merge.done("UPDATE a.t SET v = 2")
    assert merge.rows() == [(6, 2, 1)]


def test_an_unreadable_event_keeps_its_target_as_it_was(merge: Merge, path: str) -> None:
    merge.create("id INT PRIMARY KEY, v VARCHAR(20)")
    batch = merge.record("INSERT INTO a.t VALUES (1, 'x')", "INSERT INTO a.t VALUES (2, 'yy')")
    batch.event[1] = batch.event[1][:-2]
    (failure,) = merge.apply(batch).failures
    assert failure.outcome is Outcome.UNDECODABLE
    assert f"{merge.name}_a.t" in failure.message
    assert merge.rows() == []
    assert merge.target.execute(f"SELECT COUNT(*) FROM {merge.settings.watermark_table}") == ((0,),)


def test_a_lost_connection_is_opened_again(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY")
    merge.done("INSERT INTO a.t VALUES (1)")
    merge.target.restart()
    merge.done("INSERT INTO a.t VALUES (2)")
    assert merge.rows() == merge.shards("a")


def test_a_target_that_stays_away_is_an_outcome(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY")
    batch = merge.record("INSERT INTO a.t VALUES (1)")
    merge.target.stop()
    try:
        (failure,) = merge.apply(batch, patience=0.1).failures
    finally:
        merge.target.start()
    assert failure.outcome is Outcome.UNREACHABLE
    merge.apply(batch)
    assert merge.rows() == [(1,)]


@pytest.mark.also_tidb
def test_the_probe_finds_whether_load_data_is_transactional(target_server: DatabaseServer) -> None:
    session = Session(address_of(target_server))
    try:
        # TiDB has committed the rows by the end of the statement.
        assert probe_load_data(session, "mysql") is not isinstance(target_server, TiDBServer)
        assert session.rows(b"SHOW TABLES IN mysql LIKE 'replicator%'") == ()
    finally:
        session.close()


@pytest.mark.slow
@pytest.mark.parametrize("point", ["rows-written", "watermarks-written:2", "bucket-committed"])
def test_a_driver_killed_by_a_crash_point_in_an_executor(
    merge: Merge, point: str, tmp_path: Path
) -> None:
    merge.create("id INT, v INT")
    batch = merge.record(
        *(f"INSERT INTO a.t VALUES ({n % 9}, 1), ({n}, 2)" for n in range(30)),
        "DELETE FROM a.t WHERE id = 3 LIMIT 2",
        "INSERT INTO b.t SELECT * FROM a.t",
    )
    work = tmp_path / "work"
    work.write_bytes(pickle.dumps((batch, merge.settings)))
    program = (
        "import pickle, sys\n"
        "from replicator.pipeline.apply import apply_batch\n"
        "from replicator.pipeline.session import spark_session\n"
        "batch, settings = pickle.load(open(sys.argv[1], 'rb'))\n"
        "apply_batch(spark_session('local[1]', {}, 'crash'), batch, settings)\n"
    )
    root = Path(__file__).parents[2]
    process = subprocess.run(
        [sys.executable, "-c", program, str(work)],
        env={**os.environ, "REPLICATOR_CRASH_AT": point, "PYTHONPATH": str(root)},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()
    merge.apply(batch)
    assert merge.rows() == merge.shards()


@pytest.mark.not_on_tidb("a row is one statement there, which must fit into a packet")
def test_rows_larger_than_a_packet_arrive(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY, b LONGBLOB", "a")
    merge.target.execute("SET GLOBAL max_allowed_packet = 1048576")
    # A setting of its own makes a connection of its own, with the new limit.
    address = replace(merge.settings.address, session=(("wait_timeout", "1000"),))
    try:
        merge.done("INSERT INTO a.t VALUES (1, REPEAT(x'005c0a09', 1000000))", address=address)
        merge.done("UPDATE a.t SET b = REPEAT(x'ff', 3000000)", address=address)
    finally:
        merge.target.execute("SET GLOBAL max_allowed_packet = 67108864")
    assert merge.shards("a") == [(1, b"\xff" * 3000000)]
    assert merge.target.execute(f"SELECT id, MD5(b) FROM {merge.name}.t") == merge.source.execute(
        f"SELECT id, MD5(b) FROM {merge.name}_a.t"
    )


def test_a_limit_that_is_raised_counts_for_the_next_attempt(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY, b BLOB", "a")
    batch = merge.record("INSERT INTO a.t VALUES (1, REPEAT('x', 50000))")
    # A setting of its own makes connections of its own, with the new limit.
    address = replace(merge.settings.address, session=(("wait_timeout", "1001"),))
    merge.target.execute("SET GLOBAL max_allowed_packet = 32768")
    try:
        for _ in range(4):  # more often than there are workers
            (failure,) = merge.apply(batch, address=address, load_data=False).failures
            assert "max_allowed_packet" in failure.message
    finally:
        merge.target.execute("SET GLOBAL max_allowed_packet = 67108864")
    assert merge.apply(batch, address=address, load_data=False).failures == ()
    assert merge.rows() == merge.shards("a")


def test_a_mysql_5_6_target(
    spark: SparkSession,
    mariadb_source: DatabaseServer,
    start_server: Callable[..., DatabaseServer],
    database_name: str,
) -> None:
    merge = Merge(spark, mariadb_source, start_server(MySQL56Server), database_name)
    columns = (
        "id INT PRIMARY KEY, s VARCHAR(30), b BINARY(4), t BIT(12), n DECIMAL(20,5), f FLOAT,"
        " dt DATETIME(6), e ENUM('x','y'), g POINT"
    )
    merge.create(columns)
    values = (
        "'tab\\t q\\' \\0 é', x'61', 2741, -12.5, 0.1, '2020-02-31 01:02:03.000004', 'y',"
        " POINT(1,2)"
    )
    merge.done(
        f"INSERT INTO a.t SELECT seq, {values} FROM seq_1_to_100",
        f"INSERT INTO b.t VALUES (0, {values})",
    )
    assert merge.rows() == merge.shards()
    merge.done("UPDATE a.t SET s = id, id = id + 50 ORDER BY id DESC", "DELETE FROM b.t")
    assert merge.rows() == merge.shards()
