from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.retarget import retarget, retarget_schema
from replicator.mysql.names import quote


def of(sql: str, **mode: bool) -> ParsedStatement:
    return classify(sql, default_schema="s", **mode)


def routed(schema: str, table: str) -> tuple[str, str]:
    return "T", {"t": "all", "p": "par`ent"}.get(table, f"{schema}_{table}")


def same(schema: str, table: str) -> tuple[str, str]:
    return schema, table


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE t ADD t INT", "ALTER TABLE `T`.`all` ADD t INT"),
        ("alter  table\n`s`.`t`\tadd `t` int -- t", "alter  table\n`T`.`all`\tadd `t` int -- t"),
        ("ALTER TABLE s . t ADD a INT;", "ALTER TABLE `T`.`all` ADD a INT;"),
        ("ALTER IGNORE TABLE t ADD UNIQUE (a)", "ALTER  TABLE `T`.`all` ADD UNIQUE (a)"),
        ("ALTER ONLINE TABLE t ADD a INT", "ALTER  TABLE `T`.`all` ADD a INT"),
        (
            "ALTER TABLE t ADD a INT, ALGORITHM=COPY, LOCK = NONE",
            "ALTER TABLE `T`.`all` ADD a INT  ",
        ),
        (
            "ALTER TABLE t LOCK NONE, algorithm=inplace, ADD a SET('x', 'y'), DROP lock",
            "ALTER TABLE `T`.`all`   ADD a SET('x', 'y'), DROP lock",
        ),
        (
            "ALTER TABLE t ADD lock INT, LOCK=NONE, ADD INDEX algorithm (a)",
            "ALTER TABLE `T`.`all` ADD lock INT , ADD INDEX algorithm (a)",
        ),
        (
            "ALTER TABLE t ADD a INT /*!50600 , ALGORITHM=INPLACE */",
            "ALTER TABLE `T`.`all` ADD a INT /*!50600   */",
        ),
        ("ALTER TABLE t WAIT 5 ADD a INT", "ALTER TABLE `T`.`all`  ADD a INT"),
        ("ALTER TABLE t NOWAIT LOCK=NONE, ADD a INT", "ALTER TABLE `T`.`all`   ADD a INT"),
        ("ALTER TABLE t ALGORITHM=COPY", "ALTER TABLE `T`.`all` ALGORITHM=COPY"),
        (
            "CREATE INDEX lock ON t (a, lock) LOCK=NONE COMMENT 'x' ALGORITHM DEFAULT",
            "CREATE INDEX lock ON `T`.`all` (a, lock)  COMMENT 'x' ",
        ),
        ("CREATE ONLINE INDEX i ON t (a) NOWAIT", "CREATE  INDEX i ON `T`.`all` (a) "),
        ("DROP INDEX i ON t WAIT 3 LOCK=NONE", "DROP INDEX i ON `T`.`all`  "),
        (
            "CREATE TABLE t (s.t.a INT, t.b INT, c INT)",
            "CREATE TABLE `T`.`all` (`a` INT, `b` INT, c INT)",
        ),
        ("CREATE TABLE t (t.index INT)", "CREATE TABLE `T`.`all` (`index` INT)"),
        (
            "ALTER TABLE x.t MODIFY `x`.`t`.a INT, ADD CHECK (t.a > u.t), RENAME x.v",
            "ALTER TABLE `T`.`all` MODIFY `a` INT, ADD CHECK (`a` > u.t), RENAME `T`.`x_v`",
        ),
        ("ALTER TABLE .t ADD a INT", "ALTER TABLE `T`.`all` ADD a INT"),
        ("CREATE TABLE t(a INT)", "CREATE TABLE `T`.`all`(a INT)"),
        ("CREATE TABLE t LIKE x.u", "CREATE TABLE `T`.`all` LIKE `T`.`x_u`"),
        (
            "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p(id))",
            "CREATE TABLE `T`.`all` (a INT, FOREIGN KEY (a) REFERENCES `T`.`par``ent`(id))",
        ),
        (
            "/*!40000 ALTER TABLE `t` DISABLE KEYS */",
            "/*!40000 ALTER TABLE `T`.`all` DISABLE KEYS */",
        ),
        ("DROP TABLE a,t", "DROP TABLE `T`.`s_a`,`T`.`all`"),
        ("RENAME TABLE t TO b", "RENAME TABLE `T`.`all` TO `T`.`s_b`"),
        ("ALTER TABLE t RENAME b, ADD c INT", "ALTER TABLE `T`.`all` RENAME `T`.`s_b`, ADD c INT"),
        ("CREATE INDEX t ON t (t)", "CREATE INDEX t ON `T`.`all` (t)"),
        ("DROP INDEX i ON t", "DROP INDEX i ON `T`.`all`"),
        ("TRUNCATE t", "TRUNCATE `T`.`all`"),
        (
            "/* c */ SET STATEMENT lock_wait_timeout=1 FOR ALTER TABLE t ADD a INT",
            "/* c */ ALTER TABLE `T`.`all` ADD a INT",
        ),
        ("CREATE TABLE t (a INT) START TRANSACTION", "CREATE TABLE `T`.`all` (a INT) "),
        (
            "CREATE TABLE t (a INT) START TRANSACTION ENGINE=InnoDB COMMENT='START TRANSACTION'",
            "CREATE TABLE `T`.`all` (a INT)  ENGINE=InnoDB COMMENT='START TRANSACTION'",
        ),
        ("COMMIT", "COMMIT"),
    ],
)
def test_names_are_replaced_in_place(sql: str, expected: str) -> None:
    assert retarget(of(sql), routed) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CREATE TABLE t (a INT)", "CREATE TABLE IF NOT EXISTS `T`.`all` (a INT)"),
        ("CREATE TABLE IF NOT EXISTS t (a INT)", "CREATE TABLE IF NOT EXISTS `T`.`all` (a INT)"),
        (
            "CREATE OR REPLACE TABLE t LIKE t",
            "CREATE  TABLE IF NOT EXISTS `T`.`all` LIKE `T`.`all`",
        ),
        ("DROP TABLE t", "DROP TABLE IF EXISTS `T`.`all`"),
        ("DROP TABLE IF EXISTS t", "DROP TABLE IF EXISTS `T`.`all`"),
        ("ALTER TABLE t ADD a INT", "ALTER TABLE `T`.`all` ADD a INT"),
    ],
)
def test_guards_are_put_in_where_they_are_missing(sql: str, expected: str) -> None:
    assert retarget(of(sql), routed, guarded=True) == expected
    assert of(expected).kind is of(sql).kind
    assert of(expected).guard is None


