"""Columns whose defaults may be other values on the target than in the shards."""

from __future__ import annotations

import pytest

from replicator.ddl.analysis.column_defaults import (
    DefinedColumn,
    converts_times,
    defined_times,
    implicit_timestamps,
    shard_only_columns,
    truncated_times,
)
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.retarget import splice


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("ADD d DATETIME DEFAULT NOW()", "d"),
        ("ADD COLUMN d TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP(3)", "d"),
        ("ADD d DATETIME DEFAULT (now() + INTERVAL 1 DAY)", "d"),
        ("ADD u VARCHAR(60) DEFAULT (upper(concat('a', now())))", "u"),
        ("ADD u VARCHAR(60) DEFAULT concat('a', now())", "u"),
        ("ADD (a INT DEFAULT 1, b DATE DEFAULT (curdate())), ADD c TIME DEFAULT now()", "b c"),
        ("ADD COLUMN IF NOT EXISTS d DATETIME DEFAULT localtime FIRST", "d"),
        ("ADD v INT DEFAULT (1 + 2), ADD `user` INT", ""),
        ("ADD v INT DEFAULT 1 ON UPDATE CURRENT_TIMESTAMP", ""),
        ("ADD d DATETIME", ""),
        ("ADD d DATETIME NULL ON UPDATE CURRENT_TIMESTAMP", ""),
        ("ADD s VARCHAR(30) DEFAULT 'not now'", ""),
        ("MODIFY d DATETIME DEFAULT NOW()", ""),
        ("MODIFY d DATETIME NOT NULL", ""),
        ("MODIFY d TIMESTAMP NOT NULL DEFAULT '2020-01-01'", "d"),
        ("CHANGE d e TIMESTAMP(3) NOT NULL DEFAULT NOW(3)", "e"),
        ("MODIFY d TIMESTAMP NULL DEFAULT NULL", ""),
        ("ADD `now` INT, ADD KEY now (id)", ""),
    ],
)
def test_values_that_depend_on_the_moment(action: str, expected: str) -> None:
    statement = classify(f"ALTER TABLE t {action}", default_schema="s")
    assert " ".join(shard_only_columns(statement, explicit=True)) == expected


