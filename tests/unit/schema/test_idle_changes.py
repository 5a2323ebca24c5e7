"""ALTER TABLE statements that change nothing."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.classify import classify
from replicator.schema.effects.idle_changes import is_idle

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
]
OTHERS = [
    "ADD c INT",
    "ADD force INT",
    "DROP engine",
    "DISABLE KEYS, ADD c INT",
    "ENGINE=InnoDB COMMENT='x'",
    "ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
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
