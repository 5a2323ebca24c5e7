"""How a server stores a table, taken out of statements."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.retarget import splice
from replicator.ddl.rewrite.storage import physical_edits, physical_options

ALTERED = [
    ("ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE 8, ADD c INT, FORCE", "ADD c INT"),
    ("ADD c INT, ENGINE=InnoDB, AUTO_INCREMENT=5, DISABLE KEYS", "ADD c INT"),
    ("ADD force INT, DROP row_format", "ADD force INT, DROP row_format"),
    ("ENGINE=FEDERATED, ADD c INT", "ENGINE=FEDERATED, ADD c INT"),
    (
        "ADD id INT AUTO_INCREMENT KEY, AUTO_INCREMENT=7",
        "ADD id INT AUTO_INCREMENT KEY, AUTO_INCREMENT=7",
    ),
    ("/*!50100 ROW_FORMAT=COMPRESSED */ COMMENT='CHECKSUM=1'", "/*!50100 */ COMMENT='CHECKSUM=1'"),
    ("MAX_ROWS=5 PARTITION BY HASH (id)", "PARTITION BY HASH (id)"),
    ("STATS_PERSISTENT=1, ADD KEY (a) KEY_BLOCK_SIZE=4", "ADD KEY (a) KEY_BLOCK_SIZE=4"),
]


@pytest.mark.parametrize(("actions", "left"), ALTERED)
def test_an_alter_keeps_what_is_not_storage(actions: str, left: str) -> None:
    statement = classify(f"ALTER TABLE t {actions}", default_schema="d")
    assert splice(statement.sql, physical_edits(statement)) == f"ALTER TABLE t {left}"


def test_a_create_keeps_its_engine() -> None:
    sql = "CREATE TABLE t (checksum INT) ENGINE=InnoDB ROW_FORMAT=DYNAMIC, MAX_ROWS=5 COMMENT 'a'"
    statement = classify(sql, default_schema="d")
    left = "CREATE TABLE t (checksum INT) ENGINE=InnoDB, COMMENT 'a'"
    assert splice(sql, physical_edits(statement)) == left


OPTIONS = [
    ("ROW_FORMAT=compressed KEY_BLOCK_SIZE 8, ADD c INT", {"ROW_FORMAT=COMPRESSED"}),
    ("ENCRYPTION \"y\", COMPRESSION='zlib'", {"ENCRYPTION='y'", "COMPRESSION='zlib'"}),
    ("ENGINE=RocksDB", {"ENGINE=ROCKSDB"}),
    ("ENGINE=InnoDB, FORCE", set()),
    ("ENGINE=MyISAM ROW_FORMAT=FIXED", set()),
    ("STATS_PERSISTENT=1, AUTO_INCREMENT=5", set()),
    ("COMPRESSION='a''; DROP TABLE t'", set()),
]


@pytest.mark.parametrize(("actions", "expected"), OPTIONS)
def test_options_are_found(actions: str, expected: set[str]) -> None:
    found = physical_options(classify(f"ALTER TABLE t {actions}", default_schema="d"))
    shown = {f"{option.name}={option.value}" for option in found}
    assert expected <= shown
    assert bool(expected) == bool(shown)
