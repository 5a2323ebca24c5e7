"""Foreign keys with actions: the target changes rows along with their parents as the shards did."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.merging import Merging

PARENT = "(id INT PRIMARY KEY, v INT)"


def child(action: str, parent: str = "p", more: str = "") -> str:
    return f"(id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES {parent} (id) {action}{more})"


def create(merging: Merging, table: str, parent: str, action: str, *, shards: int = 1) -> None:
    """A child on every source, each shard of the parent's shard, and on the target."""
    merging.create(table, child(action, parent), shards=0)
    for server in merging.sources.values():
        for number in range(1, shards + 1):
            merging.on(
                server, f"CREATE TABLE {table}_{number} {child(action, f'{parent}_{number}')}"
            )
    merging.shards(table, shards)


@pytest.fixture
def merging(merging_from: Callable[..., Merging], mariadb_source: DatabaseServer) -> Merging:
    found = merging_from(mariadb_source)
    found.more["shard-mode"] = ""
    return found


async def test_a_deleted_parent_takes_its_children_along(merging: Merging) -> None:
    merging.create("p", PARENT, shards=2)
    create(merging, "c", "p", "ON DELETE CASCADE ON UPDATE CASCADE", shards=2)
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO p_1 VALUES (1, 1), (2, 1), (3, 1)",
            "INSERT INTO p_2 VALUES (11, 1), (12, 1)",
            "INSERT INTO c_1 VALUES (1, 1), (2, 1), (3, 2), (4, 3), (5, NULL)",
            "INSERT INTO c_2 VALUES (11, 11), (12, 12)",
        )
        await merging.check(generation)
        merging.do(
            "DELETE FROM p_1 WHERE id = 1",
            "UPDATE p_1 SET id = 20 WHERE id = 2",
            "UPDATE p_1 SET v = 5 WHERE id = 3",
            "DELETE FROM p_2 WHERE id = 11",
        )
        await merging.check(generation)
        assert merging.on(merging.target, "SELECT id, p FROM c ORDER BY id") == (
            (3, 20),
            (4, 3),
            (5, None),
            (12, 12),
        )


async def test_a_parent_that_comes_again_has_none_of_its_children(merging: Merging) -> None:
    merging.create("p", PARENT)
    create(merging, "c", "p", "ON DELETE CASCADE")
    async with merging.running() as generation:
        merging.do("INSERT INTO p_1 VALUES (1, 1)", "INSERT INTO c_1 VALUES (1, 1), (2, 1)")
        await merging.check(generation)
        merging.do(
            "BEGIN",
            "DELETE FROM p_1",
            "INSERT INTO p_1 VALUES (1, 1)",
            "INSERT INTO c_1 VALUES (1, 1), (7, 1)",
            "UPDATE c_1 SET id = 8 WHERE id = 7",
            "COMMIT",
        )
        await merging.check(generation)
        # The key goes, and another row takes it over.
        merging.do("DELETE FROM p_1", "INSERT INTO p_1 VALUES (1, 2)")
        await merging.check(generation)
        assert merging.on(merging.target, "SELECT COUNT(*) FROM c") == ((0,),)


@pytest.mark.parametrize(
    "action",
    ["ON DELETE SET NULL", "ON DELETE SET NULL ON UPDATE CASCADE", "ON UPDATE SET NULL"],
)
async def test_children_lose_their_parent(merging: Merging, action: str) -> None:
    merging.create("p", PARENT)
    create(merging, "c", "p", action)
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO p_1 VALUES (1, 1), (2, 1), (3, 1)",
            "INSERT INTO c_1 VALUES (1, 1), (2, 2), (3, 3)",
        )
        await merging.check(generation)
        remove = "DELETE FROM p_1 WHERE id = 1" if "DELETE" in action else "DO 0"
        change = "UPDATE p_1 SET id = 9 WHERE id = 2" if "UPDATE" in action else "DO 0"
        merging.do(remove, change, "UPDATE c_1 SET p = 3 WHERE id = 2")
        await merging.check(generation)


async def test_chains_and_a_table_that_refers_to_itself(merging: Merging) -> None:
    merging.create("p", PARENT)
    create(merging, "c", "p", "ON DELETE CASCADE ON UPDATE CASCADE")
    create(merging, "g", "c", "ON DELETE CASCADE ON UPDATE CASCADE")
    create(merging, "s", "s", "ON DELETE CASCADE")
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO p_1 VALUES (1, 1), (2, 1)",
            "INSERT INTO c_1 VALUES (1, 1), (2, 2)",
            "INSERT INTO g_1 VALUES (1, 1), (2, 2)",
            "INSERT INTO s_1 VALUES (1, NULL), (2, 1), (3, 2), (4, NULL), (5, 4)",
        )
        await merging.check(generation)
        merging.do(
            "DELETE FROM p_1 WHERE id = 1",
            "UPDATE c_1 SET id = 7 WHERE id = 2",
            "UPDATE p_1 SET id = 8 WHERE id = 2",
            "DELETE FROM s_1 WHERE id = 1",
            "DELETE FROM s_1 ORDER BY id DESC",
            "INSERT INTO s_1 VALUES (1, NULL), (2, 1)",
        )
        await merging.check(generation)
        assert merging.on(merging.target, "SELECT id, p FROM g") == ((2, 7),)
        assert merging.on(merging.target, "SELECT id, p FROM c") == ((7, 8),)


async def test_a_session_without_checks_changes_no_children(merging: Merging) -> None:
    merging.create("p", PARENT)
    create(merging, "c", "p", "ON DELETE CASCADE")
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO p_1 VALUES (1, 1), (2, 1)",
            "INSERT INTO c_1 VALUES (1, 1), (2, 2)",
            "SET foreign_key_checks=0",
            "DELETE FROM p_1 WHERE id = 1",
            "INSERT INTO c_1 VALUES (3, 99)",
            "SET foreign_key_checks=1",
            "DELETE FROM p_1 WHERE id = 2",
        )
        await merging.check(generation)
        assert merging.on(merging.target, "SELECT id FROM c ORDER BY id") == ((1,), (3,))
