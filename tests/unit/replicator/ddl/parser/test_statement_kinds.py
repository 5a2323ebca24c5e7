from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.ddl.parser.statement_kinds import classify

K = StatementKind

# (statement, kind, the tables in the order of the text); the schema of the session is `s`.
TABLE_STATEMENTS = [
    ("CREATE TABLE t (id INT)", K.CREATE_TABLE, "s.t"),
    ("create table if not exists `x`.`t` (id int)", K.CREATE_TABLE, "x.t"),
    ("CREATE OR REPLACE TABLE t (id INT)", K.CREATE_TABLE, "s.t"),
    ("CREATE TEMPORARY TABLE t (id INT)", K.CREATE_TABLE, "s.t"),
    ("CREATE TABLE t LIKE o.u", K.CREATE_TABLE, "s.t o.u"),
    ("CREATE TABLE t (LIKE u)", K.CREATE_TABLE, "s.t s.u"),
    ("CREATE TABLE t AS SELECT 1 AS a", K.CREATE_TABLE, "s.t"),
    ("CREATE TABLE t (a INT) IGNORE SELECT * FROM u", K.CREATE_TABLE, "s.t"),
    ("CREATE TABLE x.t (a INT REFERENCES p(id))", K.CREATE_TABLE, "x.t x.p"),
    (
        "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES `o`.`p` (id) ON DELETE CASCADE,"
        " CONSTRAINT c FOREIGN KEY (a) REFERENCES q (id))",
        K.CREATE_TABLE,
        "s.t o.p s.q",
    ),
    ("CREATE TABLE `re``ferences` (`references` INT)", K.CREATE_TABLE, "s.re`ferences"),
    ("CREATE TABLE t (a VARCHAR(9) DEFAULT 'REFERENCES x' COMMENT 'LIKE')", K.CREATE_TABLE, "s.t"),
    ("CREATE TABLE `a.b`.`c d` (id INT)", K.CREATE_TABLE, "a.b.c d"),
    ("CREATE TABLE s.123 (id INT)", K.CREATE_TABLE, "s.123"),
    ("CREATE TABLE 1t (id INT)", K.CREATE_TABLE, "s.1t"),
    ("CREATE TABLE x . t(id INT)", K.CREATE_TABLE, "x.t"),
    ("CREATE TABLE .t (id INT)", K.CREATE_TABLE, "s.t"),
    ("CREATE TABLE été (id INT)", K.CREATE_TABLE, "s.été"),
    (
        "CREATE TABLE t (a INT) /*!50100 PARTITION BY RANGE (a)"
        " (PARTITION p VALUES LESS THAN MAXVALUE) */",
        K.CREATE_TABLE,
        "s.t",
    ),
    ("/* app */ CREATE /*!32302 TEMPORARY */ TABLE t (a INT)", K.CREATE_TABLE, "s.t"),
    ("-- c\n# d\nCREATE TABLE t (a INT);", K.CREATE_TABLE, "s.t"),
    ("CREATE TABLE t (a INT) START TRANSACTION", K.CREATE_TABLE, "s.t"),
    ("CREATE TABLE t (a CHAR(9) CHECK (a LIKE b))", K.CREATE_TABLE, "s.t"),
    ("ALTER TABLE t ADD a INT, DROP b", K.ALTER_TABLE, "s.t"),
    ("ALTER TABLE t ADD (a INT, rename INT)", K.ALTER_TABLE, "s.t"),
    (
        "SET STATEMENT a=(SUBSTRING('abc' FROM 1 FOR 2)) FOR ALTER TABLE t ADD a INT",
        K.ALTER_TABLE,
        "s.t",
    ),
    ("ALTER TABLE t ADD (c INT, d INT)", K.ALTER_TABLE, "s.t"),
    ("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4", K.ALTER_TABLE, "s.t"),
    ("ALTER ONLINE TABLE t ADD a INT", K.ALTER_TABLE, "s.t"),
    ("ALTER IGNORE TABLE t ADD UNIQUE (a)", K.ALTER_TABLE, "s.t"),
    ("ALTER ONLINE IGNORE TABLE IF EXISTS t ADD a INT", K.ALTER_TABLE, "s.t"),
    ("ALTER TABLE t ENGINE=InnoDB ROW_FORMAT=COMPRESSED", K.ALTER_TABLE, "s.t"),
    ("ALTER TABLE t DEFAULT CHARSET utf8", K.ALTER_TABLE, "s.t"),
    ("ALTER TABLE t ADD PARTITION (PARTITION p3 VALUES LESS THAN (30))", K.ALTER_TABLE, "s.t"),
    ("ALTER TABLE t DROP PARTITION p3", K.ALTER_TABLE, "s.t"),
    (
        "ALTER TABLE t PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN MAXVALUE)",
        K.ALTER_TABLE,
        "s.t",
    ),
    ("ALTER TABLE t ADD FULLTEXT INDEX f (a)", K.ALTER_TABLE, "s.t"),
    ("ALTER TABLE t ADD KEY k (k(10))", K.ALTER_TABLE, "s.t"),
    ("/*!40000 ALTER TABLE `t` DISABLE KEYS */", K.ALTER_TABLE, "s.t"),
    ("ALTER TABLE x.t WAIT 5 ADD a INT", K.ALTER_TABLE, "x.t"),
    ("ALTER TABLE t NOWAIT RENAME u", K.ALTER_TABLE, "s.t s.u"),
    ("ALTER TABLE x.t RENAME TO u", K.ALTER_TABLE, "x.t s.u"),
    ("ALTER TABLE t RENAME AS y.u", K.ALTER_TABLE, "s.t y.u"),
    ("ALTER TABLE t RENAME = u", K.ALTER_TABLE, "s.t s.u"),
    ("ALTER TABLE t RENAME u", K.ALTER_TABLE, "s.t s.u"),
    ("ALTER TABLE t ADD a INT, RENAME TO u, ADD b INT", K.ALTER_TABLE, "s.t s.u"),
    ("ALTER TABLE t RENAME COLUMN a TO b", K.ALTER_TABLE, "s.t"),
    ("ALTER TABLE t RENAME INDEX a TO b, RENAME KEY c TO d", K.ALTER_TABLE, "s.t"),
    ("ALTER TABLE t ADD `rename` INT, DROP `exchange`", K.ALTER_TABLE, "s.t"),
    ("ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES p (id)", K.ALTER_TABLE, "s.t s.p"),
    (
        "ALTER TABLE x.t RENAME y.u, ADD FOREIGN KEY (a) REFERENCES p (id)",
        K.ALTER_TABLE,
        "x.t y.u x.p",
    ),
    (
        "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE x.u WITHOUT VALIDATION",
        K.ALTER_TABLE,
        "s.t x.u",
    ),
    ("ALTER TABLE t CONVERT PARTITION p TO TABLE u", K.ALTER_TABLE, "s.t s.u"),
    ("ALTER TABLE t CONVERT TABLE u TO PARTITION p VALUES LESS THAN (5)", K.ALTER_TABLE, "s.t s.u"),
    ("ALTER TABLE wait ADD a INT", K.ALTER_TABLE, "s.wait"),
    (
        "SET STATEMENT max_statement_time=10, lock_wait_timeout=(1+2) FOR ALTER TABLE t ADD a INT",
        K.ALTER_TABLE,
        "s.t",
    ),
    ("DROP TABLE t", K.DROP_TABLE, "s.t"),
    ("DROP TABLE IF EXISTS `a`,`b` /* generated by server */", K.DROP_TABLE, "s.a s.b"),
    ("DROP TABLES x.a, b CASCADE", K.DROP_TABLE, "x.a s.b"),
    ("DROP TEMPORARY TABLE IF EXISTS t", K.DROP_TABLE, "s.t"),
    ("DROP TABLE t WAIT 3 RESTRICT", K.DROP_TABLE, "s.t"),
    ("TRUNCATE TABLE x.t", K.TRUNCATE_TABLE, "x.t"),
    ("TRUNCATE t", K.TRUNCATE_TABLE, "s.t"),
    ("TRUNCATE TABLE t NOWAIT", K.TRUNCATE_TABLE, "s.t"),
    ("RENAME TABLE a TO b", K.RENAME_TABLE, "s.a s.b"),
    ("RENAME TABLES a TO b, x.c TO y.d", K.RENAME_TABLE, "s.a s.b x.c y.d"),
    ("RENAME TABLE IF EXISTS a WAIT 5 TO b", K.RENAME_TABLE, "s.a s.b"),
    ("CREATE SEQUENCE q START WITH 1", K.SEQUENCE, "s.q"),
    ("ALTER SEQUENCE x.q RESTART 1", K.SEQUENCE, "x.q"),
    ("DROP SEQUENCE IF EXISTS q, `x`.`r` /* generated by server */", K.SEQUENCE, "s.q x.r"),
    (
        "rename /* gh-ost */ table `s`.`t` to `s`.`_t_del`, `s`.`_t_gho` to `s`.`t`",
        K.RENAME_TABLE,
        "s.t s._t_del s._t_gho s.t",
    ),
    ("CREATE INDEX i ON t (a)", K.CREATE_INDEX, "s.t"),
    ("CREATE INDEX i USING BTREE ON t (a)", K.CREATE_INDEX, "s.t"),
    ("CREATE OR REPLACE UNIQUE INDEX IF NOT EXISTS i ON x.t (a(10) DESC)", K.CREATE_INDEX, "x.t"),
    ("CREATE FULLTEXT INDEX i ON t (a) WITH PARSER ngram", K.CREATE_INDEX, "s.t"),
    ("CREATE SPATIAL INDEX i ON t (a)", K.CREATE_INDEX, "s.t"),
    ("CREATE ONLINE UNIQUE INDEX i ON t (a)", K.CREATE_INDEX, "s.t"),
    ("DROP INDEX i ON t", K.DROP_INDEX, "s.t"),
    ("DROP INDEX IF EXISTS `on` ON `on`.`t`", K.DROP_INDEX, "on.t"),
    ("DROP INDEX `PRIMARY` ON t ALGORITHM=INPLACE", K.DROP_INDEX, "s.t"),
    ("INSERT INTO t VALUES (1)", K.DML, "s.t"),
    ("INSERT IGNORE x.t (a) SELECT 1", K.DML, "x.t"),
    ("REPLACE INTO `percona`.`checksums` SELECT 1", K.DML, "percona.checksums"),
    ("UPDATE LOW_PRIORITY t SET a = 1", K.DML, "s.t"),
    ("UPDATE t, u SET t.a = u.a", K.DML, ""),
    ("DELETE FROM t WHERE a = ';'", K.DML, "s.t"),
    ("DELETE FROM t", K.DML, "s.t"),
    ("DELETE FROM a, b USING a JOIN b", K.DML, ""),
    ("DELETE t FROM t JOIN u", K.DML, ""),
    ("LOAD DATA INFILE 'x' REPLACE INTO TABLE t (a)", K.DML, "s.t"),
    ("WITH c AS (SELECT 1) UPDATE t SET a = 1", K.DML, ""),
    ("CALL p()", K.DML, ""),
    ("DO f()", K.DML, ""),
    ("SELECT `s`.`f`(1)", K.DML, ""),
    ("ANALYZE UPDATE t SET a = 1", K.DML, "s.t"),
    ("SET STATEMENT sort_buffer_size=100000 FOR INSERT INTO t VALUES (1)", K.DML, "s.t"),
]

