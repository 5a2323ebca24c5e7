"""No statement of a source makes the target open files of its choice or ask other servers."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.retarget import retarget_schema
from replicator.ddl.rewrite.storage import merged_tables
from replicator.ddl.rewrite.target_table import Collations, target_table
from replicator.mysql.names import TableName
from replicator.schema.effects.ddl_effects import DdlError, effects_of
from replicator.schema.scratch.scratch_statements import as_run, kept_here

TARGET = TableName("m", "t")
MEMBER = TableName("s", "t1")
FOREIGN = (
    *("FEDERATED", "FEDERATEDX", "CONNECT", "SPIDER", "BLACKHOLE", "S3", "OQGRAPH", "SPHINX"),
    *("MROONGA", "SEQUENCE", "NEW_ONE"),
)


def executed(sql: str) -> str:
    (effect,) = effects_of(classify(sql, default_schema="s"), lambda _: TARGET, [MEMBER])
    return " ".join(effect.sql.split())


def on_scratch_table(sql: str) -> str:
    statement = classify(sql, default_schema="s")
    return as_run(statement, TableName("x", "y"), creates=sql.startswith("CREATE"))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "CREATE TABLE t1 (a INT) DATA DIRECTORY='/x' ENGINE=InnoDB INDEX DIRECTORY = '/y'",
            "(a INT) ENGINE=InnoDB",
        ),
        (
            "CREATE TABLE t1 (a INT) data /* c */ Directory '/x', COMMENT 'c'",
            "(a INT) /* c */ COMMENT 'c'",
        ),
        ("CREATE TABLE t1 (a INT) COMMENT 'c', DATA DIRECTORY='/x'", "(a INT) COMMENT 'c'"),
        (
            "CREATE TABLE t1 (a INT)CONNECTION='mysql://u:p@h/d/t'COMMENT='DATA DIRECTORY=''/x'''",
            "(a INT) COMMENT='DATA DIRECTORY=''/x'''",
        ),
        ("CREATE TABLE t1 (a INT) /*!50100 TABLESPACE `ts` */ ENGINE=InnoDB", None),
        (
            "CREATE TABLE t1 (data INT, connection INT, tablespace INT, engine INT) TABLESPACE ts",
            "(data INT, connection INT, tablespace INT, engine INT)",
        ),
        (
            "CREATE TABLE t1 (a INT) PARTITION BY RANGE (a) SUBPARTITION BY HASH (a) (PARTITION p"
            " VALUES LESS THAN (5) DATA DIRECTORY='/x' ENGINE = InnoDB (SUBPARTITION s INDEX"
            " DIRECTORY '/y', SUBPARTITION data TABLESPACE = ts))",
            "(a INT) PARTITION BY RANGE (a) SUBPARTITION BY HASH (a) (PARTITION p VALUES LESS THAN"
            " (5) ENGINE = InnoDB (SUBPARTITION s, SUBPARTITION data))",
        ),
        (
            "CREATE TABLE t1 (a INT) PARTITION BY HASH (tablespace DIV 2) PARTITIONS 4",
            "(a INT) PARTITION BY HASH (tablespace DIV 2) PARTITIONS 4",
        ),
        ("ALTER TABLE t1 DATA DIRECTORY='/x', ADD c INT", "ADD c INT"),
        ("ALTER TABLE t1 ADD c INT, INDEX DIRECTORY='/x'", "ADD c INT"),
        ("ALTER TABLE t1 ADD c INT, DATA DIRECTORY='/x', DROP b", "ADD c INT, DROP b"),
        ("ALTER TABLE t1 ENGINE=InnoDB DATA DIRECTORY '/x', ADD c INT", "ENGINE=InnoDB, ADD c INT"),
        ("ALTER TABLE t1 TABLESPACE ts, CONNECTION 'srv'", ""),
        ("ALTER TABLE t1 ALGORITHM=COPY, TABLESPACE=ts, ADD c INT", "ADD c INT"),
        ("ALTER TABLE t1 TABLESPACE=ts, ALGORITHM=COPY, ADD c INT, LOCK=NONE", "ADD c INT"),
        ("ALTER TABLE t1 WAIT 5 TABLESPACE=ts, ADD tablespace INT", "ADD tablespace INT"),
        ("ALTER TABLE t1 ADD (tablespace INT, b INT)", "ADD (tablespace INT, b INT)"),
        ("ALTER TABLE t1 CHANGE engine memory INT", "CHANGE engine memory INT"),
        ("ALTER TABLE t1 INSERT_METHOD=LAST UNION=()", ""),
        (
            "ALTER TABLE t1 ADD PARTITION (PARTITION p VALUES IN (1) DATA DIRECTORY = '/x')",
            "ADD PARTITION (PARTITION p VALUES IN (1))",
        ),
        (
            "ALTER TABLE t1 REORGANIZE PARTITION p INTO (PARTITION q VALUES IN (1)"
            " /*!50100 INDEX DIRECTORY='/x' ENGINE MyISAM*/)",
            None,
        ),
    ],
)
def test_places_are_taken_off(sql: str, expected: str | None) -> None:
    found = executed(sql)
    if expected is not None:
        assert found.split("`m`.`t`", 1)[1].strip() == expected
    for word in ("'/x'", "'/y'", "mysql://", " ts", "`ts`", "MyISAM", "'srv'"):
        assert word not in found.replace("''/x''", "")
        assert word == "MyISAM" or word not in on_scratch_table(sql).replace("''/x''", "")


@pytest.mark.parametrize("engine", FOREIGN)
@pytest.mark.parametrize(
    "form",
    [
        "CREATE TABLE t1 (a INT) ENGINE={}",
        "CREATE TABLE t1 (a INT)ENGINE '{}'CONNECTION='mysql://u@h/d/t'",
        "CREATE OR REPLACE TABLE t1 (a INT) COMMENT='x', engine=`{}`",
        "CREATE TABLE IF NOT EXISTS s.t1 (a INT) /*!50100 ENGINE = {} */",
        "CREATE TABLE t1 (a INT) /*M! ENGINE */ = /* c */ {}",
        "CREATE TABLE t1 (a INT) PARTITION BY HASH (a) (PARTITION p ENGINE = {})",
        "ALTER TABLE t1 ENGINE={}",
        "ALTER TABLE t1 ADD c INT, COMMENT 'x' ENGINE {}",
        'ALTER TABLE t1 COMMENT \'wrapper "mysql", srv "h"\' Engine {}',
        "ALTER TABLE t1 PARTITION BY HASH (a) (PARTITION p STORAGE ENGINE {})",
        "ALTER TABLE t1 ADD PARTITION (PARTITION engine VALUES IN (1) ENGINE {})",
    ],
)
def test_an_engine_that_is_not_known_to_keep_the_rows_itself_is_refused(
    form: str, engine: str
) -> None:
    for name in (engine, engine.lower()):
        with pytest.raises(DdlError, match=f"engine is {engine}"):
            executed(form.format(name))
        assert engine not in on_scratch_table(form.format(name)).upper()


def test_a_table_that_is_not_replicated_may_have_any_engine() -> None:
    statement = classify("CREATE TABLE u (a INT) ENGINE=FEDERATED", default_schema="s")
    assert effects_of(statement, lambda _: None, ()) == ()


def test_a_table_that_is_made_by_a_query_is_refused() -> None:
    for sql in (
        "CREATE TABLE t1 SELECT LOAD_FILE('/etc/passwd')",
        "CREATE TABLE t1 (a INT) AS (SELECT * FROM mysql.user)",
        "CREATE TABLE t1 TABLE mysql.user",
    ):
        with pytest.raises(DdlError, match="created by a query"):
            executed(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')",
        "INSTALL PLUGIN p SONAME 'p.so'",
        "INSTALL SONAME 'ha_connect'",
        "CREATE FUNCTION f RETURNS STRING SONAME 'f.so'",
        "CREATE OR REPLACE AGGREGATE FUNCTION f RETURNS INT SONAME 'f.so'",
        "CREATE TABLESPACE ts ADD DATAFILE '/x'",
        "SET GLOBAL general_log_file = '/x'",
        "CREATE TABLE u (a INT) DATA DIRECTORY='/x'",
    ],
)
def test_what_is_about_the_server_itself_is_never_executed(sql: str) -> None:
    found = effects_of(classify(sql, default_schema="s"), lambda _: None, [MEMBER])
    assert [effect.sql for effect in found] == []
    if "TABLE u" not in sql:
        assert effects_of(classify(sql, default_schema="s"), lambda _: TARGET, [MEMBER]) == ()


def test_what_only_tidb_would_execute_stays_a_comment() -> None:
    sql = "ALTER TABLE t1 /*T![placement] PLACEMENT POLICY=p */ ADD c INT /*T! , DROP b */"
    assert "/*T!" not in executed(sql)
    assert "/*T!" not in on_scratch_table(sql)
    assert executed(sql).endswith("/* [placement] PLACEMENT POLICY=p */ ADD c INT /* , DROP b */")
    text = "ALTER TABLE s/*T! x */.t1 COMMENT '/*T! y */'"
    assert executed(text) == "ALTER TABLE `m`.`t` COMMENT '/*T! y */'"
    database = classify("CREATE DATABASE s /*T! PLACEMENT POLICY=p */", default_schema="s")
    assert "/*T!" not in retarget_schema(database, lambda _: "m")


SHOWN = (
    "CREATE TABLE `t1` (\n  `data` int(11) DEFAULT NULL\n) /*!50100 TABLESPACE `ts` */"
    " ENGINE=InnoDB DEFAULT CHARSET=latin1 DATA DIRECTORY='/x/' CONNECTION='mysql://h/d/t'\n"
    "/*!50100 PARTITION BY HASH (`data`)\n(PARTITION p DATA DIRECTORY = '/x' ENGINE = InnoDB) */"
)


def test_a_target_and_a_scratch_table_are_made_without_the_places_of_the_shard() -> None:
    made = target_table(SHOWN, "m", "t", Collations())
    for sql in (made.sql, kept_here(SHOWN)):
        assert "(PARTITION p ENGINE = InnoDB) */" in sql
        assert "`data` int(11)" in sql
        assert not [word for word in ("'/x", "`ts`", "mysql://") if word in sql]


@pytest.mark.parametrize("engine", FOREIGN)
def test_a_target_is_not_made_like_a_table_whose_rows_may_be_elsewhere(engine: str) -> None:
    shown = SHOWN.replace("InnoDB", engine)
    with pytest.raises(ValueError, match=engine):
        target_table(shown, "m", "t", Collations())
    assert engine not in kept_here(shown)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE t1 ENGINE=MyISAM", "ALTER TABLE `m`.`t` ENGINE=InnoDB"),
        (
            "ALTER TABLE t1 ADD engine INT, ENGINE = 'aria', ADD INDEX (engine)",
            "ALTER TABLE `m`.`t` ADD engine INT, ENGINE = InnoDB, ADD INDEX (engine)",
        ),
        ("ALTER TABLE t1 ENGINE `Memory`", "ALTER TABLE `m`.`t` ENGINE InnoDB"),
        ("ALTER TABLE t1 ENGINE=RocksDB", "ALTER TABLE `m`.`t` ENGINE=InnoDB"),
        ("ALTER TABLE t1 COMMENT 'ENGINE=MyISAM'", "ALTER TABLE `m`.`t` COMMENT 'ENGINE=MyISAM'"),
        (
            "CREATE TABLE t1 (engine VARCHAR(9)) ENGINE=CSV PARTITION BY HASH (a)"
            " (PARTITION p ENGINE = MyISAM)",
            "CREATE TABLE IF NOT EXISTS `m`.`t` (engine VARCHAR(9)) ENGINE=InnoDB PARTITION BY"
            " HASH (a) (PARTITION p ENGINE = InnoDB)",
        ),
    ],
)
def test_an_engine_that_cannot_roll_back_is_replaced(sql: str, expected: str) -> None:
    (effect,) = effects_of(classify(sql, default_schema="s"), lambda _: TARGET, ())
    assert " ".join(effect.sql.split()) == expected


MERGE = "CREATE TABLE all_t (a INT) ENGINE=MERGE INSERT_METHOD=LAST UNION=(t1,`u`.`t,(2`) CHARSET=x"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (MERGE, ["s.t1", "u.t,(2"]),
        ("ALTER TABLE d.m UNION (t1)", ["d.t1"]),
        ("ALTER TABLE m UNION=()", []),
        ("ALTER TABLE m ADD `union` INT", []),
        ("CREATE TABLE m (a INT)", []),
        ("CREATE TABLE m (a INT) SELECT 1 UNION (SELECT 2)", []),
        ("DROP TABLE m", []),
    ],
)
def test_the_tables_of_a_merge_table(sql: str, expected: list[str]) -> None:
    found = merged_tables(classify(sql, default_schema="s"))
    assert [f"{name.schema}.{name.table}" for name in found] == expected


def test_a_merge_table_that_is_left_out_must_have_no_tables_that_are_replicated() -> None:
    def route(name: TableName) -> TableName | None:
        return TARGET if name.table.startswith("t") else None

    with pytest.raises(DdlError, match=r"s\.t1"):
        effects_of(classify(MERGE, default_schema="s"), route, ())
    other = classify("CREATE TABLE m (a INT) ENGINE=MERGE UNION=(u)", default_schema="s")
    assert effects_of(other, route, ()) == ()
