"""Statements for the target name an engine that can roll back."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.classify import classify
from replicator.ddl.rewrite.storage import merged_tables
from replicator.mysql.names import TableName
from replicator.schema.effects.ddl_effects import DdlError, effects_of

TARGET = TableName("m", "t")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE t1 ENGINE=MyISAM", "ALTER TABLE `m`.`t` ENGINE=InnoDB"),
        (
            "ALTER TABLE t1 ADD engine INT, ENGINE = 'aria', ADD INDEX (engine)",
            "ALTER TABLE `m`.`t` ADD engine INT, ENGINE = InnoDB, ADD INDEX (engine)",
        ),
        ("ALTER TABLE t1 ENGINE `Memory`", "ALTER TABLE `m`.`t` ENGINE InnoDB"),
        ("ALTER TABLE t1 ENGINE=RocksDB", "ALTER TABLE `m`.`t` ENGINE=RocksDB"),
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
