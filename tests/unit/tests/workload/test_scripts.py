"""When the workload of MariaDB's own tests is looked at; how scripts are read for a history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from replicator.ddl.parser.statement_kinds import classify
from tests.workload.comparison import without_implicit
from tests.workload.files import FILES
from tests.workload.gate import creates, destroys
from tests.workload.generated_rows import keys_of
from tests.workload.scripts import adds_rows, copies_rows, scripts_of, statements_of


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


def test_a_script_is_cut_into_statements() -> None:
    script = """-- a comment; with a semicolon
    CREATE TABLE t (a VARCHAR(9) DEFAULT ';');
    DELIMITER //
    CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END//
    DELIMITER ;
    DROP TABLE t; # the end"""
    assert list(statements_of(script)) == [
        "CREATE TABLE t (a VARCHAR(9) DEFAULT ';')",
        "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END",
        "DROP TABLE t",
    ]


def test_an_executable_comment_is_a_whole_statement() -> None:
    script = "/* a note */ /*!40101 SET NAMES utf8 */;\n/* b; */ SET @a = 1; /*!40000 SET @b = 2 */"
    assert list(statements_of(script)) == [
        "/*!40101 SET NAMES utf8 */",
        "SET @a = 1",
        "/*!40000 SET @b = 2 */",
    ]


def test_scripts_are_in_the_order_of_their_versions(tmp_path: Path) -> None:
    for name in ("V10__c.sql", "V2__b.sql", "V1_9__a.sql", "note.txt"):
        (tmp_path / name).write_text("SET NAMES utf8; INSERT INTO {p}t VALUES (1)")
    scripts = scripts_of(tmp_path, "*.sql", {"{p}": "my_"})
    assert [script.name for script in scripts] == ["V1_9__a.sql", "V2__b.sql", "V10__c.sql"]
    (statement,) = scripts[0].statements
    assert statement.sql == "INSERT INTO my_t VALUES (1)"
    assert adds_rows(statement)


@pytest.mark.parametrize(
    ("sql", "copies"),
    [
        ("INSERT INTO t VALUES (1)", False),
        ("INSERT INTO t (id, value) VALUES ((SELECT MAX(id) FROM u), 2)", False),
        ("INSERT t SET a = (SELECT 1)", False),
        ("INSERT INTO t SELECT * FROM u", True),
        ("INSERT IGNORE INTO t (id, `value`) SELECT id, 1 FROM u", True),
        ("REPLACE INTO t (id) (SELECT id FROM u)", True),
        ("INSERT INTO t WITH x AS (SELECT 1) SELECT * FROM x", True),
        ("UPDATE t SET a = (SELECT 1)", False),
        ("CALL p()", False),
    ],
)
def test_an_insert_of_own_rows_is_told_from_others(sql: str, *, copies: bool) -> None:
    assert copies_rows(classify(sql, default_schema="")) is copies


def test_keys_are_compared_as_any_collation_may() -> None:
    rows = {"u": [("name",), ("kind",)]}

    def execute(sql: str) -> list[tuple[Any, ...]]:
        if "information_schema" in sql:
            return [("u", *column) for column in rows["u"]]
        assert sql == "SELECT `name`, `kind` FROM `s`.`t`"
        return [("Admin ", 1), ("x", None)]

    assert keys_of(execute, "s", "t") == {(("name", "kind"), ("admin", "1"))}


def test_an_index_over_the_columns_of_a_foreign_key_is_left_out() -> None:
    parts = [
        ("PRIMARY", "1", "0", "id", "None", ""),
        ("fk", "1", "1", "a", "None", ""),
        ("fk", "2", "1", "b", "None", ""),
        ("wider", "1", "1", "a", "None", ""),
        ("wider", "2", "1", "c", "None", ""),
    ]
    assert [part[0] for part in without_implicit(parts, {"a,b"})] == ["PRIMARY", "wider", "wider"]
    assert without_implicit(parts, {"id", "c"}) == parts
