"""The kinds of event that a statement is."""

from __future__ import annotations

import pytest

from config.rules import EVENT_NAMES
from replicator.ddl.parser.classify import classify
from replicator.ddl.parser.event_kinds import event_kinds

GROUPS = {"all", "all dml", "all ddl", "none", "none dml", "none ddl"}
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
    ("ALTER TABLE t ADD COLUMN a int AFTER b", {"alter table"}),
    ("ALTER TABLE t DROP COLUMN IF EXISTS a", {"alter table", "drop column"}),
    ("ALTER TABLE t DROP `index`", {"alter table", "drop column"}),
    ("ALTER TABLE t DROP INDEX i, ADD c int", {"alter table", "drop index"}),
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
    ("ALTER TABLE t COMMENT 'x' ENGINE = InnoDB", {"alter table", "modify storage engine"}),
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
    assert told == set(EVENT_NAMES) - GROUPS - ROWS