VIEWS = [
    ("CREATE VIEW v AS SELECT 1", "s.v"),
    ("CREATE VIEW IF NOT EXISTS x.v (a) AS SELECT 1", "x.v"),
    (
        "CREATE OR REPLACE ALGORITHM=UNDEFINED DEFINER=`root`@`%` SQL SECURITY DEFINER VIEW v AS"
        " SELECT 1",
        "s.v",
    ),
    ("ALTER VIEW v AS SELECT 1", "s.v"),
    ("DROP VIEW IF EXISTS v, x.w CASCADE", "s.v x.w"),
    (
        "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`%` SQL SECURITY DEFINER JSON RELATIONAL DUALITY"
        " VIEW `jd` AS SELECT JSON_DUALITY_OBJECT('_id': id) FROM t",
        "s.jd",
    ),
    ("ALTER JSON RELATIONAL DUALITY VIEW x.jd AS SELECT 1", "x.jd"),
    (
        "CREATE ALGORITHM=UNDEFINED MATERIALIZED /*(BY ENGINE=UNKNOWN)*/ DEFINER=`a`@`%`"
        " SQL SECURITY DEFINER VIEW `mv` AS SELECT * FROM t",
        "s.mv",
    ),
    ("DROP MATERIALIZED VIEW mv", "s.mv"),
    ("CREATE VIEW", ""),
]
"""Views of any kind, also of kinds that no server has yet."""

