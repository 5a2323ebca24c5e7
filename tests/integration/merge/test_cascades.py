"""Foreign keys with actions: the target changes rows along with their parents as the shards did."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from actors.errors.faults import TaskParts
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import copy_all_anew
from tests.support.tasks.running import NOTHING

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


def family(merging: Merging, action: str = "ON DELETE CASCADE") -> None:
    """A parent and its child."""
    merging.create("p", PARENT)
    create(merging, "c", "p", action)


async def one_child(merging: Merging) -> None:
    """A row of the parent and one of its child have been followed."""
    family(merging)
    async with merging.running() as generation:
        merging.do("INSERT INTO p_1 VALUES (1, 1)", "INSERT INTO c_1 VALUES (1, 1)")
        await merging.check(generation)


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
    family(merging)
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
    family(merging, action)
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO p_1 VALUES (1, 1), (2, 1), (3, 1)",
            "INSERT INTO c_1 VALUES (1, 1), (2, 2), (3, 3)",
        )
        await merging.check(generation)
        remove = "DELETE FROM p_1 WHERE id = 1" if "DELETE" in action else "DO 0"
        change = "UPDATE p_1 SET id = 9 WHERE id = 2" if "UPDATE" in action else "DO 0"
        merging.do(remove, change, "UPDATE c_1 SET id = 30 WHERE id = 3")
        await merging.check(generation)


@pytest.mark.also_tidb
async def test_chains_and_a_table_that_refers_to_itself(merging: Merging) -> None:
    family(merging, "ON DELETE CASCADE ON UPDATE CASCADE")
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
    family(merging)
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


async def test_two_sources_whose_keys_do_not_meet(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mysql56_source: DatabaseServer,
) -> None:
    merging = merging_from(mariadb_source, mysql56_source)
    merging.more["shard-mode"] = ""
    family(merging, "ON DELETE CASCADE ON UPDATE CASCADE")
    async with merging.running() as generation:
        for number, server in enumerate(merging.sources.values(), 1):
            merging.on(
                server,
                f"INSERT INTO p_1 VALUES ({number}0, 1), ({number}1, 1)",
                f"INSERT INTO c_1 VALUES ({number}0, {number}0), ({number}1, {number}1)",
                f"DELETE FROM p_1 WHERE id = {number}0",
                f"UPDATE p_1 SET id = {number}5 WHERE id = {number}1",
            )
        await merging.check(generation)
    # A key that both have is told before rows of one go along with the other's.
    merging.on(mysql56_source, "INSERT INTO p_1 VALUES (15, 1)")
    assert (await merging.fault()).event == "rows.duplicate"
    assert merging.on(merging.target, "SELECT id, p FROM c ORDER BY id") == ((11, 15), (21, 25))


MAPPED = "(p {0}, n INT, PRIMARY KEY (p, n), FOREIGN KEY (p) REFERENCES {1} (id) {2})"
CASCADES = "ON DELETE CASCADE ON UPDATE CASCADE"


def mapped_family(merging: Merging) -> None:
    """Both ends of the key are mapped: two shards may have the same keys."""
    merging.more["column-mappings"] = {
        table: {
            "schema-pattern": merging.database,
            "table-pattern": f"{table}_*",
            "expression": "partition id",
            "source-column": column,
            "target-column": column,
            "arguments": ["1", "", table, "_"],
        }
        for table, column in (("p", "id"), ("c", "p"))
    }
    merging.instance["column-mapping-rules"] = ["p", "c"]
    merging.create("p", PARENT, shards=2, target="(id BIGINT PRIMARY KEY, v INT)")
    merging.create("c", MAPPED.format("BIGINT", "p", CASCADES), shards=0)
    for shard in (1, 2):
        merging.do(f"CREATE TABLE c_{shard} {MAPPED.format('INT', f'p_{shard}', CASCADES)}")


def extracted_family(merging: Merging) -> None:
    """The target's key has the extracted column, too."""
    merging.routes["extract-table"] = {"table-regexp": "_(.)$", "target-column": "of"}
    parent = "(id INT, v INT, `of` CHAR(1), PRIMARY KEY (id, `of`))"
    key = f"FOREIGN KEY (p, `of`) REFERENCES p (id, `of`) {CASCADES}"
    merging.create("p", PARENT, shards=2, target=parent)
    child = f"(p INT, n INT, `of` CHAR(1), PRIMARY KEY (p, n, `of`), {key})"
    merging.create("c", child, shards=0)
    for shard in (1, 2):
        merging.do(f"CREATE TABLE c_{shard} {MAPPED.format('INT', f'p_{shard}', CASCADES)}")


