"""What a table is after an ALTER TABLE, by its actions."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.alter_parser import typed_actions
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.parser.table_text import table_definition
from replicator.ddl.rewrite.altered_table import AlteredTable, UncertainTableError, altered_table
from replicator.ddl.rewrite.table_sql import create_table_sql
from replicator.mysql.names import TableName

LINES = (
    "`id` int NOT NULL, `a` int DEFAULT NULL, `b` varchar(9) NOT NULL, PRIMARY KEY (`id`),"
    " KEY `ab` (`a`,`b`)"
)


def altered(actions: str, lines: str = LINES, charset: str = "CHARSET=utf8") -> AlteredTable:
    before = table_definition(f"CREATE TABLE `t` (\n {lines}\n) ENGINE=InnoDB DEFAULT {charset}")
    statement = classify(f"ALTER TABLE t {actions}", default_schema="d")
    return altered_table(before, typed_actions(statement))


@pytest.mark.parametrize(
    ("actions", "wanted"),
    [
        ("ADD c INT FIRST", "`c` INT, `id` int NOT NULL, `a` int DEFAULT NULL"),
        ("ADD c INT AFTER a, ADD d INT AFTER c", "DEFAULT NULL, `c` INT, `d` INT, `b`"),
        ("DROP a", "KEY `ab` (`b`)"),
        ("DROP a, DROP b", "`id` int NOT NULL, PRIMARY KEY (`id`) )"),
        ("RENAME COLUMN a TO c", "KEY `ab` (`c`, `b`)"),
        ("CHANGE a b INT, CHANGE b a INT", "KEY `ab` (`b`, `a`)"),
        ("MODIFY a BIGINT FIRST", "( `a` BIGINT, `id` int NOT NULL,"),
        ("ALTER b SET DEFAULT 'x'", "`b` varchar(9) NOT NULL DEFAULT 'x'"),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (a)", "`a` int NOT NULL,"),
        ("DROP PRIMARY KEY, ADD c INT PRIMARY KEY", "PRIMARY KEY (`c`)"),
        ("MODIFY id BIGINT PRIMARY KEY", "`id` BIGINT NOT NULL, `a`"),
        ("ADD UNIQUE u (b), DROP KEY ab", "PRIMARY KEY (`id`), UNIQUE KEY `u` (`b`) )"),
        ("RENAME KEY ab TO ba", "KEY `ba` (`a`, `b`)"),
        ("DROP KEY IF EXISTS nowhere", "KEY `ab` (`a`, `b`)"),
        ("ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES p (id)", "REFERENCES `p` (`id`)"),
        ("COMMENT = 'x', ALGORITHM = COPY", "CHARSET=utf8 COMMENT='x'"),
        ("CONVERT TO CHARACTER SET latin1", "`b` varchar(9) CHARACTER SET latin1 NOT NULL"),
    ],
)
def test_the_actions_change_the_definition(actions: str, wanted: str) -> None:
    found = create_table_sql(TableName("d", "t"), altered(actions).definition)
    assert wanted in " ".join(found.split())


TEXTS = (
    "`id` int NOT NULL, `b` varchar(9), `t` text, `l` text CHARACTER SET latin1, KEY `p` (`b`(3))"
)


@pytest.mark.parametrize(
    ("actions", "wanted"),
    [
        (
            "CHARSET latin1",
            "`b` varchar(9) CHARACTER SET utf8 COLLATE utf8_bin, `t` text CHARACTER",
        ),
        ("CHARSET latin1", ") ENGINE=InnoDB CHARSET=latin1"),
        ("COLLATE utf8mb4_bin, ADD c TEXT", "latin1, `c` TEXT, KEY"),
        ("COLLATE utf8mb4_bin, ADD c TEXT", "CHARSET=utf8mb4 COLLATE=utf8mb4_bin"),
        ("MODIFY b CHAR(8), CHARSET utf8mb4 COLLATE utf8mb4_bin", "`b` CHAR(8), `t`"),
        (
            "CONVERT TO CHARACTER SET utf8mb4",
            "`t` mediumtext CHARACTER SET utf8mb4, `l` mediumtext",
        ),
        ("CONVERT TO CHARACTER SET latin1", "`t` text CHARACTER SET latin1, `l` text CHARACTER"),
        ("ADD c CHAR, CONVERT TO CHARACTER SET latin1", "`c` CHAR CHARACTER SET latin1"),
        ("CONVERT TO CHARACTER SET latin1, ADD c CHAR", "`c` CHAR CHARACTER SET latin1"),
        ("MODIFY b VARCHAR(3)", "KEY `p` (`b`) )"),
        ("MODIFY b VARCHAR(4)", "KEY `p` (`b`(3)) )"),
        ("MODIFY b INT", "KEY `p` (`b`) )"),
        ("CHANGE b c TEXT", "KEY `p` (`c`(3)) )"),
    ],
)
def test_text_columns_of_a_table_with_another_charset(actions: str, wanted: str) -> None:
    found = altered(actions, TEXTS, "CHARSET=utf8 COLLATE=utf8_bin").definition
    assert wanted in " ".join(create_table_sql(TableName("d", "t"), found).split())


def test_values_come_from_the_columns_of_before() -> None:
    found = altered("CHANGE a b INT, CHANGE b a INT, ADD c INT, DROP id")
    assert found.origins == {"b": "a", "a": "b"}


@pytest.mark.parametrize(
    ("actions", "lines"),
    [
        ("DROP nowhere", LINES),
        ("ADD a INT", LINES),
        ("DROP KEY nowhere", LINES),
        ("ADD PRIMARY KEY (a)", LINES),
        ("ADD KEY ab (a)", LINES),
        ("DROP CHECK nowhere", LINES),
        ("PARTITION BY HASH (id)", LINES),
        ("RENAME TO u", LINES),
        ("FROBNICATE", LINES),
        ("ADD c SERIAL", LINES),
        ("ADD c INT SERIAL DEFAULT VALUE", LINES),
        ("ADD c INT REFERENCES p (id)", LINES),
        ("DROP a, ADD a INT", LINES),
        ("CONVERT TO CHARACTER SET latin1, ADD c CHAR(3) CHARACTER SET utf8", LINES),
        ("CONVERT TO CHARACTER SET utf8mb4, MODIFY b TEXT", LINES),
        ("CONVERT TO CHARACTER SET utf8mb4, COLLATE utf8mb4_bin", LINES),
        ("CONVERT TO CHARACTER SET DEFAULT", LINES),
        ("CONVERT TO CHARACTER SET utf8mb4", f"{LINES}, `t` text CHARACTER SET greek"),
        ("RENAME COLUMN a TO c", f"{LINES}, `g` int GENERATED ALWAYS AS (`a` + 1) VIRTUAL"),
        ("DROP a", f"{LINES}, CONSTRAINT `c` CHECK (`a` > 1)"),
        ("DROP a", f"{LINES}, CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `p` (`id`)"),
    ],
)
def test_what_is_not_certain_is_not_said(actions: str, lines: str) -> None:
    with pytest.raises(UncertainTableError):
        altered(actions, lines)
