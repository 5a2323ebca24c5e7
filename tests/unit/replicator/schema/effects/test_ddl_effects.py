from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.names import TableName
from replicator.schema.effects.ddl_effects import DdlError, Effect, effects_of, one_by_one


def route(name: TableName) -> TableName | None:
    """s.t… goes to m.t, s.x… to m.x…, other tables of s keep their names in m; s2 is left out."""
    if name.schema != "s":
        return None
    if not name.table:
        return TableName("m", "")
    return TableName("m", "t" if name.table.startswith("t") else name.table)


MEMBERS = [TableName("s", "t1"), TableName("s", "t2"), TableName("s", "x")]


def effects(sql: str) -> tuple[Effect, ...]:
    return effects_of(classify(sql, default_schema="s"), route, MEMBERS)


def brief(sql: str) -> list[tuple[str, str, str, str]]:
    return [(e.kind.value, str(e.table), str(e.target), e.sql) for e in effects(sql)]


def test_the_shards_that_one_statement_drops_come_one_after_the_other() -> None:
    found = one_by_one(effects("DROP TABLE IF EXISTS t1, x, t2, nowhere.y, t9"))
    names = [[effect.table.table for effect in one] for one in found]
    assert names == [["t1", "x"], ["t2"], ["t9"]]


def test_shards_whose_move_is_skipped_leave_one_after_the_other() -> None:
    """Those that take one another's names do so at one moment."""
    found = effects("RENAME TABLE t1 TO y1, t2 TO mid, x TO t2, mid TO x, t3 TO t5")
    waves = list(one_by_one(tuple(replace(effect, instead=()) for effect in found)))
    assert [[(e.kind.value, e.table.table) for e in wave] for wave in waves] == [
        [("move out", "t1"), ("move in", "y1")],
        [("move out", "x"), ("move out", "t2"), ("move in", "t2"), ("move in", "x")],
        [("rename", "t3")],
    ]
    names = [[(a.table, b.table) for a, b in wave[0].statement.renames] for wave in waves]
    assert names[1:] == [[("t2", "mid"), ("x", "t2"), ("mid", "x")], [("t3", "t5")]]
    assert list(one_by_one(found)) == [found]


