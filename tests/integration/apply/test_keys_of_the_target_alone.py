"""Unique keys that only the target has: a row that one of them refuses is a fault, and no other row
is removed or changed for it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark import SparkContext

from replicator.pipeline.apply.batch import WriteOutcome
from replicator.sandbox.server import DatabaseServer
from tests.support.streams.applying import Merge

ALWAYS = 1 << 62
SAFE = pytest.mark.parametrize("safe", [True, False], ids=["safe", "strict"])


@pytest.fixture(params=["mariadb_target", "mysql_source", "tidb_target"])
def merge(
    request: pytest.FixtureRequest,
    spark: SparkContext,
    mariadb_source: DatabaseServer,
    database_name: str,
) -> Merge:
    target: DatabaseServer = request.getfixturevalue(request.param)
    return Merge(spark, mariadb_source, target, database_name)


def applied(
    merge: Merge, statements: Sequence[str], *by_hand: str, safe: bool, load_data: bool = True
) -> list[WriteOutcome]:
    """Apply what statements log, after others that somebody executes on the target."""
    batch = merge.record(*statements)
    if by_hand:
        merge.target.execute(*by_hand, database=merge.name)
    until = dict.fromkeys(batch.plans.sources, ALWAYS if safe else 0)
    load_data = load_data and merge.settings.load_data
    result = merge.apply(batch, safe_until=until, load_data=load_data)
    return [failure.outcome for failure in result.failures]


_KNOWN = (WriteOutcome.DUPLICATE, WriteOutcome.CHANGED)
"""The server refuses a row, or the task finds afterwards that the target has another structure."""


def new_rows(count: int) -> str:
    return f"INSERT INTO b.t SELECT 1000 + seq, 300 - seq, 'y', 1 FROM seq_0_to_{count - 1}"


def changed_rows(count: int) -> str:
    return f"UPDATE a.t SET u = 301 - id, v = 1 WHERE id <= {count}"


@SAFE
def test_a_key_added_between_two_batches_removes_no_row(merge: Merge, safe: bool) -> None:
    merge.create("id INT PRIMARY KEY, u INT, s VARCHAR(20), v INT")
    merge.done("INSERT INTO a.t SELECT seq, seq, 'x', 0 FROM seq_1_to_300")
    before = merge.rows()
    for statement in (new_rows(1), new_rows(200), changed_rows(1), changed_rows(120)):
        for load_data in (True, False):
            case = statement, load_data
            add = "ALTER TABLE t ADD UNIQUE by_hand (u)"
            outcomes = applied(merge, [statement], add, safe=safe, load_data=load_data)
            assert (case, outcomes) in ((case, [found]) for found in _KNOWN)
            assert merge.rows() == before
            merge.target.execute("ALTER TABLE t DROP KEY by_hand", database=merge.name)
            merge.source.execute(
                f"DELETE FROM {merge.name}_b.t", f"UPDATE {merge.name}_a.t SET u = id, v = 0"
            )


@SAFE
def test_columns_of_the_target_stay_where_such_a_key_is_in_the_way(
    merge: Merge, safe: bool
) -> None:
    merge.create("id INT PRIMARY KEY, u INT", target="id INT PRIMARY KEY, u INT, own INT DEFAULT 5")
    merge.done("INSERT INTO a.t VALUES (1, 1), (2, 2), (3, 3)")
    merge.target.execute("UPDATE t SET own = id", database=merge.name)
    key = "ALTER TABLE t ADD UNIQUE by_hand (u)"
    assert applied(merge, ["UPDATE a.t SET u = 2 WHERE id = 1"], key, safe=safe) == [
        WriteOutcome.DUPLICATE
    ]
    assert applied(merge, ["INSERT INTO b.t VALUES (9, 3)"], safe=safe) == [WriteOutcome.DUPLICATE]
    merge.target.execute("ALTER TABLE t DROP KEY by_hand", database=merge.name)
    assert applied(merge, ["UPDATE a.t SET u = 7 WHERE id = 1"], safe=safe) == []
    assert merge.rows() == [(1, 7, 1), (2, 2, 2), (3, 3, 3)]


KEYS = [
    "u VARCHAR(30), UNIQUE (u)",
    "u VARCHAR(30), UNIQUE (u(3))",
    "u VARCHAR(30), g VARCHAR(30) GENERATED ALWAYS AS (LOWER(u)) STORED, UNIQUE (g)",
]


@pytest.mark.parametrize("key", KEYS, ids=["column", "prefix", "generated"])
def test_safe_mode_removes_rows_that_a_key_of_the_shard_says_are_old(
    merge: Merge, key: str
) -> None:
    merge.create(f"id INT PRIMARY KEY, v INT, {key}")
    batch = merge.record(
        "INSERT INTO a.t (id, v, u) VALUES (1, 0, 'abc'), (2, 0, 'bcd'), (3, 0, 'cde')",
        "UPDATE a.t SET u = 'xyz' WHERE id = 2",
        "UPDATE a.t SET u = 'bcd' WHERE id = 1",
    )
    merge.target.execute(
        "INSERT INTO t (id, v, u) VALUES (5, 9, 'bcd'), (6, 9, 'xyz'), (3, 9, 'cde')",
        "INSERT INTO t (id, v, u) VALUES (7, 9, 'stays')",
        database=merge.name,
    )
    result = merge.apply(batch, safe_until=dict.fromkeys(batch.plans.sources, ALWAYS))
    assert result.failures == ()
    found = merge.target.execute(f"SELECT id, v, u FROM {merge.name}.t ORDER BY id")
    assert list(found) == [(1, 0, "bcd"), (2, 0, "xyz"), (3, 0, "cde"), (7, 9, "stays")]


BIN, CI = "s VARCHAR(9) COLLATE utf8mb4_bin", "s VARCHAR(9) COLLATE utf8mb4_general_ci"


@pytest.mark.parametrize("merge", ["mariadb_target", "mysql_source"], indirect=True)
@pytest.mark.parametrize("key", ["PRIMARY KEY (s)", "PRIMARY KEY (id), UNIQUE (s)"])
def test_a_key_that_is_made_to_compare_without_case_removes_no_row(merge: Merge, key: str) -> None:
    merge.create(f"id INT, v INT, {BIN}, {key}")
    merge.done("INSERT INTO a.t VALUES (1, 0, 'a'), (2, 0, 'b')")
    coarser = f"ALTER TABLE t MODIFY {CI} NOT NULL"
    new, gone = "INSERT INTO b.t VALUES (3, 1, 'A')", "DELETE FROM b.t"
    assert applied(merge, [new], coarser, safe=True) == [WriteOutcome.CHANGED]
    # The row has never been there.
    assert applied(merge, [gone], safe=True) == []
    for safe in (True, False):
        assert applied(merge, [new], safe=safe) == [WriteOutcome.DUPLICATE]
        merge.source.execute(f"DELETE FROM {merge.name}_b.t")
    assert merge.rows() == [(1, 0, "a"), (2, 0, "b")]
    assert applied(merge, ["UPDATE a.t SET s = 'A' WHERE s = 'a'"], safe=True) == []
    merge.target.execute(f"ALTER TABLE t MODIFY {BIN} NOT NULL", database=merge.name)
    merge.done("INSERT INTO b.t VALUES (4, 1, 'B')")
    assert merge.rows() == merge.shards()


@SAFE
def test_rows_that_a_dropped_key_no_longer_tells_apart_stay(merge: Merge, safe: bool) -> None:
    merge.create("id INT NOT NULL, v INT, UNIQUE its (id)")
    merge.done("INSERT INTO a.t VALUES (1, 0), (2, 0), (3, 0)")
    dropped = "ALTER TABLE t DROP KEY its"
    second = "INSERT INTO t VALUES (1, 99)"
    changes = ["DELETE FROM a.t WHERE id = 1", "UPDATE a.t SET v = 5 WHERE id = 1"]
    for change in changes[:: 1 if safe else -1]:
        outcomes = applied(merge, [change], dropped, second, safe=safe)
        assert outcomes == [WriteOutcome.CHANGED]
        assert merge.rows() == [(1, 0), (1, 99), (2, 0), (3, 0)]
        merge.target.execute(
            "DELETE FROM t WHERE v = 99", "ALTER TABLE t ADD UNIQUE its (id)", database=merge.name
        )
        merge.source.execute(f"REPLACE INTO {merge.name}_a.t VALUES (1, 0)")
    if safe:
        # One key has two rows, and another has none.
        batch = merge.record("DELETE FROM a.t WHERE id < 3")
        merge.target.execute(dropped, second, "DELETE FROM t WHERE id = 2", database=merge.name)
        result = merge.apply(batch, safe_until=dict.fromkeys(batch.plans.sources, ALWAYS))
        assert [failure.outcome for failure in result.failures] == [WriteOutcome.CHANGED]
        assert merge.rows() == [(1, 0), (1, 99), (3, 0)]
