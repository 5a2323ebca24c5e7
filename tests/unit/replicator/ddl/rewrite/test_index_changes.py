"""Statements for a target that does not have some of its shards' indexes."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.index_changes import (
    added_indexes,
    creates_index,
    only_action,
    without_actions,
    without_drops,
    without_special_indexes,
)


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("DROP INDEX f ON t", ""),
        ("DROP INDEX IF EXISTS f ON t", ""),
        ("DROP INDEX k ON t", None),
        ("DROP INDEX `PRIMARY` ON t", None),
        ("ALTER TABLE t DROP KEY F", ""),
        ("ALTER TABLE t DROP INDEX `f`, ADD c INT", "ALTER TABLE t ADD c INT"),
        ("ALTER TABLE t RENAME INDEX f TO g, DROP KEY k", "ALTER TABLE t DROP KEY k"),
        ("ALTER TABLE t DROP f", None),
        ("ALTER TABLE t ADD KEY f (a)", None),
    ],
)
def test_drops_of_what_only_the_shard_has_are_left_out(sql: str, wanted: str | None) -> None:
    found = without_drops(classify(sql, default_schema="d"), {"k", "primary"})
    assert found == (sql if wanted is None else wanted)


def test_added_indexes_are_left_out() -> None:
    sql = "ALTER TABLE t ADD c INT, ADD FULLTEXT f (v), ADD UNIQUE u (c), ADD INDEX k ((a + 1))"
    statement = classify(sql, default_schema="d")
    fulltext, index = added_indexes(statement)
    assert only_action(statement, fulltext) == "ALTER TABLE t ADD FULLTEXT f (v)"
    assert only_action(statement, index) == "ALTER TABLE t ADD INDEX k ((a + 1))"
    rest = "ALTER TABLE t ADD c INT, ADD UNIQUE u (c)"
    assert without_actions(statement, [fulltext, index]) == rest
    only = classify("ALTER TABLE t ADD KEY (a)", default_schema="d")
    assert without_actions(only, added_indexes(only)) == ""


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("CREATE FULLTEXT INDEX f ON t (v)", ""),
        ("CREATE INDEX f ON t (v, (a + 1))", ""),
        ("CREATE INDEX f ON t (v, a)", None),
        ("CREATE UNIQUE INDEX f ON t ((a + 1))", None),
        ("ALTER TABLE t ADD KEY ((a + 1)), ADD c INT", "ALTER TABLE t ADD c INT"),
        ("ALTER TABLE t ADD KEY (a(3)), ADD c INT DEFAULT (1)", None),
        ("ALTER TABLE t ADD SPATIAL KEY (a)", ""),
    ],
)
def test_special_indexes_are_not_added(sql: str, wanted: str | None) -> None:
    found = without_special_indexes(classify(sql, default_schema="d"))
    assert found == (sql if wanted is None else wanted)


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("CREATE FULLTEXT INDEX f ON t (v)", True),
        ("CREATE INDEX i ON t (v)", True),
        ("CREATE UNIQUE INDEX i ON t (v)", False),
        ("ALTER TABLE t ADD KEY (v)", False),
    ],
)
def test_an_index_that_is_not_unique_is_created(sql: str, wanted: bool) -> None:
    assert creates_index(classify(sql, default_schema="d")) == wanted
