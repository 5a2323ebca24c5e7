"""Which statements give the rows that are there values that no other execution gives."""

from __future__ import annotations

import pytest

from replicator.ddl.analysis.column_defaults import nondeterministic_defaults
from replicator.ddl.parser.classify import classify


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("ADD u CHAR(36) DEFAULT uuid()", "uuid()"),
        ("ADD (a INT, u CHAR(36) NOT NULL DEFAULT (uuid()), b INT)", "uuid()"),
        ("ADD COLUMN u BINARY(16) DEFAULT (uuid_to_bin(UUID())) FIRST", "UUID()"),
        ("ADD u VARCHAR(60) DEFAULT concat('a', rand(3))", "rand()"),
        ("DROP a, ADD v BIGINT DEFAULT connection_id()", "connection_id()"),
        ("ADD v BIGINT DEFAULT (NEXT VALUE FOR s)", "NEXT"),
        ("ADD v VARCHAR(99) DEFAULT current_user", "current_user"),
        ("ADD v VARCHAR(99) DEFAULT 'a', ADD w VARCHAR(99) DEFAULT user()", "user()"),
        ("ADD d DATETIME DEFAULT now()", ""),
        ("ADD d DATETIME DEFAULT (now() + INTERVAL 1 DAY)", ""),
        ("ADD u CHAR(36) DEFAULT 'uuid()'", ""),
        ("ADD u CHAR(36) DEFAULT (uuid)", ""),
        ("ADD u CHAR(36) DEFAULT NULL COMMENT 'x' CHECK (length(uuid(a)) > 1)", ""),
        ("ADD u CHAR(36), ALTER v SET DEFAULT (uuid())", ""),
        ("MODIFY u CHAR(36) DEFAULT uuid()", ""),
        ("ADD u CHAR(36) DEFAULT", ""),
    ],
)
def test_nondeterministic_defaults(action: str, expected: str) -> None:
    statement = classify(f"ALTER TABLE t {action}", default_schema="s")
    assert nondeterministic_defaults(statement) == expected


def test_a_new_table_has_no_rows() -> None:
    sql = "CREATE TABLE t (u CHAR(36) DEFAULT uuid())"
    assert nondeterministic_defaults(classify(sql, default_schema="s")) == ""