UNKNOWN = [
    # An object of a new kind changes no table, whatever its text names.
    ("CREATE SOMETHING x ON s.t AS SELECT * FROM t", ""),
    ("CREATE OR REPLACE MASKING POLICY t WITH (TABLE = 't')", ""),
    ("CREATE FOREIGN TABLE x.t (a INT)", "s.FOREIGN FOREIGN. s.TABLE TABLE. x.t s.a a. s.INT INT."),
    ("CREATE CLEVER INDEX i ON x.t", "s.CLEVER CLEVER. s.INDEX INDEX. s.i i. s.ON ON. x.t"),
    ("ALTER SOMETHING `x` t", "s.SOMETHING SOMETHING. s.x x. s.t t."),
    ("DROP TABLE a b", "s.TABLE TABLE. s.a a. s.b b."),
    # A statement of a new kind without a schema's name is about the schema in effect.
    ("FROBNICATE t", "s.t t. s."),
    ("FROBNICATE x.t", "x.t"),
    ("IMPORT TABLE FROM '/tmp/t.sdi'", "all"),
    ("ALTER TABLE t ADD a VARCHAR(9) DEFAULT 'open", "all"),
]
"""Statements that are not understood, and the names of what they may concern."""

OTHER_STATEMENTS = [
    ("BEGIN", K.BEGIN),
    ("BEGIN WORK", K.BEGIN),
    ("START TRANSACTION READ ONLY", K.BEGIN),
    ("COMMIT", K.COMMIT),
    ("COMMIT AND CHAIN", K.COMMIT),
    ("ROLLBACK", K.ROLLBACK),
    ("ROLLBACK WORK", K.ROLLBACK),
    ("SAVEPOINT `sp`", K.SAVEPOINT),
    ("ROLLBACK TO `sp`", K.SAVEPOINT),
    ("ROLLBACK WORK TO SAVEPOINT sp", K.SAVEPOINT),
    ("RELEASE SAVEPOINT sp", K.SAVEPOINT),
    ("XA START X'01',X'',1", K.XA),
    ("XA COMMIT X'01',X'',1 ONE PHASE", K.XA),
    ("CREATE DEFINER=`root`@`localhost` TRIGGER x BEFORE INSERT ON t FOR EACH ROW BEGIN"
     " SET NEW.a = 1; END", K.IGNORED),
    ("CREATE DEFINER=CURRENT_USER() PROCEDURE p() BEGIN DROP TABLE t; END", K.IGNORED),
    ("CREATE DEFINER=admin@10.0.0.1 FUNCTION f() RETURNS INT RETURN 1", K.IGNORED),
    ("CREATE AGGREGATE FUNCTION f RETURNS INTEGER SONAME 'x.so'", K.IGNORED),
    ("CREATE DEFINER='r'@'%' EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM t", K.IGNORED),
    ("ALTER EVENT e DISABLE", K.IGNORED),
    ("CREATE USER 'a'@'%' IDENTIFIED BY 'x'", K.IGNORED),
    ("RENAME USER a TO b", K.IGNORED),
    ("DROP ROLE r", K.IGNORED),
    ("GRANT ALL ON *.* TO 'a'@'%'", K.IGNORED),
    ("REVOKE ALL ON *.* FROM a", K.IGNORED),
    ("FLUSH PRIVILEGES", K.IGNORED),
    ("ANALYZE TABLE t", K.IGNORED),
    ("ANALYZE NO_WRITE_TO_BINLOG TABLE t", K.IGNORED),
    ("OPTIMIZE TABLE t", K.IGNORED),
    ("REPAIR TABLE t", K.IGNORED),
    ("CHECK TABLE t", K.IGNORED),
    ("SET PASSWORD FOR a = 'x'", K.IGNORED),
    ("SET @@session.x = 1", K.IGNORED),
    ("USE s", K.IGNORED),
    ("CREATE OR REPLACE PACKAGE BODY p AS END", K.IGNORED),
    ("CREATE SERVER x FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')", K.IGNORED),
    ("CREATE TABLESPACE ts ADD DATAFILE 'x.ibd'", K.IGNORED),
    ("CREATE UNDO TABLESPACE ts ADD DATAFILE 'x.ibu'", K.IGNORED),
    ("CREATE OR REPLACE SPATIAL REFERENCE SYSTEM 4120 NAME 'x'", K.IGNORED),
    ("INSTALL PLUGIN p SONAME 'x.so'", K.IGNORED),
    ("# Dummy event replacing event type 160 that slave cannot handle.", K.IGNORED),
    ("", K.IGNORED),
    ("BEGIN NOT ATOMIC DROP TABLE t; END", K.UNKNOWN),
    ("ALTER TABLE t ADD a INT; DROP TABLE t", K.UNKNOWN),
    ("ALTER TABLE t ADD a VARCHAR(9) DEFAULT 'open", K.UNKNOWN),
    ("CREATE TABLE", K.UNKNOWN),
    ("CREATE TABLE (a INT)", K.UNKNOWN),
    ("DROP TABLE a b", K.UNKNOWN),
    ("DROP TABLE .a.b", K.UNKNOWN),
    ("RENAME TABLE a TO b c TO d", K.UNKNOWN),
    ("TRUNCATE TABLE a, b", K.UNKNOWN),
    ("ALTER TABLE t RENAME a, RENAME b", K.UNKNOWN),
    ("CREATE INDEX i (a)", K.UNKNOWN),
    ("ALTER INDEX i ON t", K.UNKNOWN),
    ("CREATE SOMETHING x", K.UNKNOWN),
    ("RENAME DATABASE a TO b", K.UNKNOWN),
    ("OPTIMIZE t", K.UNKNOWN),
    ("(SELECT 1)", K.UNKNOWN),
    ("FROBNICATE", K.UNKNOWN),
]  # fmt: skip