async def test_a_running_task_takes_new_shards_of_a_family(merging: Merging) -> None:
    extracted_family(merging)
    family = "FOREIGN KEY (p) REFERENCES p_{} (id) ON DELETE CASCADE ON UPDATE CASCADE"
    child = f"(p INT, n INT, PRIMARY KEY (p, n), {family})"
    rows = (
        "INSERT INTO p_{} VALUES (1, 1), (2, 1), (3, 1)",
        "INSERT INTO c_{} VALUES (1, 1), (2, 1)",
    )
    async with merging.running() as generation:
        merging.do(f"CREATE TABLE p_3 {PARENT}", f"CREATE TABLE c_3 {child.format(3)}")
        merging.do(
            "SET foreign_key_checks = 0",
            f"CREATE TABLE c_4 {child.format(4)}",
            f"CREATE TABLE p_4 {PARENT}",
        )
        merging.do(*(sql.format(shard) for shard in (1, 2, 3, 4) for sql in rows))
        merging.do("DELETE FROM p_3 WHERE id = 1", "UPDATE p_4 SET id = 9 WHERE id = 2")
        await merging.caught_up(generation)
        found = merging.on(merging.target, "SELECT `of`, p FROM c ORDER BY 1, 2")
        assert [(str(of), p) for of, p in found] == [
            *(("1", 1), ("1", 2), ("2", 1), ("2", 2)),
            *(("3", 2), ("4", 1), ("4", 9)),
        ]


@pytest.mark.parametrize("mode", ["incremental", "all"])
@pytest.mark.parametrize("make", [mapped_family, extracted_family])
async def test_shards_with_the_same_keys_are_kept_apart(
    merging: Merging, make: Callable[[Merging], None], mode: str
) -> None:
    make(merging)
    merging.mode = mode
    shard_of = "`of`" if make is extracted_family else "{} >> 51 & 255"
    own = (1 << 44) - 1

    def there(table: str, key: str, other: str) -> list[tuple[object, ...]]:
        columns = f"{shard_of.format(key)}, {key} & {own}, {other}"
        found = merging.on(merging.target, f"SELECT {columns} FROM {table} ORDER BY 1, 2, 3")
        return [tuple(map(int, map(str, row))) for row in found]

    def rows(shard: int) -> None:
        merging.do(
            f"INSERT INTO p_{shard} VALUES (1, 1), (2, 1), (3, 1)",
            f"INSERT INTO c_{shard} VALUES (1, 1), (1, 2), (2, 1), (3, 1)",
        )

    if mode == "all":
        rows(1)
    async with merging.running() as generation:
        await merging.copied(generation)
        if mode == "incremental":
            rows(1)
        rows(2)
        await merging.caught_up(generation)
        merging.do(
            "DELETE FROM p_1 WHERE id = 1",
            "UPDATE p_2 SET id = 9 WHERE id = 2",
            "UPDATE c_2 SET n = 5 WHERE p = 9",
            "DELETE FROM p_2 WHERE id = 3",
        )
        await merging.caught_up(generation)
        assert sum(target.missing for target in generation.counts.targets.values()) == 0
        assert there("p", "id", "v") == [(1, 2, 1), (1, 3, 1), (2, 1, 1), (2, 9, 1)]
        assert there("c", "p", "n") == [(1, 2, 1), (1, 3, 1), (2, 1, 1), (2, 1, 2), (2, 9, 5)]


async def test_what_is_copied_is_followed(merging: Merging) -> None:
    merging.mode = "all"
    family(merging, "ON DELETE CASCADE ON UPDATE CASCADE")
    merging.do(
        "INSERT INTO p_1 VALUES (1, 1), (2, 1), (3, 1)",
        "INSERT INTO c_1 VALUES (1, 1), (2, 2), (3, 3)",
    )
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("DELETE FROM p_1 WHERE id = 1", "UPDATE p_1 SET id = 9 WHERE id = 2")
        await merging.check(generation)


