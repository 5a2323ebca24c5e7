"""What no row tells (defaults, comments, order …): the target has it once all shards are alike."""

from __future__ import annotations

import anyio
import pytest

from tests.acceptance.conftest import MARIADB, MakeEstate
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE
from tests.support.tasks.shard_ddl import ShardedEstate

TABLE = (
    "(id INT PRIMARY KEY, b INT, v VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci,"
    " UNIQUE KEY u (b)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci COMMENT='old'"
)
SCRIPTS = {
    "a default": (["ALTER b SET DEFAULT 7"], "ADD c INT"),
    "a comment": (["MODIFY b INT COMMENT 'it''s \\\\ new'"], "ADD c INT"),
    "a position": (["MODIFY b INT AFTER v"], "ADD c INT"),
    "a position of a new column": (["ADD c INT AFTER id", "MODIFY c INT AFTER v"], "ADD d INT"),
    "the first position": (["MODIFY v VARCHAR(9) FIRST"], "ADD c INT"),
    "a collation": (
        ["MODIFY v VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"],
        "ADD c INT",
    ),
    "all collations": (
        ["CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"],
        "ADD c INT",
    ),
    "a new column after all collations": (
        [
            "ADD d INT",
            "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
            "ADD w VARCHAR(9)",
        ],
        "ADD c INT",
    ),
    "the table's comment": (["COMMENT='new'"], "ADD c INT"),
    "the table's collation": (["COLLATE=utf8mb4_bin"], "ADD c INT"),
    "a name of a key": (["RENAME INDEX u TO u2"], "ADD c INT"),
    "a type and a default": (["CHANGE b b BIGINT DEFAULT 10"], "DROP COLUMN v"),
    "the time": (["ADD t TIMESTAMP NULL", "ALTER t SET DEFAULT CURRENT_TIMESTAMP"], "ADD c INT"),
    "on update": (
        ["ADD t TIMESTAMP NULL", "MODIFY t TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP COMMENT 'x'"],
        "ADD c INT",
    ),
    "a spelling": (["CHANGE b B INT"], "ADD c INT"),
    "a key that the primary key implies": (["ADD UNIQUE i (id)", "DROP INDEX i"], "ADD c INT"),
    "two keys over one column": (["ADD UNIQUE u2 (b)", "DROP INDEX u2"], "ADD c INT"),
    "one more key over one column": (["ADD UNIQUE u2 (b)"], "ADD c INT"),
    "there and back": (["ALTER b SET DEFAULT 7", "ALTER b DROP DEFAULT"], "ADD c INT"),
    "everything": (
        [
            "ALTER b SET DEFAULT 7",
            "MODIFY v VARCHAR(12) COLLATE utf8mb4_unicode_ci DEFAULT 'x' COMMENT 'v' FIRST",
            "COMMENT='new'",
            "ADD g INT AS (b + 1) STORED COMMENT 'g' AFTER id",
            "RENAME INDEX u TO u2",
        ],
        "ADD c INT",
    ),
}
QUICK = ("a type and a default", "one more key over one column", "everything")


async def like_its_shards(estate: ShardedEstate) -> None:
    """Wait until the target is like each of its shards, in all that servers show."""
    with anyio.move_on_after(PATIENCE):
        while differences(estate):
            await anyio.sleep(LOOK_SECONDS)
    assert differences(estate) == set()


def differences(estate: ShardedEstate) -> set[str]:
    def lines(server: object, table: str) -> set[str]:
        [(_, text)] = server.execute(f"SHOW CREATE TABLE {table}")  # type: ignore[attr-defined]
        numbered = enumerate(text.splitlines()[1:])
        return {f"{n if line.startswith('  `') else ''}{line.rstrip(',')}" for n, line in numbered}

    there = lines(estate.target, f"{estate.db}.t")
    shards = [lines(estate.server(s), estate.name(s)) for s in estate.shards]
    return set().union(*(there ^ own for own in shards))


@pytest.mark.parametrize(
    "case", [c if c in QUICK else pytest.param(c, marks=pytest.mark.slow) for c in SCRIPTS]
)
async def test_the_target_becomes_like_its_shards_whatever_came_last(
    estate_of: MakeEstate, case: str
) -> None:
    actions, last = SCRIPTS[case]
    estate = estate_of(MARIADB)
    estate.mode = "optimistic"
    estate.create("A1", "B1", "B2", table=TABLE)
    async with estate.merging():
        for shard in ("A1", "B1", "B2"):
            # None of them makes the first statements last.
            estate.ddl(shard, *actions, last)
            await estate.caught_up()
        await like_its_shards(estate)
        await estate.caught_up()
        assert not estate.views()
        assert not estate.running.coordination.differences()
