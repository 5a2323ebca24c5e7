"""When the workload of MariaDB's own tests is looked at, and that its list names each file once."""

from __future__ import annotations

import pytest

from tests.workload.files import FILES
from tests.workload.gate import creates, destroys


@pytest.mark.parametrize(
    "statement",
    [
        b"DROP TABLE t1",
        b"drop tables if exists t1, t2",
        b"  /* a comment */ drop table t1",
        b"-- a comment\nDROP DATABASE d",
        b"# another\ndrop schema d",
        b"/*!50000 DROP TABLE t1 */",
        b"create or\nreplace table t1 (a int)",
        b"CREATE OR REPLACE DATABASE d",
        b"truncate t1",
        b"set statement sql_mode='' for drop table t1",
    ],
)
def test_statements_that_take_tables_away_are_seen(statement: bytes) -> None:
    assert destroys(statement)


@pytest.mark.parametrize(
    "statement",
    [
        b"DROP VIEW v",
        b"DROP TEMPORARY TABLE t1",
        b"select 'drop table t1'",
        b"insert into t1 values ('drop table t1')",
        b"create table t1 (a int)",
    ],
)
def test_other_statements_are_let_through(statement: bytes) -> None:
    assert not destroys(statement)


def test_the_beginning_of_new_tables_is_seen() -> None:
    assert creates(b"create table t1 (a int)")
    assert creates(b"/* x */ CREATE DATABASE d")
    assert not creates(b"create temporary table t1 (a int)")
    assert not creates(b"create or replace table t1 (a int)")


def test_each_file_is_named_once() -> None:
    assert len(set(FILES)) == len(FILES)