@pytest.mark.remedy("rows.cascade-in-safe-mode", "copy anew")
async def test_a_key_that_changes_in_safe_mode_can_be_a_fault(merging: Merging) -> None:
    merging.more |= {"syncers": {"sync": {"safe-mode": True}}, "on-unproven-change": "stop"}
    family(merging, "ON DELETE CASCADE ON UPDATE CASCADE")
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO p_1 VALUES (1, 1), (2, 1)",
            "INSERT INTO c_1 VALUES (1, 1), (2, 2)",
            "UPDATE p_1 SET v = 5",
            "UPDATE c_1 SET p = 1",
            "DELETE FROM c_1 WHERE id = 1",
            "INSERT INTO p_1 VALUES (3, 1)",
            "INSERT INTO c_1 VALUES (3, 3)",
            "DELETE FROM p_1 WHERE id = 3",
        )
        await merging.check(generation)
    merging.do("UPDATE p_1 SET id = 9 WHERE id = 1")
    found = await merging.fault()
    assert found.event == "rows.cascade-in-safe-mode"
    assert merging.on(merging.target, "SELECT COUNT(*) FROM p") == ((2,),)
    del merging.more["syncers"]
    await copy_all_anew(merging, "p", "c")
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("INSERT INTO c_1 VALUES (3, 2)", "DELETE FROM p_1 WHERE id = 2")
        await merging.check(generation)


@pytest.mark.parametrize("blocked", ["p", "c"])
async def test_a_blocked_target_gets_its_changes_later(merging: Merging, blocked: str) -> None:
    await one_child(merging)
    merging.create("x", "(id INT PRIMARY KEY)")
    merging.blocked = TaskParts(frozenset({TableName(merging.database, blocked)}))
    merging.do(
        "INSERT INTO p_1 VALUES (2, 1)",
        "INSERT INTO c_1 VALUES (2, 1), (3, 2)",
        "DELETE FROM p_1 WHERE id = 1",
        "INSERT INTO p_1 VALUES (1, 1)",
        "INSERT INTO c_1 VALUES (2, 1)",
    )
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.blocked = NOTHING
    async with merging.running() as generation:
        await merging.check(generation)


def drop_key(merging: Merging, server: DatabaseServer, table: str) -> None:
    name = server.execute(
        "SELECT CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS"
        f" WHERE CONSTRAINT_SCHEMA = '{merging.database}' AND TABLE_NAME = '{table}'"
    )[0][0]
    merging.on(server, f"ALTER TABLE {table} DROP FOREIGN KEY {name}")


async def test_keys_of_several_columns_and_names_act_as_in_the_shard(merging: Merging) -> None:
    merging.create("p", "(id INT PRIMARY KEY, code VARCHAR(9), UNIQUE (code))")
    keyed = (
        "(id INT, code VARCHAR(9), n INT, PRIMARY KEY (id, code), FOREIGN KEY (code)"
        " REFERENCES {} (code) ON DELETE CASCADE ON UPDATE CASCADE)"
    )
    merging.create("c", keyed.format("p"), shards=0)
    merging.shards("c", 1)
    merging.do(f"CREATE TABLE c_1 {keyed.format('p_1')}")
    create(merging, "s", "s", "ON DELETE SET NULL")
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO p_1 VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            "INSERT INTO c_1 VALUES (1, 'a', 1), (1, 'b', 2), (2, 'c', 3)",
            "INSERT INTO s_1 VALUES (1, 1), (2, 1), (3, 2), (4, 3)",
        )
        await merging.check(generation)
        merging.do(
            # Only the case of letters changes; the children's key goes along with all of it.
            "UPDATE p_1 SET code = 'A' WHERE id = 1",
            "UPDATE p_1 SET code = CONCAT(code, 'x') ORDER BY id DESC",
            "UPDATE c_1 SET id = id + 10, n = 9",
            "REPLACE INTO p_1 VALUES (9, 'cx')",
            "INSERT INTO p_1 VALUES (1, '') ON DUPLICATE KEY UPDATE code = 'q'",
            "DELETE FROM s_1 WHERE id = 1",
            "DELETE FROM s_1 WHERE id IN (2, 3)",
            "BEGIN",
            "SAVEPOINT a",
            "DELETE FROM p_1 WHERE id = 1",
            "ROLLBACK TO a",
            "UPDATE p_1 SET id = 100 WHERE id = 1",
            "COMMIT",
        )
        await merging.check(generation)
        assert merging.on(merging.target, "SELECT id, code FROM c ORDER BY code") == (
            (11, "bx"),
            (11, "q"),
        )
