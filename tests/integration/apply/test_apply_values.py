"""Values that are applied: none is changed, and what does not fit is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark import SparkContext

from replicator.pipeline.apply.batch import WriteOutcome
from replicator.pipeline.plans.planning import PlanError
from replicator.sandbox.server import DatabaseServer
from replicator.watermark import NOTHING_APPLIED
from tests.conftest import StartServer
from tests.support.servers.mysql56 import MySQL56Server
from tests.support.streams.applying import Merge

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
    version, transaction, ordinal = NOTHING_APPLIED
    merge.target.execute(
        f"DELETE FROM {merge.name}.t",
        f"UPDATE {merge.settings.watermark_table} SET version = {version},"
        f" transaction_key = {transaction}, ordinal = {ordinal}",
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
    assert {failure.outcome for failure in failures} == {WriteOutcome.REFUSED}
    assert all(failure.code and "v" in failure.message for failure in failures)
    assert {failure.members for failure in failures} == {(f"{merge.name}_a: {merge.name}_a.t",)}
    assert {failure.positions[0].event for failure in failures} == {*merge.row_events}
    assert {failure.key for failure in failures} == {("id",)}
    assert all(value not in failure.message for failure in failures)
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
    spark: SparkContext,
    mariadb_source: DatabaseServer,
    start_server: StartServer,
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