@pytest.mark.parametrize(
    "sql", ["DROP DATABASE s", "DROP TABLE nowhere.y", "RENAME TABLE t1 TO t9"]
)
def test_other_effects_stay_together(sql: str) -> None:
    assert list(one_by_one(effects(sql))) == [effects(sql)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "ALTER TABLE t1 ADD c INT",
            [("alter", "s.t1", "m.t", "ALTER TABLE `m`.`t` ADD c INT")],
        ),
        (
            "CREATE INDEX i ON s.t2 (a)",
            [("alter", "s.t2", "m.t", "CREATE INDEX i ON `m`.`t` (a)")],
        ),
        (
            "CREATE TABLE t3 (a INT)",
            [("create", "s.t3", "m.t", "CREATE TABLE IF NOT EXISTS `m`.`t` (a INT)")],
        ),
        (
            "DROP TABLE t1, s2.y, x",
            [
                ("drop", "s.t1", "m.t", "DROP TABLE IF EXISTS `m`.`t`"),
                ("drop", "s.x", "m.x", "DROP TABLE IF EXISTS `m`.`x`"),
            ],
        ),
        ("TRUNCATE t1", [("truncate", "s.t1", "m.t", "TRUNCATE TABLE `m`.`t`")]),
        (
            "CREATE DATABASE s",
            [("create schema", "s.", "m.", "CREATE DATABASE IF NOT EXISTS `m`")],
        ),
        (
            "DROP DATABASE s",
            [
                ("drop", "s.t1", "m.t", ""),
                ("drop", "s.t2", "m.t", ""),
                ("drop", "s.x", "m.x", ""),
                ("drop schema", "s.", "m.", "DROP DATABASE IF EXISTS `m`"),
            ],
        ),
        ("RENAME TABLE t1 TO t9", [("rename", "s.t1", "m.t", "")]),
        ("ALTER TABLE t1 RENAME TO t9", [("rename", "s.t1", "m.t", "")]),
        (
            "RENAME TABLE x TO y",
            [
                ("move out", "s.x", "m.x", ""),
                ("move in", "s.y", "m.y", "RENAME TABLE `m`.`x` TO `m`.`y`"),
            ],
        ),
        (
            "RENAME TABLE x TO mid, y TO x, mid TO y",
            [
                ("move out", "s.y", "m.y", ""),
                ("move out", "s.x", "m.x", ""),
                (
                    "move in",
                    "s.x",
                    "m.x",
                    "RENAME TABLE `m`.`y` TO `m`.`y_moving`, `m`.`x` TO `m`.`y`,"
                    " `m`.`y_moving` TO `m`.`x`",
                ),
                ("move in", "s.y", "m.y", ""),
            ],
        ),
        (
            "RENAME TABLE x TO s2.old, y TO x",
            [
                ("move out", "s.x", "m.x", ""),
                ("move out", "s.y", "m.y", ""),
                ("move in", "s.x", "m.x", "RENAME TABLE `m`.`y` TO `m`.`x`"),
            ],
        ),
        ("RENAME TABLE x TO mid, mid TO x", []),
        # MariaDB logs IF EXISTS for tables that are not there, too.
        (
            "RENAME TABLE IF EXISTS y TO z, x TO mid, mid TO v, t3 TO t1",
            [
                ("move out", "s.x", "m.x", ""),
                ("move in", "s.v", "m.v", "RENAME TABLE `m`.`x` TO `m`.`v`"),
            ],
        ),
        ("RENAME TABLE IF EXISTS y TO z", []),
        ("ALTER TABLE IF EXISTS y RENAME TO z", []),
        ("ALTER TABLE IF EXISTS t3 ADD c INT", []),
        (
            "ALTER TABLE IF EXISTS x ADD c INT",
            [("alter", "s.x", "m.x", "ALTER TABLE IF EXISTS `m`.`x` ADD c INT")],
        ),
        ("ALTER ONLINE TABLE t1 WAIT 5 RENAME = t9", [("rename", "s.t1", "m.t", "")]),
        (
            "RENAME TABLE t1 TO t9, t2 TO t1",
            [("rename", "s.t1", "m.t", ""), ("rename", "s.t2", "m.t", "")],
        ),
        (
            "RENAME TABLE t1 TO t9, t2 TO t1, t9 TO t2",
            [("rename", "s.t2", "m.t", ""), ("rename", "s.t1", "m.t", "")],
        ),
        (
            "RENAME TABLE t1 TO s2.old, t2 TO t1",
            [("move out", "s.t1", "m.t", ""), ("rename", "s.t2", "m.t", "")],
        ),
        (
            "RENAME TABLE x TO y, t1 TO t9",
            [
                ("move out", "s.x", "m.x", ""),
                ("rename", "s.t1", "m.t", ""),
                ("move in", "s.y", "m.y", "RENAME TABLE `m`.`x` TO `m`.`y`"),
            ],
        ),
        (
            "RENAME TABLE t1 TO s2.a, x TO t1, t2 TO s2.b, s2.a TO x, s2.b TO s2.c",
            [
                ("move out", "s.x", "m.x", ""),
                ("move out", "s.t1", "m.t", ""),
                ("move out", "s.t2", "m.t", ""),
                (
                    "move in",
                    "s.t1",
                    "m.t",
                    "RENAME TABLE `m`.`x` TO `m`.`x_moving`, `m`.`t` TO `m`.`x`,"
                    " `m`.`x_moving` TO `m`.`t`",
                ),
                ("move in", "s.x", "m.x", ""),
            ],
        ),
        ("RENAME TABLE x TO s2.x", [("move out", "s.x", "m.x", "")]),
        ("ALTER TABLE s2.y ADD c INT", []),
        ("CREATE TEMPORARY TABLE t1 (a INT)", []),
        ("CREATE SEQUENCE t3", []),
        ("CREATE SEQUENCE IF NOT EXISTS x", []),
        ("ALTER SEQUENCE x RESTART 5", []),
        (
            "CREATE OR REPLACE SEQUENCE x",
            [("drop", "s.x", "m.x", "DROP TABLE IF EXISTS `m`.`x`")],
        ),
        ("GRANT SELECT ON s.* TO u", []),
        ("ANALYZE TABLE t1", []),
        ("REPLACE INTO percona.checksums SELECT 1", []),
        ("CREATE VIEW v AS SELECT * FROM t1", []),
    ],
)
def test_effects_of(sql: str, expected: list[tuple[str, str, str, str]]) -> None:
    assert brief(sql) == expected


