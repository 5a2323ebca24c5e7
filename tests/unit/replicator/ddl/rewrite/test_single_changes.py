"""An ALTER TABLE of several actions, told as one statement for each."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.single_changes import dropped_keys, renewed_columns, single_changes


def singles(actions: str, head: str = "ALTER TABLE d.t") -> list[str]:
    found = single_changes(classify(f"{head} {actions}", default_schema="d"))
    assert all(text.startswith(f"{head} ") for text in found)
    return [text.removeprefix(f"{head} ") for text in found]


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ("ADD c INT, ADD INDEX i (c)", ["ADD c INT", "ADD INDEX i (c)"]),
        ("ADD INDEX i (c), ADD c INT", ["ADD c INT", "ADD INDEX i (c)"]),
        ("ADD KEY i (a), DROP KEY i", ["DROP KEY i", "ADD KEY i (a)"]),
        ("MODIFY a TEXT, DROP INDEX a", ["DROP INDEX a", "MODIFY a TEXT"]),
        ("RENAME INDEX i TO j, ADD INDEX i (b)", ["RENAME INDEX i TO j", "ADD INDEX i (b)"]),
        ("ADD x INT AFTER b, ADD y INT AFTER x", ["ADD x INT AFTER b", "ADD y INT AFTER x"]),
        ("DROP a, ADD a TEXT", ["DROP a", "ADD a TEXT"]),
        ("RENAME COLUMN a TO b, ADD a INT", ["RENAME COLUMN a TO b", "ADD a INT"]),
        ("CHANGE a b INT, ADD INDEX (b)", ["CHANGE a b INT", "ADD INDEX (b)"]),
        ("DROP a, CHANGE b a INT", ["DROP a", "CHANGE b a INT"]),
        ("DROP INDEX a, DROP COLUMN a", ["DROP INDEX a", "DROP COLUMN a"]),
        ("MODIFY a INT, ALTER a SET DEFAULT 5", ["MODIFY a INT", "ALTER a SET DEFAULT 5"]),
        ("ADD (b INT, c INT, KEY k (c))", ["ADD b INT", "ADD c INT", "ADD KEY k (c)"]),
        (
            "ADD `u v` CHAR(36) NOT NULL DEFAULT uuid() COMMENT 'x' FIRST",
            [
                "ADD `u v` CHAR(36) NOT NULL COMMENT 'x' FIRST",
                "ALTER `u v` SET DEFAULT (uuid ( ))",
            ],
        ),
        (
            "ADD (b INT DEFAULT 5, c DOUBLE DEFAULT (rand()), KEY (c))",
            [
                "ADD b INT DEFAULT 5",
                "ADD c DOUBLE",
                "ALTER c SET DEFAULT ( rand ( ) )",
                "ADD KEY (c)",
            ],
        ),
        (
            "ADD COLUMN IF NOT EXISTS (b DECIMAL(5,2), UNIQUE (b))",
            ["ADD COLUMN IF NOT EXISTS b DECIMAL(5,2)", "ADD UNIQUE (b)"],
        ),
        (
            "ADD b INT, ADD c SET('x,y') PARTITION BY HASH(id) PARTITIONS 2",
            ["ADD b INT", "ADD c SET('x,y')", "PARTITION BY HASH(id) PARTITIONS 2"],
        ),
        ("ADD b INT REMOVE PARTITIONING", ["ADD b INT", "REMOVE PARTITIONING"]),
        ("ADD b INT, DROP c, ALGORITHM=INPLACE, LOCK=NONE", ["ADD b INT", "DROP c"]),
        ("ADD b INT/*, DROP a*/, ADD /*!50000 c */INT", ["ADD b INT", "ADD c INT"]),
        ("ADD b INT, COMMENT='a, b' ENGINE=InnoDB", ["ADD b INT", "COMMENT='a, b' ENGINE=InnoDB"]),
        ("ADD b INT AS (COALESCE(x,1)), ADD c INT", ["ADD b INT AS (COALESCE(x,1))", "ADD c INT"]),
    ],
)
def test_actions_stand_alone(actions: str, expected: list[str]) -> None:
    assert singles(actions) == expected


@pytest.mark.parametrize(
    "actions",
    [
        "ADD c INT",
        "ADD c INT, ALGORITHM=INSTANT",
        # One after the other, names would mean something else.
        "RENAME COLUMN a TO b, RENAME COLUMN b TO a",
        "CHANGE a b INT, CHANGE b c INT",
        "RENAME COLUMN b TO a, DROP a",
        "ADD g INT AS (a + 1), DROP A",
        # Text columns get another charset, or not, by the place of the default.
        "ADD c TEXT, DEFAULT CHARSET=utf8mb4",
        "CONVERT TO CHARACTER SET latin1, ADD c TEXT",
        "ADD c INT, RENAME TO other",
        "ADD c INT, EXCHANGE PARTITION p WITH TABLE x",
    ],
)
def test_some_do_not(actions: str) -> None:
    assert singles(actions) == []


def test_the_head_of_the_statement_stays() -> None:
    assert singles("ADD a INT, ADD b INT", "ALTER TABLE IF EXISTS `d`.`t`") == [
        "ADD a INT",
        "ADD b INT",
    ]
    online = classify("ALTER ONLINE TABLE d.t WAIT 5 ADD a INT, DROP b", default_schema="d")
    assert single_changes(online) == ("ALTER TABLE d.t ADD a INT", "ALTER TABLE d.t DROP b")


def test_columns_that_come_anew_and_keys_that_go() -> None:
    found = classify(
        "ALTER TABLE t DROP COLUMN IF EXISTS `A`, ADD (a INT, x INT), DROP b, DROP INDEX I,"
        " ADD INDEX b (x), DROP c, CHANGE d c INT, DROP KEY IF EXISTS k, ADD COLUMN n INT",
        default_schema="d",
    )
    assert renewed_columns(found) == {"a"}
    assert dropped_keys(found) == {"i", "k"}


def test_other_statements_have_none() -> None:
    for sql in ("CREATE TABLE t (a INT, b INT)", "DROP TABLE a, b", "RENAME TABLE a TO b, b TO c"):
        assert single_changes(classify(sql, default_schema="d")) == ()


def test_what_does_not_belong_to_the_target_is_left_out() -> None:
    found = single_changes(
        classify(
            "SET STATEMENT max_statement_time=5 FOR ALTER IGNORE TABLE t ADD t.c INT, ADD b INT",
            default_schema="d",
        )
    )
    assert found == ("ALTER TABLE t ADD c INT", "ALTER TABLE t ADD b INT")
