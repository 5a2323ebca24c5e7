"""Which statements fill a column with a value of the moment."""

from __future__ import annotations

import pytest

from replicator.ddl.analysis.column_defaults import converts_times, fixes_the_time
from replicator.ddl.parser.classify import classify
from replicator.ddl.rewrite.normalise import normalise


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("ADD d DATETIME DEFAULT NOW()", True),
        ("ADD COLUMN d TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP(3)", True),
        ("ADD d DATETIME DEFAULT (now() + INTERVAL 1 DAY)", True),
        ("ADD u VARCHAR(60) DEFAULT (upper(concat('a', now())))", True),
        ("ADD u CHAR(36) DEFAULT uuid()", False),
        ("ADD u VARCHAR(60) DEFAULT concat('a', uuid())", False),
        ("ADD u VARCHAR(60) DEFAULT (upper(concat('a', rand())))", False),
        ("ADD u INT, ADD v BIGINT DEFAULT connection_id()", False),
        ("ADD v BIGINT DEFAULT (NEXT VALUE FOR s)", False),
        ("ADD v BIGINT DEFAULT nextval(s)", False),
        ("ADD v INT DEFAULT (1 + 2), ADD `user` INT", False),
        ("ADD v INT DEFAULT 1 ON UPDATE CURRENT_TIMESTAMP", False),
        ("ADD d DATETIME", False),
        ("ADD d DATETIME NULL ON UPDATE CURRENT_TIMESTAMP", False),
        ("ADD s VARCHAR(30) DEFAULT 'not now'", False),
        ("MODIFY d DATETIME DEFAULT NOW()", False),
        ("ADD `now` INT", False),
    ],
)
def test_fills_in_moment(action: str, expected: bool) -> None:
    statement = classify(f"ALTER TABLE t {action}", default_schema="s")
    assert fixes_the_time(normalise(statement)) is expected


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
