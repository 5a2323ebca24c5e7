"""Where columns of a table are behind statements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.names import TableName
from replicator.schema.effects.traced_columns import TableChange, Traced, traced
from replicator.schema.structure.structure import Column, Table, UniqueKey

A, B, E = Column("a", "int(11)"), Column("B", "varchar(5)"), Column("e", "enum('x','y')")
TABLE = Table("s", "t", (A, B, E), (), "CREATE TABLE `t` ()")


def behind(*statements: str, table: Table = TABLE) -> Traced:
    changes = []
    for place, sql in enumerate(statements, 1):
        parsed = classify(sql, default_schema="s")
        named = parsed.tables[0] if parsed.tables else None
        changed = TableName(named.schema, named.table) if named else TableName("s", "")
        changes.append(TableChange(parsed, changed, place))
    return traced(table, changes)


KEPT = {"a": "a", "b": "b", "e": "e"}


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t ADD c INT FIRST, ADD COLUMN (d INT), ADD INDEX i (a), COMMENT 'x'",
        "ALTER TABLE t DROP INDEX i, DROP PRIMARY KEY, RENAME INDEX i TO j, DROP CONSTRAINT c",
        "ALTER TABLE t MODIFY a BIGINT AFTER b, CHANGE a A SMALLINT, ALTER b DROP DEFAULT",
        "ALTER TABLE t ENGINE=InnoDB ROW_FORMAT=COMPRESSED, ALGORITHM=INPLACE, LOCK=NONE, FORCE",
        "ALTER TABLE t PARTITION BY HASH (a) PARTITIONS 4",
        "ALTER TABLE t DROP PARTITION p, ORDER BY a, DEFAULT CHARSET=utf8mb4",
        "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4",
        "ALTER TABLE t RENAME TO t",
        "CREATE INDEX i ON t (a)",
        "CREATE TABLE IF NOT EXISTS t (z INT)",
        "ALTER TABLE u DROP a, CHANGE b c INT",
        "CREATE TEMPORARY TABLE t (z INT)",
        "RENAME TABLE u TO v",
    ],
)
def test_what_leaves_columns_where_they_are(sql: str) -> None:
    found = behind(sql)
    assert replace(found, repartitioned=False) == Traced(TableName("s", "t"), KEPT)
    assert found.repartitioned == ("PARTITION" in sql)


def test_columns_get_other_names_and_places() -> None:
    found = behind(
        "ALTER TABLE t CHANGE COLUMN a n INT", "ALTER TABLE t RENAME COLUMN n TO m, DROP B"
    )
    assert found.columns == {"a": "m", "b": None, "e": "e"}
    assert found.moves == (1, 2)


def test_two_columns_that_exchange_their_names_are_told_apart() -> None:
    table = Table("s", "t", (A, Column("c", "int(11)")), (), "")
    change = classify("ALTER TABLE t CHANGE a c INT, CHANGE c a INT", default_schema="s")
    found = traced(table, [TableChange(change, TableName("s", "t"), 7)])
    assert found.columns == {"a": "c", "c": "a"}
    assert found.moves == (7,)


def test_a_column_that_is_dropped_is_not_the_one_that_takes_its_name() -> None:
    assert behind("ALTER TABLE t DROP a, ADD a INT").columns["a"] is None
    assert behind("ALTER TABLE t DROP a", "ALTER TABLE t ADD a INT").columns["a"] is None
    found = behind("ALTER TABLE t DROP COLUMN IF EXISTS a, CHANGE b a VARCHAR(5)")
    assert found.columns == {"a": None, "b": "a", "e": "e"}


def test_a_table_is_followed_to_its_new_name() -> None:
    found = behind("RENAME TABLE t TO u, v TO t", "ALTER TABLE t DROP a", "ALTER TABLE u DROP b")
    assert found.name == TableName("s", "u")
    assert found.columns == {"a": "a", "b": None, "e": "e"}
    assert (found.moves, found.renames) == ((), (1,))


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE u, t",
        "TRUNCATE TABLE t",
        "CREATE OR REPLACE TABLE t (z INT)",
        "DROP DATABASE s",
    ],
)
def test_a_table_whose_rows_went_is_gone(sql: str) -> None:
    statement = classify(sql, default_schema="s")
    found = traced(TABLE, [TableChange(statement, TableName("s", "t"), 5)])
    assert found.gone_at == 5
    again = TableChange(classify("ALTER TABLE t DROP a", default_schema="s"), found.name, 6)
    assert traced(TABLE, [TableChange(statement, TableName("s", "t"), 5), again]) == found


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t MODIFY e INT",
        "ALTER TABLE t MODIFY a VARCHAR(10)",
        "ALTER TABLE t CHANGE b b BLOB",
        "ALTER TABLE t ADD SYSTEM VERSIONING",
        "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u",
        "ALTER TABLE t DISCARD TABLESPACE",
        "ALTER TABLE t DROP a, RENAME TO u",
        "ALTER TABLE t SOMETHING NEW",
    ],
)
def test_what_can_not_be_followed_is_told(sql: str) -> None:
    assert behind(sql).trouble == sql


KEYED = replace(TABLE, keys=(UniqueKey("PRIMARY", ("a",)),))
UNIQUE = replace(TABLE, keys=(UniqueKey("Uk", ("a",)),))


@pytest.mark.parametrize(
    ("table", "sql"),
    [
        (KEYED, ["ALTER TABLE t DROP PRIMARY KEY"]),
        (KEYED, ["ALTER TABLE t DROP e, DROP PRIMARY KEY", "ALTER TABLE t ADD PRIMARY KEY (a)"]),
        (UNIQUE, ["ALTER TABLE t DROP INDEX IF EXISTS uk"]),
        (UNIQUE, ["ALTER TABLE t DROP KEY `UK`, ADD UNIQUE KEY other (a)"]),
        (UNIQUE, ["ALTER TABLE t DROP CONSTRAINT uk"]),
        (UNIQUE, ["DROP INDEX uk ON t"]),
        (UNIQUE, ["ALTER TABLE t RENAME KEY uk TO v", "DROP INDEX v ON t"]),
    ],
)  # fmt: skip
def test_a_key_that_goes_before_it_is_made_again_is_trouble(table: Table, sql: list[str]) -> None:
    assert behind(*sql, table=table).key_dropped is not None


@pytest.mark.parametrize(
    ("table", "sql"),
    [
        (KEYED, "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (b)"),
        (KEYED, "ALTER TABLE t DROP INDEX i, DROP CONSTRAINT c"),
        (KEYED, "DROP INDEX i ON t"),
        (UNIQUE, "ALTER TABLE t DROP INDEX uk, ADD UNIQUE INDEX uk (a, b)"),
        (UNIQUE, "ALTER TABLE t RENAME INDEX uk TO v, DROP INDEX i"),
    ],
)
def test_a_key_that_stays_or_is_replaced_is_none(table: Table, sql: str) -> None:
    assert not behind(sql, table=table).trouble
