"""Which statements make a structure that is read behind them a guess for the rows before."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.names import TableName
from replicator.schema.registry.past_changes import Past, past_changes

T = TableName("s", "t")


def pasts(sql: str) -> list[tuple[TableName | None, Past]]:
    changes = past_changes(classify(sql, default_schema="s"), 7)
    return [(change.table, change.past) for change in changes]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE IF NOT EXISTS t (a INT)",
        "CREATE TEMPORARY TABLE t (a INT)",
        "TRUNCATE TABLE t",
        "ALTER TABLE t AUTO_INCREMENT = 7",
        "ALTER TABLE t ENGINE=InnoDB, FORCE",
        "GRANT SELECT ON s.t TO x",
    ],
)
def test_what_changes_nothing(sql: str) -> None:
    assert pasts(sql) == []


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE INDEX i ON t (a)",
        "DROP INDEX IF EXISTS i ON t",
        "ALTER TABLE t ADD INDEX (a, b), DROP KEY k, ENGINE=InnoDB, COMMENT = 'add column'",
        "ALTER TABLE t ADD PARTITION (PARTITION p VALUES LESS THAN (7))",
        "ALTER TABLE t RENAME INDEX a TO b",
        "ALTER TABLE t ALTER INDEX a IGNORED",
        "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0), DROP CONSTRAINT d",
        "ALTER TABLE t ADD CHECK (a > 0), DROP CHECK d",
    ],
)
def test_what_changes_no_columns(sql: str) -> None:
    assert pasts(sql) == [(T, Past.OTHER_PARTS)]


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t ADD c INT",
        "ALTER TABLE t ADD INDEX (a), MODIFY a INT FIRST",
        "ALTER TABLE t ADD `index` INT",
        "ALTER TABLE t DROP `key`",
        "ALTER TABLE t RENAME COLUMN a TO b",
        "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4",
        "CREATE OR REPLACE TABLE t (a INT)",
        "DROP TABLE IF EXISTS t",
    ],
)
def test_what_may_have_been_otherwise(sql: str) -> None:
    assert pasts(sql) == [(T, Past.OTHER)]


def test_what_was_not_there() -> None:
    assert pasts("CREATE TABLE t (a INT)") == [(T, Past.MISSING)]
    assert pasts("RENAME TABLE u TO t") == [
        (TableName("s", "u"), Past.OTHER_NAME),
        (T, Past.MISSING),
    ]


def test_a_table_that_another_takes_the_place_of_was_there() -> None:
    assert pasts("RENAME TABLE t TO _t_del, _t_gho TO t") == [
        (T, Past.OTHER_NAME),
        (TableName("s", "_t_del"), Past.MISSING),
        (TableName("s", "_t_gho"), Past.OTHER_NAME),
    ]


def test_what_concerns_many() -> None:
    [change] = past_changes(classify("DROP DATABASE s", default_schema=""), 7)
    assert change.concerns(T)
    assert not change.concerns(TableName("x", "t"))
    changes = past_changes(classify("FROBNICATE t", default_schema="s"), 7)
    assert any(change.concerns(T) for change in changes)
    assert not any(change.concerns(TableName("x", "t")) for change in changes)
    [change] = past_changes(classify("FROBNICATE t", default_schema=""), 7)[:1]
    assert change.concerns(TableName("x", "t"))