DATABASE_STATEMENTS = [
    ("CREATE DATABASE d", K.CREATE_DATABASE, "d"),
    ("CREATE SCHEMA IF NOT EXISTS `d` DEFAULT CHARSET utf8", K.CREATE_DATABASE, "d"),
    ("CREATE OR REPLACE DATABASE d", K.CREATE_DATABASE, "d"),
    ("DROP DATABASE d", K.DROP_DATABASE, "d"),
    ("DROP SCHEMA IF EXISTS d", K.DROP_DATABASE, "d"),
    ("ALTER DATABASE d CHARACTER SET utf8", K.ALTER_DATABASE, "d"),
    ("ALTER DATABASE CHARACTER SET utf8", K.ALTER_DATABASE, "s"),
    ("ALTER DATABASE DEFAULT CHARACTER SET utf8", K.ALTER_DATABASE, "s"),
    ("alter schema default collate = utf8_bin", K.ALTER_DATABASE, "s"),
    ("ALTER SCHEMA COLLATE = utf8_bin", K.ALTER_DATABASE, "s"),
    ("ALTER DATABASE COMMENT = 'x'", K.ALTER_DATABASE, "s"),
    ("ALTER DATABASE comment COLLATE utf8_bin", K.ALTER_DATABASE, "comment"),
]


