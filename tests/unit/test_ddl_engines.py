"""Statements for the target name an engine that can roll back."""

from __future__ import annotations

import pytest

from replicator.ddl.recognise import recognise
from replicator.mysql.names import TableName
from replicator.schema.ddl_effects import effects_of

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
    (effect,) = effects_of(recognise(sql, default_schema="s"), lambda _: TARGET, ())
    assert " ".join(effect.sql.split()) == expected
