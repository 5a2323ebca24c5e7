"""Tables whose first shard is created, and changed at once, while the task runs.

No shard and no target exists at the start. All shards run the same script.
"""

from __future__ import annotations

import pytest

from tests.support.tasks.shard_ddl import ShardedEstate

CREATE = "CREATE TABLE {t} (id INT PRIMARY KEY, v INT)"
ROW = "INSERT INTO {t} (id) VALUES ({k})"

SCRIPTS: dict[str, tuple[str, ...]] = {
    "a column": (CREATE, ROW, "ALTER TABLE {t} ADD c INT", ROW),
    "an index": (CREATE, "CREATE INDEX i ON {t} (v)", ROW),
    "without rows": (CREATE, "ALTER TABLE {t} ADD c INT", "ALTER TABLE {t} ADD d INT", ROW),
    "dropped again": (
        CREATE,
        ROW,
        "ALTER TABLE {t} ADD c INT",
        ROW,
        "ALTER TABLE {t} DROP c",
        "ALTER TABLE {t} CHANGE v w BIGINT",
        ROW,
    ),
}


def _steps_of(
    script: tuple[str, ...], shards: tuple[str, ...], order: str
) -> list[tuple[str, str]]:
    if order == "in lockstep":
        return [(shard, sql) for sql in script for shard in shards]
    return [(shard, sql) for shard in shards for sql in script]


@pytest.mark.parametrize("waits", [False, True], ids=["at once", "each statement awaited"])
@pytest.mark.parametrize("order", ["in lockstep", "one after the other"])
@pytest.mark.parametrize("script", SCRIPTS)
async def test_the_first_shards_are_created_and_changed(
    mariadb_estate: ShardedEstate, script: str, order: str, waits: bool
) -> None:
    estate = mariadb_estate
    estate.create()
    estate.target.execute(f"DROP DATABASE {estate.db}")
    shards = ("A1", "A2", "B1", "B2")
    async with estate.merging():
        for shard, sql in _steps_of(SCRIPTS[script], shards, order):
            if sql == CREATE:
                estate.shards.append(shard)
            estate.run(shard, sql.format(t="{t}", k=estate.key()))
            if waits:
                await estate.caught_up()
        await estate.settled()
