"""Rows that become parameters of a statement: the same as rows that are loaded as text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark import SparkContext

from replicator.failpoints import Failpoint
from replicator.pipeline.apply.batch import WriteOutcome
from replicator.pipeline.plans.parameter_plan import parameter_types
from replicator.sandbox.server import DatabaseServer
from tests.support.streams.applying import WRITING_STEPS, Merge, killed_at
from tests.support.tasks.checking import executions, global_setting
from tests.support.values.column_values import MARIADB_ONLY, NUMBERS, STRINGS, TEMPORAL

ROWS = 2000
"""As many as make more bytes than `replicator.pipeline.apply.decoding.TYPED_BYTES`."""
COLUMNS = "id INT PRIMARY KEY, v VARCHAR(40), n DECIMAL(9,2), d DATETIME(3), x DOUBLE"
NEW = (
    "INSERT INTO a.t SELECT seq, REPEAT('v', seq % 40), seq / 3, NOW(3), 1 / seq"
    f" FROM seq_1_to_{ROWS}"
)
LABELS = {"0": "'a'", "'not a label'": "'b,c'"}
"""Labels instead of an ENUM's values without one, which only statements of their own can write."""
AS_TEXT = ("SET(", "GEOMETRY", "POINT")
"""Types whose values only the target's server reads, or which are made of several texts."""


@pytest.fixture(params=["mariadb_target", "mariadb11_source"])
def merge(
    request: pytest.FixtureRequest,
    spark: SparkContext,
    mariadb_source: DatabaseServer,
    database_name: str,
) -> Merge:
    return Merge(spark, mariadb_source, request.getfixturevalue(request.param), database_name)


@pytest.fixture
def filled(merge: Merge) -> Merge:
    merge.create(COLUMNS)
    merge.done(NEW, "INSERT INTO b.t VALUES (-1, 'b', 0, NOW(), 0)")
    return merge


def by_parameters(merge: Merge, *statements: str) -> dict[str, int]:
    """The counts of rows after statements whose rows are written as parameters."""
    before = executions(merge.target)
    result = merge.done(*statements)
    assert executions(merge.target) > before
    assert merge.rows() == merge.shards()
    return {name: result.total(name) for name in ("inserted", "overwritten", "deleted", "missing")}


@pytest.mark.usefixtures("path")
def test_inserts_updates_deletes_and_key_changes(merge: Merge) -> None:
    merge.create(COLUMNS)
    assert by_parameters(merge, NEW) == counts(inserted=ROWS)
    more = "INSERT INTO b.t SELECT -seq, NULL, NULL, NULL, NULL FROM seq_1_to_1000"
    found = by_parameters(
        merge,
        more,
        "UPDATE a.t SET v = CONCAT('!', v) WHERE id <= 1500",
        "UPDATE a.t SET id = id + 10000 WHERE id > 1990",
        "DELETE FROM a.t WHERE id BETWEEN 11 AND 20",
    )
    assert found == counts(inserted=1000 + 10, overwritten=1500 - 10, deleted=10 + 10)


def counts(**given: int) -> dict[str, int]:
    return {"inserted": 0, "overwritten": 0, "deleted": 0, "missing": 0, **given}


@pytest.mark.parametrize(
    "types", [NUMBERS, TEMPORAL, STRINGS], ids=["numbers", "temporal", "strings"]
)
def test_every_type_at_its_limits(merge: Merge, types: dict[str, list[str]]) -> None:
    usable = {t: v for t, v in types.items() if not any(word in t for word in AS_TEXT)}
    columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(usable))
    merge.create(f"id INT PRIMARY KEY, {columns}", "a")
    longest = max(map(len, usable.values()))
    rows = [[v[n % len(v)] for v in usable.values()] for n in range(longest)]
    rows.append(["NULL"] * len(usable))
    if types is STRINGS:
        rows = [[LABELS.get(value, value) for value in row] for row in rows]
    every = [f"INSERT INTO a.t VALUES ({n}, {','.join(row)})" for n, row in enumerate(rows)]
    names = ",".join(f"c{n}" for n in range(len(usable)))
    times = 3 if types is STRINGS else 200
    again = f"INSERT INTO a.t SELECT id + 1000 * seq, {names} FROM a.t, seq_1_to_{times}"
    batch = merge.record(*every, again)
    (plan,) = batch.plans.kinds
    assert parameter_types(plan) is not None
    before = executions(merge.target)
    assert merge.apply(batch).failures == ()
    assert executions(merge.target) > before
    same_sums(merge)
    merge.done("UPDATE a.t SET id = id - 1000000", f"UPDATE a.t SET c0 = {rows[0][0]}")
    same_sums(merge)


