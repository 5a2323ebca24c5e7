"""Without coordination: what several shards bring changes their target once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.merging import Merging

COLUMNS = "(id INT PRIMARY KEY, a INT, b INT, c INT, v INT)"
WALK = (
    "DROP c",
    "ADD c INT DEFAULT 7",
    "CHANGE a b INT, CHANGE b a INT",
    "MODIFY v BIGINT",
    "MODIFY v VARCHAR(40)",
    "ADD d INT, ADD INDEX i (d)",
    "DROP d",
    "ADD d INT DEFAULT 9, ADD UNIQUE INDEX i (id, d)",
)
"""What a repeat of would take values away, exchange them, or make a type narrower again."""


def shards_of(merging: Merging) -> Iterator[tuple[DatabaseServer, str]]:
    for server in merging.sources.values():
        for table in ("t_1", "t_2"):
            yield server, table


@pytest.mark.not_on_tidb("it refuses two CHANGEs of one column, and ADD d, ADD INDEX (d)")
async def test_each_change_is_made_once(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mysql56_source: DatabaseServer,
) -> None:
    merging = merging_from(mariadb_source, mysql56_source)
    merging.create("t", COLUMNS, shards=2)
    key = count(1)
    first, *others, last = shards_of(merging)

    def walk(server: DatabaseServer, table: str) -> None:
        merging.on(server, *(f"ALTER TABLE {table} {change}" for change in WALK))
        merging.on(
            server,
            f"INSERT INTO {table} (id, a, b, c, v, d) VALUES ({next(key)}, 10, 20, 30, 'x', 50)",
            f"UPDATE {table} SET c = 31, d = 51, v = CONCAT(v, 'y')",
        )

    async with merging.running() as generation:
        for server, table in shards_of(merging):
            merging.on(server, f"INSERT INTO {table} VALUES ({next(key)}, 1, 2, 3, 4)")
        await merging.caught_up(generation)
        walk(*first)
        await merging.caught_up(generation)
    for shard in others:
        walk(*shard)
    async with merging.running() as generation:
        await merging.caught_up(generation)
        walk(*last)
        await merging.check(generation, {"t": "id, a, b, c, v, d"})