def test_what_or_replace_replaces_is_dropped_before() -> None:
    (effect,) = effects("CREATE OR REPLACE TABLE t1 (a INT)")
    assert effect.sql.split() == ["CREATE", "TABLE", "IF", "NOT", "EXISTS", "`m`.`t`", "(a", "INT)"]
    assert effect.clears == "DROP TABLE IF EXISTS `m`.`t`"
    *dropped, schema = effects("CREATE OR REPLACE DATABASE s")
    assert [(e.kind.value, str(e.table), e.sql) for e in dropped] == [
        ("drop", "s.t1", ""),
        ("drop", "s.t2", ""),
        ("drop", "s.x", ""),
    ]
    assert schema.kind.value == "create schema"
    assert schema.clears == "DROP DATABASE IF EXISTS `m`"
    assert schema.own == (TableName("m", "t"), TableName("m", "x"))
    assert effects("DROP DATABASE s")[-1].own == schema.own
    assert effects("CREATE DATABASE s")[-1].own == ()
    assert not effects("CREATE TABLE t1 (a INT)")[0].clears


def test_of_a_failed_statement_only_what_it_has_certainly_done() -> None:
    def failed(sql: str) -> tuple[Effect, ...]:
        statement = replace(classify(sql, default_schema="s"), error=1048)
        return effects_of(statement, route, MEMBERS)

    (effect,) = failed("CREATE OR REPLACE TABLE t1 (a INT) PARTITION BY HASH (x)")
    assert (effect.kind.value, effect.sql) == ("drop", "DROP TABLE IF EXISTS `m`.`t`")
    assert [effect.table.table for effect in failed("DROP TABLE t1, nope")] == ["t1", "nope"]
    assert failed("ALTER TABLE s2.y ADD c INT") == ()
    for sql in ("ALTER TABLE t1 ADD c INT", "TRUNCATE t1", "CREATE TABLE t3 (a INT)"):
        with pytest.raises(DdlError, match="1048"):
            failed(sql)


def test_tables_that_change_places_say_where_each_was_before() -> None:
    moved = effects("RENAME TABLE x TO mid, y TO x, mid TO y")
    assert [(e.kind.value, e.table.table, e.renamed_to and e.renamed_to.table) for e in moved] == [
        ("move out", "y", "x"),
        ("move out", "x", "y"),
        ("move in", "x", "y"),
        ("move in", "y", "x"),
    ]


