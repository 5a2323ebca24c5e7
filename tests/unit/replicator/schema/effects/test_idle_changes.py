"""ALTER TABLE statements that change nothing."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.schema.effects.idle_changes import is_idle, may_change_nothing

IDLE = [
    "DISABLE KEYS",
    "ENABLE KEYS",
    "AUTO_INCREMENT = 5",
    "AUTO_INCREMENT 5, ENGINE=MyISAM",
    "ENGINE = 'InnoDB' STATS_PERSISTENT=1 STATS_SAMPLE_PAGES 20",
    "FORCE",
    "FORCE, ALGORITHM=INPLACE, LOCK=NONE",
    "STATS_AUTO_RECALC = DEFAULT",
    "REBUILD PARTITION p0, p1",
    "OPTIMIZE PARTITION ALL",
    "ORDER BY c, d DESC",
    "ENGINE=InnoDB ROW_FORMAT=DYNAMIC, KEY_BLOCK_SIZE=8",
    "ENCRYPTION='Y', COMPRESSION='zlib', MAX_ROWS 100 CHECKSUM=1 PACK_KEYS=1",
]
OTHERS = [
    "ADD c INT",
    "ADD force INT",
    "DROP engine",
    "DISABLE KEYS, ADD c INT",
    "ENGINE=InnoDB COMMENT='x'",
    "AUTO_INCREMENT = 5 DEFAULT CHARSET=utf8mb4",
    "COMMENT = 'AUTO_INCREMENT = 5'",
    "TRUNCATE PARTITION p0",
    "DROP PARTITION p0",
    "COALESCE PARTITION 2",
    "ALTER c SET DEFAULT 5",
    "RENAME TO u",
    "ENGINE=FEDERATED",
]


@pytest.mark.parametrize("action", IDLE)
def test_it_changes_nothing(action: str) -> None:
    assert is_idle(classify(f"ALTER TABLE t {action}", default_schema="s"))


@pytest.mark.parametrize("action", OTHERS)
def test_it_may_change_something(action: str) -> None:
    assert not is_idle(classify(f"ALTER TABLE t {action}", default_schema="s"))


def test_other_statements_are_not_idle() -> None:
    for sql in ("CREATE INDEX i ON t (c)", "DROP TABLE t", "TRUNCATE t", "OPTIMIZE TABLE t"):
        assert not is_idle(classify(sql, default_schema="s"))


MAYBE = [
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS c INT, DROP KEY IF EXISTS k",
    "ALTER TABLE t MODIFY c INT, CHANGE `C` c BIGINT, ALTER d SET DEFAULT 5",
    "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4, COMMENT='x'",
    "CREATE INDEX IF NOT EXISTS i ON t (c)",
    "DROP INDEX IF EXISTS i ON t",
]
NEVER = [
    "ALTER TABLE t ADD c INT",
    "ALTER TABLE t CHANGE a b INT, CHANGE b a INT",
    "ALTER TABLE t DROP COLUMN IF EXISTS c, ADD COLUMN IF NOT EXISTS c INT",
    "ALTER TABLE t TRUNCATE PARTITION p",
    "ALTER TABLE t RENAME COLUMN a TO b",
    "CREATE INDEX i ON t (c)",
]


@pytest.mark.parametrize("sql", MAYBE)
def test_it_changes_nothing_of_a_table_that_is_so_already(sql: str) -> None:
    assert may_change_nothing(classify(sql, default_schema="s"))


@pytest.mark.parametrize("sql", NEVER)
def test_it_changes_values_or_fails(sql: str) -> None:
    assert not may_change_nothing(classify(sql, default_schema="s"))
