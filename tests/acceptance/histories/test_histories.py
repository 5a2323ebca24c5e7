"""What stops in the upgrade histories of applications, where all shards execute the same script.

Each case was found by `tests.workload.histories`. Those that are expected to fail are open.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import anyio
import pytest

from tests.support.tasks.shard_ddl import ShardedEstate

SHARDS = ("uA1", "uB1")
PATIENCE = 15.0
"""Seconds, in which a target is equal, or stays as it is."""
CREATE = "CREATE TABLE {t} (id INT PRIMARY KEY, v INT)"
ROW = "INSERT INTO {t} (id, v) VALUES ({k}, 1)"

SCRIPTS: dict[str, tuple[str, ...]] = {
    "created": (CREATE, ROW),
    "created-and-altered": (CREATE, "ALTER TABLE {t} ADD c INT", ROW),
    "created-and-indexed": (CREATE, "CREATE INDEX i ON {t} (v)", ROW),
    "created-and-altered-twice": (
        CREATE,
        "ALTER TABLE {t} ADD c INT",
        ROW,
        "ALTER TABLE {t} MODIFY v BIGINT",
        ROW,
    ),
    "a-column-that-comes-and-goes": (
        CREATE,
        "ALTER TABLE {t} ADD c INT",
        ROW,
        "ALTER TABLE {t} DROP c",
        ROW,
    ),
    "a-new-name-for-a-column": (CREATE, ROW, "ALTER TABLE {t} CHANGE v w INT"),
    "keys-off-and-on": (
        CREATE,
        "ALTER TABLE {t} DISABLE KEYS",
        ROW,
        "ALTER TABLE {t} ENABLE KEYS",
    ),
    "row-format": (CREATE, ROW, "ALTER TABLE {t} ROW_FORMAT=DYNAMIC"),
    "rebuilt": (CREATE, ROW, "ALTER TABLE {t} ENGINE=InnoDB", ROW),
    "the-same-definition-again": (CREATE, ROW, "ALTER TABLE {t} MODIFY v INT DEFAULT NULL", ROW),
    "dropped-and-created-otherwise": (
        CREATE,
        "DROP TABLE {t}",
        "CREATE TABLE {t} (id INT PRIMARY KEY, v INT, w INT)",
        ROW,
    ),
    "dropped-and-created-with-other-keys": (
        "CREATE TABLE {t} (id INT PRIMARY KEY, v INT, w VARCHAR(9), KEY (v), UNIQUE KEY u (w))",
        "ALTER TABLE {t} ADD x INT",
        "DROP TABLE {t}",
        "CREATE TABLE {t} (k VARCHAR(40) NOT NULL, id BIGINT NOT NULL, w VARCHAR(20) DEFAULT 'a'"
        " COMMENT 'b', v INT, PRIMARY KEY (id), KEY v (v, w)) COMMENT='c' COLLATE latin1_bin",
        "INSERT INTO {t} VALUES ('a', {k}, 'b', 2)",
        "ALTER TABLE {t} ADD y INT",
        "INSERT INTO {t} VALUES ('a', {k}, 'b', 2, 3)",
    ),
    "numbered": (
        "CREATE TABLE {t} (v INT)",
        "INSERT INTO {t} VALUES ({k})",
        "ALTER TABLE {t} ADD id INT AUTO_INCREMENT PRIMARY KEY FIRST",
    ),
    "a-cascade": (
        "CREATE TABLE {t} (id INT PRIMARY KEY, v INT, p INT,"
        " FOREIGN KEY (p) REFERENCES {t} (id) ON DELETE CASCADE)",
        ROW,
        "INSERT INTO {t} SELECT id + 1000000, 2, id FROM {t}",
        "DELETE FROM {t} WHERE p IS NULL",
        ROW,
    ),
    "a-check-with-a-name-of-the-server": (
        CREATE,
        ROW,
        "ALTER TABLE {t} ADD CHECK (v > 0)",
        ROW,
    ),
}
OPEN = {
    "pessimistic": {"numbered"},
    "optimistic": {"numbered"},
}
"""The scripts that are expected to fail, by mode."""


def cases() -> list[Any]:
    found = []
    for mode, pace, name in product(OPEN, ("statement", "file"), SCRIPTS):
        marks = pytest.mark.xfail(strict=True) if name in OPEN[mode] else ()
        found.append(pytest.param(mode, pace, name, marks=marks))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "pace", "name"), cases())
async def test_all_shards_execute_a_script(
    mariadb_estate: ShardedEstate, mode: str, pace: str, name: str
) -> None:
    estate = mariadb_estate
    estate.mode = mode
    estate.create("A1", "B1")
    async with estate.merging():
        script = SCRIPTS[name]
        parts = [script] if pace == "file" else [(statement,) for statement in script]
        for part in parts:
            for shard in SHARDS:
                for statement in part:
                    estate.run(shard, statement.format(t="{t}", k=estate.key()))
        estate.shards += SHARDS
        with anyio.move_on_after(PATIENCE):
            while estate.difference("u") or estate.views():
                await anyio.sleep(0.1)
        assert estate.difference("u") == ""
        assert estate.views() == []
