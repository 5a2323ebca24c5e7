"""Foreign keys with actions in all shard-modes: created by the task, in step and out of step."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import anyio
import pytest

from actors.task.generation import Generation
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE

NEW_KEYS = count(1000)
MODES = ("", "pessimistic", "optimistic")
CASCADES = "ON DELETE CASCADE ON UPDATE CASCADE"


@pytest.fixture(params=MODES)
def merging(
    request: pytest.FixtureRequest,
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
) -> Merging:
    found = merging_from(mariadb_source)
    found.more["shard-mode"] = request.param
    return found


def on(merging: Merging, shard: int, *statements: str) -> None:
    """Run statements on a shard: {n} is its number, {a}, {b}, {c} are its keys, {k} is new."""
    keys = {name: 10 * shard + place for place, name in enumerate("abc")}
    merging.do(*(s.format(n=shard, k=next(NEW_KEYS), **keys) for s in statements))


async def equal(merging: Merging, generation: Generation) -> None:
    """Wait until all locks are resolved, and the targets equal the shards."""
    await merging.copied(generation)
    with anyio.fail_after(PATIENCE):
        while True:
            await merging.caught_up(generation)
            assert generation.running is not None
            if not generation.running.coordination.open_locks() and not merging.differences():
                return
            await anyio.sleep(LOOK_SECONDS)


PARENT = "CREATE TABLE p_{n} (id INT PRIMARY KEY, v INT)"
CHILD = (
    "CREATE TABLE c_{n} (id INT PRIMARY KEY, p INT, CONSTRAINT k_{n} FOREIGN KEY (p) REFERENCES"
    f" p_{{n}} (id) {CASCADES})"
)
GRANDCHILD = (
    "CREATE TABLE g_{n} (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES c_{n} (id)"
    f" {CASCADES})"
)
ROWS = (
    "INSERT INTO p_{n} VALUES ({a}, 1), ({b}, 1), ({c}, 1)",
    "INSERT INTO c_{n} VALUES ({a}, {a}), ({b}, {b}), ({c}, {c})",
)
MORE_ROWS = "INSERT INTO g_{n} VALUES ({a}, {a}), ({b}, {b}), ({c}, {c})"
CHANGES = (
    "DELETE FROM p_{n} WHERE id = {a}",
    "UPDATE p_{n} SET id = id + 100 WHERE id = {b}",
    "INSERT INTO p_{n} VALUES ({a}, 2)",
    "INSERT INTO c_{n} VALUES ({a}, {a})",
)


def keys_of(merging: Merging, table: str) -> list[tuple[object, ...]]:
    """The foreign keys of a target: parent and actions."""
    return list(
        merging.on(
            merging.target,
            "SELECT REFERENCED_TABLE_NAME, DELETE_RULE, UPDATE_RULE"
            " FROM information_schema.REFERENTIAL_CONSTRAINTS"
            f" WHERE CONSTRAINT_SCHEMA = '{merging.database}' AND TABLE_NAME = '{table}'",
        )
    )


async def test_a_copy_creates_the_keys(merging: Merging) -> None:
    merging.mode = "all"
    target = merging.target
    merging.more["target-database"] = {
        "host": target.host,
        "port": target.port,
        "user": target.user,
        "password": target.password,
        "session": {"foreign_key_checks": 1},
    }
    for table in "cp":
        merging.shards(table, 2)
    for shard in (1, 2):
        on(merging, shard, PARENT, CHILD, *ROWS)
    async with merging.running() as generation:
        await equal(merging, generation)
        assert keys_of(merging, "c") == [("p", "CASCADE", "CASCADE")]
        for shard in (1, 2):
            on(merging, shard, *CHANGES)
        await equal(merging, generation)


async def test_new_tables_and_new_keys_in_a_running_task(merging: Merging) -> None:
    merging.create("x", "(id INT PRIMARY KEY)", shards=2)
    for table in "pcg":
        merging.shards(table, 2)
    async with merging.running() as generation:
        for shard in (1, 2):
            on(merging, shard, PARENT, CHILD, GRANDCHILD, *ROWS, MORE_ROWS, *CHANGES)
        await equal(merging, generation)
        assert keys_of(merging, "c") == [("p", "CASCADE", "CASCADE")]
        add = "ALTER TABLE x_{n} ADD p INT, ADD FOREIGN KEY (p) REFERENCES p_{n} (id)"
        for shard in (1, 2):
            on(
                merging,
                shard,
                f"{add} ON DELETE SET NULL",
                "INSERT INTO x_{n} VALUES ({a}, {c}), ({b}, NULL)",
                "DELETE FROM p_{n} WHERE id = {c}",
            )
        await equal(merging, generation)


async def test_a_key_that_goes(merging: Merging) -> None:
    for table in "pc":
        merging.shards(table, 1)
    merging.create("x", "(id INT PRIMARY KEY)")
    async with merging.running() as generation:
        on(merging, 1, PARENT, CHILD, *ROWS, "DELETE FROM p_{n} WHERE id = {a}")
        await equal(merging, generation)
        on(
            merging,
            1,
            "ALTER TABLE c_{n} DROP FOREIGN KEY k_{n}",
            "DELETE FROM p_{n} WHERE id = {b}",
        )
        await equal(merging, generation)
        assert keys_of(merging, "c") == []
        assert merging.on(merging.target, "SELECT COUNT(*) FROM c") == ((2,),)


async def test_shards_that_are_out_of_step(merging: Merging) -> None:
    """Each of three tables changes while the others go on, with keys that come again."""
    for table in "pcg":
        merging.shards(table, 2)
    merging.create("x", "(id INT PRIMARY KEY)", shards=2)
    async with merging.running() as generation:
        for shard in (1, 2):
            on(merging, shard, PARENT, CHILD, GRANDCHILD, *ROWS, MORE_ROWS)
        await equal(merging, generation)
        for number, table in enumerate("pcg"):
            change = f"ALTER TABLE {table}_{{n}} ADD n{number} INT DEFAULT {number}"
            again = (
                "DELETE FROM p_{n} WHERE id = {a}",
                "INSERT INTO p_{n} (id, v) VALUES ({a}, 2)",
                "INSERT INTO c_{n} (id, p) VALUES ({a}, {a})",
                "INSERT INTO g_{n} (id, c) VALUES ({k}, {a})",
                "UPDATE p_{n} SET id = id + 100 WHERE id = {b}",
                "UPDATE p_{n} SET id = id - 100 WHERE id = {b} + 100",
                "DELETE FROM c_{n} WHERE id = {c}",
                "INSERT INTO c_{n} (id, p) VALUES ({c}, {c})",
            )
            on(merging, 1, *again, change, *again)
            await merging.caught_up(generation)
            on(merging, 2, *again, change, *again)
            await equal(merging, generation)


async def test_a_parent_that_gets_other_names(merging: Merging) -> None:
    for table in "pc":
        merging.shards(table, 1)
    merging.create("x", "(id INT PRIMARY KEY)")
    async with merging.running() as generation:
        on(merging, 1, PARENT, CHILD, *ROWS)
        await equal(merging, generation)
        on(
            merging,
            1,
            "ALTER TABLE p_{n} CHANGE id pid INT",
            "DELETE FROM p_{n} WHERE pid = {a}",
            "RENAME TABLE p_1 TO p_2",
            "DELETE FROM p_2 WHERE pid = {b}",
            "RENAME TABLE p_2 TO p_1",
            "DELETE FROM p_1 WHERE pid = {c}",
        )
        await equal(merging, generation)
        assert merging.on(merging.target, "SELECT COUNT(*) FROM c") == ((0,),)