def test_a_table_that_takes_the_place_of_one_given_up_takes_its_target() -> None:
    moved = effects("RENAME TABLE x TO s2.old, w TO z, y TO x")
    assert [(e.kind.value, e.table.table, e.clears) for e in moved] == [
        ("move out", "x", ""),
        ("move out", "w", ""),
        ("move out", "y", ""),
        ("move in", "z", "DROP TABLE IF EXISTS `m`.`x`"),
        ("move in", "x", ""),
    ]
    assert not any(e.clears for e in effects("RENAME TABLE x TO mid, y TO x, mid TO y"))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CREATE TABLE x (engine INT)ENGINE=MyISAM", "(engine INT)ENGINE=InnoDB"),
        ("CREATE TABLE x (a INT) ENGINE 'Aria' COMMENT 'c'", "(a INT) ENGINE InnoDB COMMENT 'c'"),
        (
            "CREATE TABLE x (a INT) ENGINE=MEMORY PARTITION BY RANGE (a)"
            " (PARTITION p VALUES LESS THAN (5) ENGINE = MEMORY)",
            "(a INT) ENGINE=InnoDB PARTITION BY RANGE (a)"
            " (PARTITION p VALUES LESS THAN (5) ENGINE = InnoDB)",
        ),
        ("ALTER TABLE x ENGINE myisam, ADD b INT", "ENGINE InnoDB, ADD b INT"),
        ("ALTER TABLE x ADD engine memory", "ADD engine memory"),
        ("ALTER TABLE x ADD b INT, ENGINE = `MyISAM`", "ADD b INT, ENGINE = InnoDB"),
        ("ALTER TABLE x ENGINE=RocksDB", "ENGINE=InnoDB"),
    ],
)
def test_a_target_has_an_engine_that_can_roll_back(sql: str, expected: str) -> None:
    assert effects(sql)[0].sql.split("`m`.`x` ")[1] == expected


def test_a_rename_says_the_new_name() -> None:
    assert effects("RENAME TABLE t1 TO t9")[0].renamed_to == TableName("s", "t9")


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("INSERT INTO t1 VALUES (1)", "binlog_format=ROW"),
        ("UPDATE t1 SET a = 1", "binlog_format=ROW"),
        ("FROBNICATE t1", "does not understand"),
        ("XA PREPARE 'x'", "does not understand"),
        ("ALTER TABLE t1 RENAME TO t9, ADD c INT", "two statements"),
        ("ALTER TABLE t1 MODIFY b BIGINT, RENAME t9", "two statements"),
        ("ALTER TABLE t1 ENGINE = InnoDB, RENAME AS t9", "two statements"),
        ("RENAME TABLE IF EXISTS s2.y TO t9", "does not know the rows"),
        ("RENAME TABLE s2.y TO t9", "does not know the rows"),
        ("RENAME TABLE x TO s2.tmp, s2.y TO x, s2.tmp TO y", "does not know the rows"),
        ("ALTER TABLE t1 EXCHANGE PARTITION p WITH TABLE x", "exchanges a partition"),
        ("ALTER TABLE t1 IMPORT TABLESPACE", "imports a tablespace"),
        ("ALTER TABLE x SEQUENCE=1", "becomes a sequence"),
        ("ALTER TABLE x COMMENT 'c', sequence 0", "becomes a sequence"),
        ("CREATE TABLE x (a INT) ENGINE=MERGE UNION=(t1, t2)", "MERGE table"),
    ],
)
def test_statements_that_cannot_be_carried_over_say_why(sql: str, reason: str) -> None:
    with pytest.raises(DdlError, match=reason):
        effects(sql)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "ALTER TABLE t1 CONVERT PARTITION p TO TABLE s2.u",
            "ALTER TABLE `m`.`t` DROP    PARTITION p",
        ),
        (
            "alter table `t1` convert partition `to` to table `s2`.`a b`",
            "alter table `m`.`t` DROP    partition `to`",
        ),
    ],
)
def test_a_partition_that_becomes_a_table_of_others_is_dropped(sql: str, expected: str) -> None:
    (effect,) = effects(sql)
    assert (effect.kind.value, effect.sql.rstrip()) == ("alter", expected)
    assert effect.discards_rows


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t1 CONVERT PARTITION p TO TABLE t9",
        "ALTER TABLE t1 CONVERT PARTITION p TO TABLE y",
        "ALTER TABLE t1 CONVERT TABLE s2.u TO PARTITION p VALUES LESS THAN (5)",
        "ALTER TABLE t1 EXCHANGE PARTITION p WITH TABLE s2.u",
        "ALTER TABLE t1 CONVERT PARTITION p /* */ TO /* */ TABLE s2.u",
    ],
)
def test_other_tables_that_change_places_with_partitions_are_refused(sql: str) -> None:
    with pytest.raises(DdlError, match="exchanges a partition"):
        effects(sql)
