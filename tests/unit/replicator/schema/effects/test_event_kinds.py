"""The kinds of event that a statement is."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from config.rules import EVENT_NAMES
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.parser.table_text import table_definition
from replicator.schema.effects.event_kinds import (
    OF_STRUCTURES,
    event_kinds,
    may_depend_on_structure,
    structure_kinds,
)
from replicator.schema.structure.structure import Column, Table, UniqueKey

GROUPS = {"all", "all dml", "all ddl", "none", "none dml", "none ddl", "incompatible ddl changes"}
ROWS = {"insert", "update", "delete"}

CASES = [
    ("CREATE DATABASE d", {"create database"}),
    ("ALTER DATABASE d CHARACTER SET utf8mb4", {"alter database"}),
    ("DROP DATABASE IF EXISTS d", {"drop database"}),
    ("CREATE TABLE t (a int, KEY k (a))", {"create table"}),
    ("DROP TABLE t, u", {"drop table"}),
    ("TRUNCATE t", {"truncate table"}),
    ("RENAME TABLE t TO u", {"rename table"}),
    ("CREATE UNIQUE INDEX i ON t (a)", {"create index"}),
    ("DROP INDEX i ON t", {"drop index"}),
    ("ALTER TABLE t ADD COLUMN a int AFTER b", {"alter table", "add column"}),
    ("ALTER TABLE t DROP COLUMN IF EXISTS a", {"alter table", "drop column"}),
    ("ALTER TABLE t DROP `index`", {"alter table", "drop column"}),
    ("ALTER TABLE t DROP INDEX i, ADD c int", {"alter table", "drop index", "add column"}),
    ("ALTER TABLE t DROP PRIMARY KEY", {"alter table", "drop primary key"}),
    ("ALTER TABLE t DROP FOREIGN KEY f", {"alter table", "modify constraint"}),
    ("ALTER TABLE t ADD CONSTRAINT c CHECK (a > 1)", {"alter table", "modify constraint"}),
    ("ALTER TABLE t RENAME u", {"alter table", "rename table"}),
    ("ALTER TABLE t RENAME COLUMN a TO b", {"alter table", "rename column"}),
    ("ALTER TABLE t CHANGE COLUMN a b int", {"alter table", "rename column"}),
    ("ALTER TABLE t CHANGE a A bigint", {"alter table"}),
    ("ALTER TABLE t MODIFY a int FIRST", {"alter table", "modify columns order"}),
    (
        "ALTER TABLE t CHANGE a b int AFTER c",
        {"alter table", "rename column", "modify columns order"},
    ),
    ("ALTER TABLE t MODIFY a int DEFAULT 1", {"alter table"}),
    ("ALTER TABLE t ALTER a SET DEFAULT 1", {"alter table", "modify default value"}),
    ("ALTER TABLE t ALTER COLUMN a DROP DEFAULT", {"alter table", "modify default value"}),
    ("ALTER TABLE t RENAME INDEX i TO j", {"alter table", "rename index"}),
    (
        "ALTER TABLE t COMMENT 'x' ENGINE = InnoDB",
        {"alter table", "modify storage engine", "modify table comment"},
    ),
    (
        "ALTER TABLE t ADD PRIMARY KEY (a), ADD UNIQUE (b), ADD KEY (c)",
        {"alter table", "add primary key", "modify constraint"},
    ),
    ("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4", {"alter table", "modify charset"}),
    ("ALTER TABLE t COLLATE utf8mb4_bin", {"alter table", "modify collation"}),
    (
        "ALTER TABLE t PARTITION BY HASH (a) PARTITIONS 2",
        {"alter table", "alter table partitioning"},
    ),
    ("ALTER TABLE t REMOVE PARTITIONING", {"alter table", "remove table partitioning"}),
    ("ALTER TABLE t TRUNCATE PARTITION p", {"alter table", "truncate table partition"}),
    ("ALTER TABLE t DROP PARTITION p", {"alter table", "drop table partition"}),
    (
        "ALTER TABLE t ADD PARTITION (PARTITION p VALUES LESS THAN (1))",
        {"alter table", "add table partition"},
    ),
    ("ALTER TABLE t COALESCE PARTITION 2", {"alter table", "coalesce table partition"}),
    ("ALTER TABLE t REBUILD PARTITION p", {"alter table", "rebuild table partition"}),
    (
        "ALTER TABLE t REORGANIZE PARTITION p INTO (PARTITION q VALUES LESS THAN (1))",
        {"alter table", "reorganize table partition"},
    ),
    (
        "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u",
        {"alter table", "exchange table partition"},
    ),
]


@pytest.mark.parametrize(("sql", "kinds"), CASES, ids=[sql for sql, _ in CASES])
def test_the_kinds_of_a_statement(sql: str, kinds: set[str]) -> None:
    assert event_kinds(classify(sql, default_schema="d")) == kinds


def test_each_name_that_a_filter_can_have_is_that_of_an_event() -> None:
    told = set().union(*(kinds for _, kinds in CASES))
    assert told | OF_STRUCTURES == set(EVENT_NAMES) - GROUPS - ROWS


BEFORE = {
    "i": "int(11) NOT NULL AUTO_INCREMENT",
    "d": "decimal(10,2) DEFAULT NULL",
    "v": "varchar(20) DEFAULT 'x'",
    "c": "char(5) DEFAULT NULL",
    "e": "enum('a','b') DEFAULT NULL",
    "b": "binary(4) DEFAULT NULL",
    "m": "datetime(6) DEFAULT NULL",
    "x": "mediumtext DEFAULT NULL",
    "PRIMARY KEY": "(`i`)",
    "UNIQUE KEY": "`u` (`c`)",
    "KEY": "`k` (`d`)",
}
"""A table as MariaDB shows it."""


def shown(items: Mapping[str, str]) -> Table:
    """The table with these columns and keys."""
    lines = [f"{n if n.endswith('KEY') else f'`{n}`'} {text}" for n, text in items.items() if text]
    create_sql = f"CREATE TABLE `t` (\n{', '.join(lines)}\n) ENGINE=InnoDB"
    definition = table_definition(create_sql)
    columns = tuple(
        Column(c.name, c.type, auto_increment="AUTO_INCREMENT" in c.text)
        for c in definition.columns
    )
    keys = tuple(
        UniqueKey(key.name, tuple(part.column for part in key.parts))
        for key in definition.keys
        if key.unique
    )
    return Table("d", "t", columns, keys, create_sql)


CHANGES = [
    ("MODIFY i bigint NOT NULL AUTO_INCREMENT", {"i": "bigint(20) NOT NULL AUTO_INCREMENT"}, set()),
    (
        "MODIFY i smallint NOT NULL AUTO_INCREMENT",
        {"i": "smallint(6) NOT NULL AUTO_INCREMENT"},
        {"value range decrease"},
    ),
    (
        "MODIFY i int unsigned NOT NULL AUTO_INCREMENT",
        {"i": "int(10) unsigned NOT NULL AUTO_INCREMENT"},
        {"precision decrease"},
    ),
    ("MODIFY i int NOT NULL", {"i": "int(11) NOT NULL"}, {"remove auto increment"}),
    ("MODIFY d decimal(12,2)", {"d": "decimal(12,2) DEFAULT NULL"}, {"precision decrease"}),
    ("MODIFY d double", {"d": "double DEFAULT NULL"}, {"modify column"}),
    ("MODIFY v varchar(30) DEFAULT 'x'", {"v": "varchar(30) DEFAULT 'x'"}, set()),
    (
        "CHANGE v w varchar(10) DEFAULT 'x'",
        {"v": "", "w": "varchar(10) DEFAULT 'x'"},
        {"value range decrease"},
    ),
    ("MODIFY v varchar(20)", {"v": "varchar(20) DEFAULT NULL"}, {"modify default value"}),
    ("MODIFY v char(20) DEFAULT 'x'", {"v": "char(20) DEFAULT 'x'"}, {"modify column"}),
    ("MODIFY v text DEFAULT 'x'", {"v": "text DEFAULT 'x'"}, set()),
    ("MODIFY x text", {"x": "text DEFAULT NULL"}, {"modify column"}),
    ("MODIFY c varchar(5)", {"c": "varchar(5) DEFAULT NULL"}, {"modify column"}),
    ("MODIFY e enum('a','b','c')", {"e": "enum('a','b','c') DEFAULT NULL"}, set()),
    ("MODIFY e enum('b','a')", {"e": "enum('b','a') DEFAULT NULL"}, {"value range decrease"}),
    ("MODIFY b binary(8)", {"b": "binary(8) DEFAULT NULL"}, {"precision decrease"}),
    ("MODIFY m datetime", {"m": "datetime DEFAULT NULL"}, {"value range decrease"}),
    ("DROP INDEX k", {"KEY": ""}, set()),
    ("DROP INDEX u", {"UNIQUE KEY": ""}, {"drop unique key"}),
]


@pytest.mark.parametrize(
    ("action", "changed", "kinds"), CHANGES, ids=[action for action, *_ in CHANGES]
)
def test_the_kinds_that_depend_on_the_structure(
    action: str, changed: dict[str, str], kinds: set[str]
) -> None:
    statement = classify(f"ALTER TABLE t {action}", default_schema="d")
    assert may_depend_on_structure(statement)
    assert structure_kinds(statement, shown(BEFORE), shown({**BEFORE, **changed})) == kinds
    assert structure_kinds(statement, None, None) >= kinds