@pytest.mark.parametrize(("explicit", "expected"), [(True, ()), (False, ("d",)), (None, ("d",))])
def test_timestamps_without_a_default(explicit: bool | None, expected: tuple[str, ...]) -> None:
    statement = classify("ALTER TABLE t ADD d TIMESTAMP, ADD e DATETIME", default_schema="s")
    assert shard_only_columns(statement, explicit=explicit) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE t MODIFY v TIMESTAMP", True),
        ("ALTER TABLE t change v v date", True),
        ("ALTER TABLE t ADD v DATETIME", False),
        ("ALTER TABLE t MODIFY v INT COMMENT 'timestamp', ADD `time` INT", False),
        ("CREATE TABLE t (v TIMESTAMP)", False),
    ],
)
def test_converts_times(sql: str, expected: bool) -> None:
    assert converts_times(sql) is expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE t ADD a TIMESTAMP", ("a",)),
        ("ALTER TABLE t ADD COLUMN IF NOT EXISTS a TIMESTAMP(3) NOT NULL AFTER b", ("a",)),
        ("ALTER TABLE t ADD (a TIMESTAMP, b INT, c TIMESTAMP NOT NULL), DROP d", ("a", "c")),
        ("ALTER TABLE t CHANGE timestamp b TIMESTAMP COMMENT 'NULL'", ("b",)),
        ("ALTER TABLE t MODIFY a TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", ("a",)),
        ("ALTER TABLE t ADD a TIMESTAMP NULL", ()),
        ("ALTER TABLE t ADD a TIMESTAMP(6) NULL DEFAULT NULL", ()),
        ("ALTER TABLE t ADD a TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP", ()),
        ("ALTER TABLE t ADD a TIMESTAMP DEFAULT '2020-01-01'", ()),
        ("ALTER TABLE t ADD a TIMESTAMP AS (b) STORED", ()),
        ("ALTER TABLE t ADD timestamp INT, ADD KEY timestamp (timestamp)", ()),
        ("ALTER TABLE t DROP timestamp", ()),
        ("CREATE TABLE t (a TIMESTAMP)", ()),
    ],
)
def test_implicit_timestamps(sql: str, expected: tuple[str, ...]) -> None:
    assert implicit_timestamps(classify(sql, default_schema="s")) == expected


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ("ADD a TIME DEFAULT '-01:00:00.9', ADD b INT DEFAULT '1.9'",
         "ADD a TIME DEFAULT '-01:00:00', ADD b INT DEFAULT '1.9'"),
        ('ADD (a DATETIME(2) NOT NULL DEFAULT "2020-01-01 00:00:00.129" COMMENT \'.1234\')',
         'ADD (a DATETIME(2) NOT NULL DEFAULT "2020-01-01 00:00:00.12" COMMENT \'.1234\')'),
        ("MODIFY a TIMESTAMP(3) DEFAULT '2020-01-01 00:00:00.1230'",
         "MODIFY a TIMESTAMP(3) DEFAULT '2020-01-01 00:00:00.1230'"),
        ("DROP a, ADD KEY time (a)", "DROP a, ADD KEY time (a)"),
    ],
)  # fmt: skip
def test_defaults_of_times_as_a_server_keeps_them_that_truncates(
    actions: str, expected: str
) -> None:
    statement = classify(f"ALTER TABLE t {actions}", default_schema="s")
    assert splice(statement.sql, truncated_times(statement)) == f"ALTER TABLE t {expected}"


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ("MODIFY a DATETIME", [DefinedColumn("a", "a", "datetime", 0, 0)]),
        ("CHANGE COLUMN `a` b TIME(3) NULL", [DefinedColumn("a", "b", "time", 3, 0)]),
        ("ADD (a INT, b TIMESTAMP(2) NULL DEFAULT '2020-01-01 00:00:00.1230')",
         [DefinedColumn("", "b", "timestamp", 2, 3)]),
        ("ADD a DATE, ADD KEY b (a), DROP c, MODIFY d DATETIME(6) DEFAULT NOW(6)",
         [DefinedColumn("d", "d", "datetime", 6, 0)]),
    ],
)  # fmt: skip
def test_defined_times(actions: str, expected: list[DefinedColumn]) -> None:
    found = defined_times(classify(f"ALTER TABLE t {actions}", default_schema="s"))
    assert list(found) == expected


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("ADD u CHAR(36) DEFAULT uuid()", "u"),
        ("ADD (a INT, u CHAR(36) NOT NULL DEFAULT (uuid()), b INT)", "u"),
        ("ADD COLUMN u BINARY(16) DEFAULT (uuid_to_bin(UUID())) FIRST", "u"),
        ("ADD u VARCHAR(60) DEFAULT concat('a', rand(3))", "u"),
        ("DROP a, ADD v BIGINT DEFAULT connection_id()", "v"),
        ("ADD v BIGINT DEFAULT (NEXT VALUE FOR s)", "v"),
        ("ADD v VARCHAR(99) DEFAULT current_user", "v"),
        ("ADD v VARCHAR(99) DEFAULT 'a', ADD w VARCHAR(99) DEFAULT user()", "w"),
        ("ADD u CHAR(36) DEFAULT 'uuid()'", ""),
        ("ADD u CHAR(36) DEFAULT (uuid)", ""),
        ("ADD u CHAR(36) DEFAULT NULL COMMENT 'x' CHECK (length(uuid(a)) > 1)", ""),
        ("ADD u CHAR(36), ALTER v SET DEFAULT (uuid())", ""),
        ("MODIFY u CHAR(36) DEFAULT uuid()", ""),
        ("ADD u CHAR(36) DEFAULT", ""),
    ],
)
def test_values_that_differ_at_each_execution(action: str, expected: str) -> None:
    statement = classify(f"ALTER TABLE t {action}", default_schema="s")
    assert " ".join(shard_only_columns(statement, explicit=True)) == expected


def test_a_new_table_has_no_rows() -> None:
    sql = "CREATE TABLE t (u CHAR(36) DEFAULT uuid())"
    statement = classify(sql, default_schema="s")
    assert shard_only_columns(statement, explicit=True) == ()