def of(sql: str, **mode: bool) -> ParsedStatement:
    return classify(sql, default_schema="s", **mode)


@pytest.mark.parametrize(("sql", "kind", "tables"), TABLE_STATEMENTS)
def test_statements_on_tables_name_every_table(sql: str, kind: StatementKind, tables: str) -> None:
    found = of(sql)
    assert found.kind is kind, found.detail
    assert " ".join(f"{t.schema}.{t.table}" for t in found.tables) == tables
    assert [t.span.start for t in found.tables] == sorted(t.span.start for t in found.tables)


@pytest.mark.parametrize(("sql", "kind"), OTHER_STATEMENTS)
def test_other_statements_concern_no_table(sql: str, kind: StatementKind) -> None:
    found = of(sql)
    assert found.kind is kind, found.detail
    assert found.tables == ()
    if kind in (K.IGNORED, K.UNKNOWN, K.XA):
        assert found.detail


@pytest.mark.parametrize(("sql", "kind", "schema"), DATABASE_STATEMENTS)
def test_statements_on_databases_name_the_schema(
    sql: str, kind: StatementKind, schema: str
) -> None:
    found = of(sql)
    assert found.kind is kind, found.detail
    assert found.schema is not None
    assert found.schema.name == schema


@pytest.mark.parametrize(("sql", "views"), VIEWS)
def test_views_are_no_tables(sql: str, views: str) -> None:
    found = of(sql)
    assert found.kind is K.VIEW, found.detail
    assert " ".join(f"{t.schema}.{t.table}" for t in found.tables) == views