@pytest.mark.parametrize(
    ("sql", "plain", "guarded"),
    [
        ("CREATE DATABASE d", "CREATE DATABASE `D``d`", "CREATE DATABASE IF NOT EXISTS `D``d`"),
        (
            "CREATE OR REPLACE SCHEMA d",
            "CREATE OR REPLACE SCHEMA `D``d`",
            "CREATE  SCHEMA IF NOT EXISTS `D``d`",
        ),
        ("DROP DATABASE `d`;", "DROP DATABASE `D``d`;", "DROP DATABASE IF EXISTS `D``d`;"),
        (
            "ALTER SCHEMA CHARSET a",
            "ALTER SCHEMA `D``s` CHARSET a",
            "ALTER SCHEMA `D``s` CHARSET a",
        ),
    ],
)
def test_statements_on_databases_get_the_targets_schema(sql: str, plain: str, guarded: str) -> None:
    assert retarget_schema(of(sql), lambda schema: f"D`{schema}") == plain
    assert retarget_schema(of(sql), lambda schema: f"D`{schema}", guarded=True) == guarded


def test_a_table_statement_has_no_schema_to_replace() -> None:
    with pytest.raises(ValueError, match="'alter table' is not about a database"):
        retarget_schema(of("ALTER TABLE t ADD a INT"), str)


NAMES = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1)
COMMENTS = st.sampled_from(["", " ", "/* t */", "/*!50100 */", "\n-- t\n", "#`\n"])


@given(NAMES, NAMES, NAMES, COMMENTS, st.booleans())
def test_identity_is_stable_and_names_survive(
    schema: str, table: str, other: str, comment: str, ansi_quotes: bool
) -> None:
    def quoted(name: str) -> str:
        if ansi_quotes:
            return '"' + name.replace('"', '""') + '"'
        return quote(name)

    sql = (
        f"{comment}ALTER TABLE {comment} {quoted(schema)}{comment}.{quoted(table)} {comment}"
        f" ADD a INT DEFAULT 't' REFERENCES {quoted(other)} (id), RENAME TO {quoted(other)}"
    )
    found = of(sql, ansi_quotes=ansi_quotes)
    assert [(t.schema, t.table) for t in found.tables] == [
        (schema, table),
        (schema, other),
        ("s", other),
    ]
    once = retarget(found, same)
    again = of(once, ansi_quotes=ansi_quotes)
    assert [(t.schema, t.table) for t in again.tables] == [
        (t.schema, t.table) for t in found.tables
    ]
    assert retarget(again, same) == once


@given(st.text())
def test_identity_of_any_text_without_tables_is_the_text(sql: str) -> None:
    found = of(sql)
    # What only TiDB executes becomes a plain comment.
    if not found.tables and not found.omitted and "/*T!" not in sql:
        assert retarget(found, same) == sql


@pytest.mark.parametrize("name", ["", "a\x00b"])
def test_names_that_no_server_takes_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name"):
        quote(name)
    with pytest.raises(ValueError, match="cannot be the name"):
        retarget(of("DROP TABLE t"), lambda schema, table: (schema, name))


def test_unknown_statements_stay_as_they_are() -> None:
    found = of("FROBNICATE t")
    assert found.kind is StatementKind.UNKNOWN
    assert retarget(found, routed) == "FROBNICATE t"
