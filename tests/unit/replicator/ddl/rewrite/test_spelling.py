"""One spelling of the statements that servers take for the same change."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.normalise import normalise
from replicator.ddl.rewrite.spelling import plain_spelling

SAME = [
    ("ADD COLUMN c INT COMMENT 'a, index (b)' AFTER `x y`",) * 2,
    ("ADD COLUMN c INT AFTER a, DROP COLUMN b", "ADD c INT AFTER a, DROP b"),
    ("MODIFY COLUMN a INT, ALTER COLUMN b SET DEFAULT 1", "MODIFY a INT, ALTER b SET DEFAULT 1"),
    ("CHANGE a `A` INT NOT NULL", "MODIFY a INT NOT NULL"),
    ("CHANGE COLUMN a a INT FIRST", "MODIFY COLUMN a INT FIRST"),
    ("ADD INDEX k (a(3), b DESC)", "ADD KEY k (a(3), b DESC)"),
    ("ADD UNIQUE INDEX k (a)", "ADD UNIQUE k (a)"),
    ("ADD UNIQUE KEY (a)", "ADD UNIQUE (a)"),
    ("DROP INDEX k", "DROP KEY `k`"),
    ("ADD INDEX IF NOT EXISTS k (a)", "ADD KEY k (a)"),
]
SAME_WHOLE = [
    ("CREATE INDEX k ON t (a(3), b)", "ALTER TABLE t ADD INDEX k (a(3), b)"),
    ("CREATE UNIQUE INDEX IF NOT EXISTS k ON d.t (a)", "ALTER TABLE t ADD UNIQUE KEY k (a)"),
    ("CREATE FULLTEXT INDEX k ON t (a) ALGORITHM=INPLACE", "ALTER TABLE t ADD FULLTEXT k (a)"),
    ("DROP INDEX k ON t", "ALTER TABLE t DROP KEY k"),
]
OTHER = [
    ("ADD `index` INT", "ADD `key` INT"),
    ("ADD `column` INT", "ADD COLUMN INT"),
    ("ADD INDEX k (a)", "ADD UNIQUE k (a)"),
    ("CHANGE a b INT", "MODIFY b INT"),
    ("RENAME COLUMN a TO b", "RENAME b"),
    ("DROP COLUMN k", "DROP KEY k"),
    ("ADD UNIQUE k (a)", "ADD CONSTRAINT k UNIQUE (a)"),
]


def text(statement: str) -> str:
    """The compared text of a statement."""
    plain = plain_spelling(classify(statement, default_schema="d"))
    return normalise(classify(plain, default_schema="d"))


@pytest.mark.parametrize(("one", "other"), SAME)
def test_actions_are_the_same_in_several_spellings(one: str, other: str) -> None:
    assert text(f"ALTER TABLE t {one}") == text(f"ALTER TABLE t {other}")


@pytest.mark.parametrize(("one", "other"), SAME_WHOLE)
def test_statements_about_indexes_are_actions(one: str, other: str) -> None:
    assert text(one) == text(other)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_other_changes_differ(one: str, other: str) -> None:
    assert text(f"ALTER TABLE t {one}") != text(f"ALTER TABLE t {other}")


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE TABLE t",
        "CREATE INDEX k USING BTREE ON t (a)",
        "CREATE INDEX k ON t (a) COMMENT ' on t'",
        "ALTER TABLE t COMMENT='x'",
    ],
)
def test_other_statements_stay(statement: str) -> None:
    assert plain_spelling(classify(statement, default_schema="d")) == statement