@pytest.mark.parametrize(("sql", "names"), UNKNOWN)
def test_unknown_statements_concern_the_tables_that_they_name(sql: str, names: str) -> None:
    found = of(sql)
    assert found.kind is K.UNKNOWN
    assert found.tables == ()
    shown = " ".join(f"{t.schema}.{t.table}" for t in found.mentioned)
    assert shown == ("" if names == "all" else names)
    assert found.unbounded == (names == "all")
    assert of("FROBNICATE t").mentioned
    assert classify("FROBNICATE t", default_schema="").unbounded


def test_enough_statements() -> None:
    assert (
        len(VIEWS) + len(TABLE_STATEMENTS) + len(OTHER_STATEMENTS) + len(DATABASE_STATEMENTS) >= 150
    )


@pytest.mark.parametrize(
    ("sql", "flags"),
    [
        ("CREATE TEMPORARY TABLE t (a INT)", "temporary"),
        ("DROP TEMPORARY TABLE t", "temporary"),
        ("CREATE /*!32302 TEMPORARY */ TABLE t (a INT)", "temporary"),
        ("CREATE TABLE t SELECT 1 AS a", "as_select"),
        ("CREATE TABLE t (SELECT 1 AS a)", "as_select"),
        ("CREATE TABLE t (a INT) AS WITH c AS (SELECT 1) SELECT * FROM c", "as_select"),
        ("CREATE TABLE t TABLE u", "as_select"),
        ("CREATE TABLE t AS (TABLE u)", "as_select"),
        ("CREATE TABLE t VALUES ROW(1)", "as_select"),
        ("CREATE TABLE t (a INT COMMENT 'SELECT', `select` INT)", ""),
        ("CREATE TABLE t (a INT) START TRANSACTION", ""),
        ("CREATE OR REPLACE TABLE t (a INT)", "discards_rows"),
        ("CREATE OR REPLACE DATABASE d", "discards_rows"),
        ("ALTER TABLE t DROP PARTITION p", "discards_rows"),
        ("ALTER TABLE t TRUNCATE PARTITION p", "discards_rows"),
        ("ALTER TABLE t DISCARD TABLESPACE", "discards_rows"),
        ("ALTER TABLE t DISCARD PARTITION p TABLESPACE", "discards_rows"),
        ("ALTER TABLE t IMPORT PARTITION p TABLESPACE", "imports_rows"),
        ("ALTER TABLE t IMPORT TABLESPACE", "imports_rows"),
        ("ALTER TABLE t ENGINE=BLACKHOLE", "discards_rows"),
        ("ALTER TABLE t ADD a INT, COMMENT 'x' ENGINE 'blackhole'", "discards_rows"),
        ("ALTER TABLE t ADD engine INT, ENGINE=InnoDB COMMENT='BLACKHOLE'", ""),
        ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", "discards_rows"),
        ("ALTER TABLE t DROP a, DROP KEY k", ""),
        ("ALTER TABLE t REORGANIZE PARTITION p INTO (PARTITION q VALUES LESS THAN (5))", ""),
    ],
)
def test_what_a_statement_does_besides_is_flagged(sql: str, flags: str) -> None:
    found = of(sql)
    assert found.kind is not K.UNKNOWN
    names = ("temporary", "as_select", "discards_rows", "imports_rows")
    assert " ".join(name for name in names if getattr(found, name)) == flags