def same_sums(merge: Merge) -> None:
    ((_, source),) = merge.source.execute(f"CHECKSUM TABLE {merge.name}_a.t EXTENDED")
    ((_, target),) = merge.target.execute(f"CHECKSUM TABLE {merge.name}.t EXTENDED")
    assert source == target != 0
    assert merge.rows() == merge.shards("a")


TEXTS = {
    **{kind: values[0] for kind, values in MARIADB_ONLY.items() if kind != "JSON"},
    "SET('a','b')": "'a,b'",
    "POINT": "POINT(1, 2)",
}


@pytest.mark.parametrize(("kind", "value"), TEXTS.items())
def test_other_types_are_loaded_as_text(merge: Merge, kind: str, value: str) -> None:
    merge.create(f"id INT PRIMARY KEY, v {kind}", "a")
    before = executions(merge.target)
    merge.done(f"INSERT INTO a.t SELECT seq, {value} FROM seq_1_to_{4 * ROWS}")
    assert executions(merge.target) == before
    assert merge.rows() == merge.shards("a")


FAULTS = {
    "a row of the target": ("INSERT INTO {}.t VALUES (1500, 'own', 0, NOW(), 0)", NEW),
    "a value that is too long": ("ALTER TABLE {}.t MODIFY v VARCHAR(30)", NEW),
    "a number that is too large": ("ALTER TABLE {}.t MODIFY n DECIMAL(4,2)", NEW),
    "a fraction that is cut off": ("ALTER TABLE {}.t MODIFY n DECIMAL(9,1)", NEW),
    "no value": ("ALTER TABLE {}.t MODIFY x DOUBLE NOT NULL", NEW.replace("1 / seq", "NULL")),
    "a value of another row": ("ALTER TABLE {}.t ADD UNIQUE (v)", NEW),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_refused_row_is_reported_as_if_it_were_loaded(merge: Merge, fault: str) -> None:
    by_hand, statement = FAULTS[fault]
    merge.create(COLUMNS)
    batch = merge.record(statement)
    merge.target.execute(by_hand.format(merge.name))
    before = merge.rows()
    loaded = merge.apply(batch, typed=False)
    assert merge.apply(batch) == loaded
    assert loaded.failures
    assert merge.rows() == before


def test_an_event_that_lacks_columns_is_reported_as_if_it_were_loaded(filled: Merge) -> None:
    minimal = "SET SESSION binlog_row_image = 'MINIMAL'"
    batch = filled.record(
        NEW.replace("SELECT seq,", "SELECT 10000 + seq,"), minimal, "UPDATE a.t SET x = 7"
    )
    loaded = filled.apply(batch, typed=False)
    assert {failure.outcome for failure in loaded.failures} == {WriteOutcome.UNDECODABLE}
    assert filled.apply(batch) == loaded


def test_shards_with_other_types_are_loaded_as_text(merge: Merge) -> None:
    merge.create("id BIGINT PRIMARY KEY, v VARCHAR(40)")
    merge.source.execute(f"ALTER TABLE {merge.name}_b.t MODIFY id INT")
    many = "REPEAT('v', 40) FROM seq_1_to_1000"
    before = executions(merge.target)
    merge.done(f"INSERT INTO a.t SELECT seq, {many}", f"INSERT INTO b.t SELECT -seq, {many}")
    assert executions(merge.target) == before
    assert merge.rows() == merge.shards()


def test_rows_that_the_target_lacks_are_counted(filled: Merge) -> None:
    filled.target.execute(f"DELETE FROM {filled.name}.t WHERE id % 10 = 0")
    result = filled.done("UPDATE a.t SET x = 7 WHERE id <= 1500", "DELETE FROM a.t WHERE id > 1500")
    assert result.total("missing") == ROWS // 10
    assert filled.rows() == filled.shards()


def test_the_value_of_an_enum_that_has_no_label(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY, e ENUM('x','y'), v CHAR(20)", "a")
    merge.done(f"INSERT INTO a.t SELECT seq, seq % 2, 'v' FROM seq_1_to_{ROWS}")
    assert merge.rows() == merge.shards("a")
    assert (2, "", "v") in merge.rows()


def test_unique_values_swap_between_rows(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY, u INT UNIQUE, v CHAR(30)")
    by_parameters(merge, f"INSERT INTO a.t SELECT seq, seq, REPEAT('v', 30) FROM seq_1_to_{ROWS}")
    found = by_parameters(merge, "UPDATE a.t SET u = -u", f"UPDATE a.t SET u = {ROWS + 1} + u")
    assert found == counts(overwritten=ROWS)


def test_a_key_that_moves_between_shards(filled: Merge) -> None:
    moved = "INSERT INTO b.t SELECT * FROM a.t WHERE id <= 100", "DELETE FROM a.t WHERE id <= 100"
    result = filled.done(*moved, "UPDATE a.t SET v = 'w'")
    assert result.total("missing") == 0
    assert filled.rows() == filled.shards()


def test_rows_in_safe_mode_are_written_as_text(filled: Merge) -> None:
    batch = filled.record("UPDATE a.t SET v = 'w'", "DELETE FROM a.t WHERE id > 1900")
    before = executions(filled.target)
    assert (
        filled.apply(batch, safe_until=dict.fromkeys(batch.plans.sources, 1 << 62)).failures == ()
    )
    assert executions(filled.target) == before
    assert filled.rows() == filled.shards()


def test_a_server_that_prepares_no_statement_gets_text(merge: Merge) -> None:
    merge.create(COLUMNS)
    before = executions(merge.target)
    with global_setting(merge.target, "max_prepared_stmt_count", "0"):
        assert merge.done(NEW).total("inserted") == ROWS
    assert executions(merge.target) == before
    assert merge.rows() == merge.shards()


def test_a_row_larger_than_a_packet_gets_there_as_text(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY, b LONGBLOB", "a")
    # A setting of its own makes a connection of its own, with the limit of now.
    address = replace(merge.settings.address, session=(("wait_timeout", "1001"),))
    with global_setting(merge.target, "max_allowed_packet", "1048576"):
        merge.done("INSERT INTO a.t VALUES (1, REPEAT(x'005c0a09', 500000))", address=address)
    assert merge.rows() == merge.shards("a")


def test_a_batch_that_comes_again_changes_nothing(filled: Merge) -> None:
    batch = filled.record("UPDATE a.t SET x = 5", "DELETE FROM a.t WHERE id > 1000")
    assert filled.apply(batch).failures == ()
    again = filled.apply(batch)
    assert [again.total(name) for name in ("inserted", "overwritten", "deleted")] == [0, 0, 0]
    assert again.total("skipped") == ROWS + ROWS // 2
    assert filled.rows() == filled.shards()


def test_a_structure_that_has_changed_is_noticed(filled: Merge) -> None:
    batch = filled.record("UPDATE a.t SET x = 5")
    before = executions(filled.target)
    filled.target.execute(f"ALTER TABLE {filled.name}.t MODIFY v VARCHAR(50)")
    (outcome,) = {failure.outcome for failure in filled.apply(batch).failures}
    assert outcome is WriteOutcome.CHANGED
    assert executions(filled.target) > before


@pytest.mark.slow
@pytest.mark.parametrize("point", WRITING_STEPS)
def test_killed_at_each_step_no_row_is_lost_or_twice(
    filled: Merge, point: Failpoint, tmp_path: Path
) -> None:
    batch = filled.record(
        f"INSERT INTO a.t SELECT -seq - 1, 'new', 1, NOW(), 0 FROM seq_1_to_{ROWS}",
        "UPDATE a.t SET x = x + 1 WHERE id > 0",
        "DELETE FROM a.t WHERE id > 1900",
    )
    before = executions(filled.target)
    killed_at(point, batch, filled.settings, tmp_path)
    assert executions(filled.target) > before
    result = filled.apply(batch)
    assert result.failures == ()
    assert result.total("missing") == 0
    assert filled.rows() == filled.shards()
