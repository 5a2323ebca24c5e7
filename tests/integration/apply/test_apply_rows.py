"""Row events of a real server, applied through Spark to a real target."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from replicator.pipeline.apply.batch import WriteOutcome
from tests.support.streams.applying import Merge


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
    assert failure.outcome is WriteOutcome.DUPLICATE
    assert [m.partition(":")[0][-2:] for m in failure.members] == ["_a", "_b"]
    assert failure.key == ("id",)
    assert failure.row == ""
    assert "5" not in failure.message.replace(merge.name, "")
    assert [place.event for place in failure.positions] == merge.row_events[-2:]
    merge.settings = replace(merge.settings, show_values=True)
    (failure,) = merge.apply(both).failures
    assert failure.row == "5"
    assert merge.rows() == []


@pytest.mark.parametrize("rows", ["VALUES (5, 2)", "SELECT seq, 2 FROM seq_1_to_300"])
def test_a_key_that_the_target_has_from_elsewhere_is_a_duplicate(merge: Merge, rows: str) -> None:
    merge.create("id VARCHAR(10) PRIMARY KEY, v INT")
    merge.done("INSERT INTO a.t VALUES (5, 1)")
    both = merge.record(f"INSERT INTO b.t {rows}")
    (failure,) = merge.apply(both).failures
    assert failure.outcome is WriteOutcome.DUPLICATE
    # TiDB and MySQL 8 name the table before the key.
    assert re.search(r"'…' for key '(t\.)?PRIMARY'", failure.message)
    assert failure.members == (f"{merge.name}_b: {merge.name}_b.t",)
    [place] = failure.positions
    assert place.source == f"{merge.name}_b"
    assert [place.event] == merge.row_events[-1:]
    merge.settings = replace(merge.settings, show_values=True)
    (failure,) = merge.apply(both).failures
    assert re.search(r"'5' for key '(t\.)?PRIMARY'", failure.message)
    assert merge.rows() == merge.shards("a")
    assert merge.target.execute(
        f"SELECT COUNT(*) FROM {merge.settings.watermark_table}"
        " WHERE source LIKE '%_b' AND transaction_key > 0"
    ) == ((0,),)


def test_a_row_that_moves_between_shards(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY, v INT")
    merge.done("INSERT INTO a.t VALUES (1, 1)")
    merge.done("INSERT INTO b.t VALUES (1, 2)", "DELETE FROM a.t")
    assert merge.rows() == merge.shards()


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
