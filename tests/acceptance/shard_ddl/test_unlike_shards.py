"""Shards that differ from the beginning on, with `shard-mode: optimistic`: their copy, and on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.acceptance.conftest import MYSQL_SECOND, MakeEstate
from tests.support.tasks.running import copied
from tests.support.tasks.shard_ddl import ShardedEstate
from tests.support.tasks.tables import rows_of


@pytest.fixture
def estate(estate_of: MakeEstate) -> ShardedEstate:
    made = estate_of(MYSQL_SECOND)
    made.mode = "optimistic"
    return made


def with_fills(estate: ShardedEstate, **fills: bytes | None) -> Counter[tuple[object, ...]]:
    """The rows of all shards as the target must have them; ``fills``: of columns that some lack."""
    names = [name for name, _ in sorted(estate.columns(estate.target, f"{estate.db}.t"))]
    found: Counter[tuple[object, ...]] = Counter()
    for shard in estate.shards:
        server, table = estate.server(shard), estate.name(shard)
        own = {name for name, _ in estate.columns(server, table)}
        having = [name for name in names if name in own]
        for row, count in rows_of(server, table, ", ".join(having)).items():
            values = fills | dict(zip(having, row, strict=True))
            found[tuple(values[name] for name in names)] += count
    return found


def on_target(estate: ShardedEstate) -> Counter[tuple[object, ...]]:
    names = [name for name, _ in sorted(estate.columns(estate.target, f"{estate.db}.t"))]
    return estate.rows(", ".join(names))


async def test_the_copy_of_unlike_shards_makes_a_target_that_takes_all(
    estate: ShardedEstate, tmp_path: Path
) -> None:
    estate.create("A1", "B1", "B2")
    estate.target.execute(f"DROP DATABASE {estate.db}")
    for shard, table in {
        "A1": "(id INT PRIMARY KEY, b SMALLINT NOT NULL, v CHAR(3) CHARACTER SET utf8, UNIQUE (b))",
        "B1": "(id BIGINT PRIMARY KEY, n INT NOT NULL, c INT NOT NULL DEFAULT 7, b INT)",
        "B2": "(b INT, id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET utf8mb4)",
    }.items():
        estate.run(shard, "DROP TABLE {t}")
        estate.run(shard, f"CREATE TABLE {{t}} {table}")
    estate.task["task-mode"] = "all"
    estate.insert("A1", "1, 5, 'äöü'", "2, 6, NULL")
    estate.insert("B1", "5000000000, 1, 2, NULL", "4, 5, 6, 5")
    estate.insert("B2", "5, 6, '𝄞'")
    fills = {"n": b"0", "c": b"7", "v": None}
    async with estate.merging() as generation:
        await copied(generation)
        assert on_target(estate) == with_fills(estate, **fills)
        estate.insert("A1", "10, 7, 'x'")
    # What the target's columns default to by now, the rows of the others do not get.
    estate.target.execute(f"ALTER TABLE {estate.db}.t ALTER c SET DEFAULT 8")
    async with estate.merging() as generation:
        await copied(generation)
        estate.insert("B2", "5, 11, 'y'")
        estate.run("A1", "UPDATE {t} SET v = 'z' WHERE id = 2")
        await estate.caught_up()
        assert estate.views() == []
        assert on_target(estate) == with_fills(estate, **fills)
        for shard in ("A1", "B2"):
            estate.ddl(shard, "ADD n INT NOT NULL", "ADD c INT NOT NULL DEFAULT 7")
        estate.ddl("B1", "ADD v CHAR(3) CHARACTER SET utf8mb4")
        await estate.caught_up()
        assert estate.views() == []
        assert on_target(estate) == with_fills(estate)