def test_each_table_of_a_statement_has_its_role() -> None:
    found = of("ALTER TABLE t RENAME u, ADD FOREIGN KEY (a) REFERENCES p (a)")
    assert [t.role for t in found.tables] == [
        TableRole.SUBJECT,
        TableRole.NEW_NAME,
        TableRole.REFERENCED,
    ]
    assert [(a.table, b.table) for a, b in found.renames] == [("t", "u")]
    pairs = of("RENAME TABLE a TO b, b TO c").renames
    assert [(a.table, b.table) for a, b in pairs] == [("a", "b"), ("b", "c")]
    assert of("DROP TABLE a").renames == ()
    (like,) = of("CREATE TABLE t LIKE u").named(TableRole.LIKE)
    assert like.table == "u"
    (other,) = of("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u").named(TableRole.EXCHANGED)
    assert other.table == "u"


@pytest.mark.parametrize(
    ("sql", "made"),
    [
        ("ALTER TABLE t ADD a INT, CONVERT PARTITION `to` TO TABLE x.`table`", ["table"]),
        ("ALTER TABLE t CONVERT TABLE u TO PARTITION p VALUES LESS THAN (5)", []),
        ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", []),
        ("ALTER TABLE t ADD a INT", []),
    ],
)
def test_a_partition_can_become_a_table(sql: str, made: list[str]) -> None:
    found = classify(sql, default_schema="s")
    assert [table.table for table in found.split_off] == made


def test_the_sql_mode_decides_on_quotes() -> None:
    sql = 'ALTER TABLE "x"."t" ADD "a" INT'
    (table,) = of(sql, ansi_quotes=True).tables
    assert (table.schema, table.table) == ("x", "t")
    assert of(sql).kind is K.UNKNOWN
    escaped = r"ALTER TABLE t ADD a VARCHAR(9) DEFAULT '\', RENAME u"
    assert len(of(escaped, no_backslash_escapes=True).tables) == 2
    assert of(escaped).kind is K.UNKNOWN


def test_details_say_what_and_where() -> None:
    assert of("CREATE SEQUENCE q").detail == "CREATE"
    assert of("XA PREPARE X'01'").detail == "PREPARE"
    assert of("DROP TABLE a b").detail == (
        "the end of the statement expected at character 13, found 'b'"
    )
    assert of("CREATE SOMETHING x").detail == "unknown kind of object 'SOMETHING'"
    assert of("TRUNCATE").detail == "the name of a table expected at the end of the statement"


@given(st.sampled_from([sql for sql, *_ in TABLE_STATEMENTS + OTHER_STATEMENTS]), st.data())
def test_cut_and_mixed_statements_never_raise(sql: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(sql)))
    more = data.draw(st.sampled_from(["", "(", ")", ",", ".", "'", " TABLE ", " RENAME "]))
    found = of(sql[:cut] + more)
    assert isinstance(found.kind, StatementKind)


@given(st.text())
def test_any_text_is_recognised_or_not(sql: str) -> None:
    assert isinstance(of(sql).kind, StatementKind)


def test_what_is_left_out_of_alter_ignore() -> None:
    assert classify("ALTER ONLINE IGNORE TABLE t ADD c INT", default_schema="s").ignores
    assert not classify("ALTER ONLINE TABLE t ADD `ignore` INT", default_schema="s").ignores
