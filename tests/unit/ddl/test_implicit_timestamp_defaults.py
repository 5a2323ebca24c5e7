"""Which columns are something else under another explicit_defaults_for_timestamp."""

from __future__ import annotations

import pytest

from replicator.ddl.analysis.column_defaults import implicit_timestamps
from replicator.ddl.parser.classify import classify


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
