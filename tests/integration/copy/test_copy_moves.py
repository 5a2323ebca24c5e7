"""Rows that move between shards in two transactions while these are copied."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import anyio
import pytest

from actors.task.generation import Generation
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.copying import copied_some, slow_copy
from tests.support.tasks.merging import Merging

MakeMerging = Callable[..., Merging]


@pytest.fixture
def merging(
    merging_from: MakeMerging, mariadb_source: DatabaseServer, mysql_source: DatabaseServer
) -> Merging:
    """A slow full copy of two sources into one target."""
    return slow_copy(merging_from(mariadb_source, mysql_source), 100)


async def equal(merging: Merging, generation: Generation, patience: float = 120) -> None:
    """Wait until what was deleted is looked up, and all is equal."""
    await merging.copied(generation, patience)
    await merging.caught_up(generation, patience)
    with anyio.move_on_after(patience):
        while merging.differences():
            await anyio.sleep(0.2)
    await merging.check(generation)


def numbers(merging: Merging, server: DatabaseServer, first: int, last: int, n: int) -> None:
    values = ",".join(f"({i},{n},'t{i}')" for i in range(first, last + 1))
    merging.on(server, f"INSERT INTO x_1 VALUES {values}")


@pytest.mark.slow
async def test_the_row_of_the_new_shard_stays(merging: Merging) -> None:
    """Rows 100 to 109 are in both shards when the copy begins, and go from the old one then."""
    merging.create("x", "(id INT PRIMARY KEY, n INT, s VARCHAR(9))", with_target=False)
    old, new = merging.sources.values()
    numbers(merging, old, 1, 300, 1)
    numbers(merging, new, 100, 109, 2)
    numbers(merging, new, 1000, 1200, 2)
    async with merging.running() as generation:
        await copied_some(generation, 3)
        merging.on(
            old,
            "DELETE FROM x_1 WHERE id BETWEEN 100 AND 106",
            "UPDATE x_1 SET id = id + 400 WHERE id BETWEEN 107 AND 109",
            "DELETE FROM x_1 WHERE id = 5",
        )
        await equal(merging, generation)


@pytest.mark.slow
@pytest.mark.parametrize("made", ["extracted", "mapped"])
async def test_a_key_that_two_shards_make_alike_is_looked_up(merging: Merging, made: str) -> None:
    """What is extracted, or the bits of a mapping, can be the same for shards of two sources."""
    columns = "id BIGINT, n INT, s VARCHAR(9)"
    merging.create("x", f"({columns}, PRIMARY KEY (id))", with_target=False)
    merging.on(merging.target, f"CREATE DATABASE IF NOT EXISTS {merging.database}")
    if made == "extracted":
        made_of = "'1', id"
        merging.on(merging.target, f"CREATE TABLE x (c CHAR(3), {columns}, PRIMARY KEY (id, c))")
        extract = {"table-regexp": "_(.)$", "target-column": "c"}
        merging.routes["extract-table"] = extract
    else:
        made_of = f"id | {1 << 55}"
        merging.more["column-mappings"] = {
            "bits": {
                "schema-pattern": merging.database,
                "table-pattern": "x_*",
                "expression": "partition id",
                "source-column": "id",
                "target-column": "id",
                "arguments": ["", "", "x", "_"],
            }
        }
        merging.instance["column-mapping-rules"] = ["bits"]
    old, new = merging.sources.values()
    numbers(merging, old, 1, 300, 1)
    numbers(merging, new, 100, 109, 2)
    numbers(merging, new, 1000, 1200, 2)
    async with merging.running() as generation:
        await copied_some(generation, 3)
        merging.on(old, "DELETE FROM x_1 WHERE id BETWEEN 100 AND 106")
        merging.on(old, "DELETE FROM x_1 WHERE id = 5")
        await merging.copied(generation, 120)
        await merging.caught_up(generation, 120)
        left = "NOT IN (107, 108, 109)"
        from_shard = f"SELECT {made_of}, n, s FROM x_1 WHERE id {left}"
        wanted = [row for server in (old, new) for row in merging.on(server, from_shard)]
        shown = "c, id, n, s" if made == "extracted" else "id, n, s"
        sql = f"SELECT {shown} FROM x WHERE id & 0xFFFFFFFFFFF {left}"
        with anyio.move_on_after(120):
            while sorted(merging.on(merging.target, sql)) != sorted(wanted):
                await anyio.sleep(0.2)
        assert sorted(merging.on(merging.target, sql)) == sorted(wanted)


@pytest.mark.slow
async def test_rows_that_move_at_random_are_where_they_went(merging: Merging) -> None:
    """Inserted into the new shard first, deleted from the old one in a transaction of its own."""
    merging.create("x", "(id INT PRIMARY KEY, n INT, s VARCHAR(9))", with_target=False)
    merging.instance["syncer-config-name"] = "often"
    merging.more["syncers"] = {"often": {"checkpoint-flush-interval": 1}}
    servers = list(merging.sources.values())
    numbers(merging, servers[0], 1, 200, 1)
    numbers(merging, servers[1], 201, 400, 1)
    place = {i: 0 if i <= 200 else 1 for i in range(1, 401)}
    stop = threading.Event()
    chance = random.Random(merging.database)

    def move() -> int:
        moves = 0
        while not stop.is_set():
            row = chance.randint(1, 400)
            old, new = servers[place[row]], servers[1 - place[row]]
            moves += 1
            merging.on(new, f"INSERT INTO x_1 VALUES ({row}, {moves}, 'm')")
            if chance.random() < 0.5:
                merging.on(new, f"UPDATE x_1 SET n = -{moves} WHERE id = {row}")
            merging.on(old, f"DELETE FROM x_1 WHERE id = {row}")
            place[row] = 1 - place[row]
        return moves

    async with merging.running() as generation, anyio.create_task_group() as tasks:
        await copied_some(generation, 1)
        tasks.start_soon(anyio.to_thread.run_sync, move)
        await copied_some(generation, 6)
        stop.set()
        await equal(merging, generation)
