"""Foreign keys with actions while rows are held: `shard-mode: pessimistic`."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from actors.sharding.pessimistic.coordinator import LockCoordinator
from actors.sharding.shard_mode import OpenLock
from actors.task.generation import Generation
from replicator.sandbox.server import DatabaseServer
from tests.integration.merge.test_cascades import PARENT, child, create, family
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, settles

CASCADES = "ON DELETE CASCADE ON UPDATE CASCADE"


@pytest.fixture
def merging(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mysql56_source: DatabaseServer,
) -> Merging:
    """Two sources with two shards each of a parent, of its child, and of a table beside them."""
    found = merging_from(mariadb_source, mysql56_source)
    found.more["shard-mode"] = "pessimistic"
    found.create("p", PARENT, shards=2)
    create(found, "c", "p", CASCADES, shards=2)
    found.create("x", PARENT, shards=1)
    return found


def on(merging: Merging, shard: str, *statements: str) -> None:
    """Run statements on a shard such as ``a1``: source a, with the numbers of its tables for {0}
    and a key that no other shard has for {1}, {2} …"""
    servers = dict(zip("ab", merging.sources.values(), strict=True))
    own = 100 * (1 + ["a1", "a2", "b1", "b2", "a3", "b3", "a4", "b4", "a5", "b5"].index(shard))
    merging.on(
        servers[shard[0]], *(s.format(shard[1], *range(own + 1, own + 10)) for s in statements)
    )


SHARDS = ("a1", "a2", "b1", "b2")


def fill(merging: Merging) -> None:
    for shard in SHARDS:
        on(
            merging,
            shard,
            "INSERT INTO p_{0} VALUES ({1}, 1), ({2}, 1), ({3}, 1)",
            "INSERT INTO c_{0} VALUES ({1}, {1}), ({2}, {2}), ({3}, {3}), ({4}, NULL)",
        )


async def locks(merging: Merging, generation: Generation) -> list[OpenLock]:
    """The open locks, once everything is applied or held, and nothing is read again."""
    await merging.copied(generation)
    with anyio.fail_after(PATIENCE):
        while True:
            await merging.caught_up(generation)
            assert generation.running is not None
            coordination = generation.running.coordination
            assert isinstance(coordination, LockCoordinator)
            going = any(lock.agreed or lock.pending for lock in coordination.locks.values())
            units = generation.running.units.values()
            if not (len(coordination.mailbox) or going or any(u.restarting for u in units)):
                return coordination.open_locks()
            await anyio.sleep(LOOK_SECONDS)


async def settled(merging: Merging, generation: Generation) -> None:
    """Wait until no lock is open, and the targets equal the shards: rows that a group has held
    in memory may still be on their way."""
    with anyio.fail_after(PATIENCE):
        while await locks(merging, generation) or merging.differences():
            await anyio.sleep(LOOK_SECONDS)


def new_family(merging: Merging, shard: str, *, child_first: bool = False, more: str = "") -> None:
    """Another parent, and its child."""
    tables = [
        f"CREATE TABLE p_{{0}} {PARENT}",
        f"CREATE TABLE c_{{0}} {child(CASCADES, 'p_{0}', more)}",
    ]
    if child_first:
        tables = ["SET foreign_key_checks = 0", *tables[::-1]]
    on(merging, shard, *tables)


async def test_a_running_task_takes_new_shards(merging: Merging) -> None:
    """Without an open lock, in both orders; then behind one, as before and as after its statement;
    all of it is read twice."""
    rows = (
        "INSERT INTO p_{0} VALUES ({1}, 1), ({2}, 1), ({3}, 1)",
        "INSERT INTO c_{0} (id, p) VALUES ({1}, {1}), ({2}, {2}), ({3}, {3})",
        "DELETE FROM p_{0} WHERE id = {1}",
        "UPDATE p_{0} SET id = {6} WHERE id = {2}",
    )
    add = "ALTER TABLE c_{0} ADD COLUMN m INT"
    async with merging.running() as generation:
        fill(merging)
        new_family(merging, "a3")
        new_family(merging, "b3", child_first=True)
        for table in "pc":
            merging.shards(table, 3)
        for shard in ("a3", "b3"):
            on(merging, shard, *rows)
        await settled(merging, generation)
        on(merging, "a3", add, "INSERT INTO c_{0} VALUES ({7}, {3}, 1)")
        on(merging, "a3", "DELETE FROM p_{0} WHERE id = {3}")
        [lock] = await locks(merging, generation)
        assert lock.id == f"{merging.database}.c:1"
        lacking = {s: [n.table for n in names] for s, names in lock.view.missing.items()}
        assert lacking == {"a": ["c_1", "c_2"], "b": ["c_1", "c_2", "c_3"]}
        found = merging.on(merging.target, "SELECT id FROM c WHERE id BETWEEN 500 AND 600")
        assert found == ((502,), (503,))
        new_family(merging, "a4", more=", m INT")
        new_family(merging, "b4")
        for shard in ("a4", "b4"):
            on(merging, shard, *rows)
        [lock] = await locks(merging, generation)
        assert "c_4" not in {name.table for name in lock.view.missing["a"]}
    async with merging.running() as generation:
        new_family(merging, "a5", child_first=True)
        new_family(merging, "b5")
        for table in "pc":
            merging.shards(table, 5)
        for shard in (*SHARDS, "b3", "b4", "a5", "b5"):
            on(merging, shard, add)
        await settled(merging, generation)
        for shard in ("a4", "b4"):
            on(merging, shard, "DELETE FROM p_{0}")
        await settled(merging, generation)


async def test_parents_and_children_that_change_in_turn(merging: Merging) -> None:
    """Both are altered before any other shard is; the rows come in the order of the shard."""
    async with merging.running() as generation:
        fill(merging)
        changes = (
            "ALTER TABLE c_{0} ADD COLUMN m INT",
            "INSERT INTO c_{0} VALUES ({5}, {1}, 7)",
            "UPDATE p_{0} SET id = {6} WHERE id = {2}",
            "ALTER TABLE p_{0} ADD COLUMN n INT DEFAULT 5",
            "INSERT INTO p_{0} VALUES ({7}, 1, 2)",
            "UPDATE c_{0} SET p = {7}, m = 8 WHERE id = {5}",
            "DELETE FROM p_{0} WHERE id = {1}",
            "ALTER TABLE c_{0} DROP COLUMN m",
            "DELETE FROM p_{0} WHERE id = {7}",
            "INSERT INTO p_{0} VALUES ({7}, 1, 3)",
            "INSERT INTO c_{0} VALUES ({8}, {7})",
        )
        for shard in ("b2", "a1", "b1"):
            on(merging, shard, *changes)
        on(merging, "a2", "DELETE FROM p_{0} WHERE id = {3}", *changes[:2])
        # Other names: the keys follow them.
        on(
            merging,
            "a1",
            "RENAME TABLE c_1 TO c_8, p_1 TO p_8",
            "INSERT INTO p_8 VALUES ({9}, 1, 1)",
            "INSERT INTO c_8 VALUES ({9}, {9})",
        )
        found = await locks(merging, generation)
        assert {lock.view.target.table for lock in found} == {"p", "c"}
    on(merging, "a1", "DELETE FROM p_8 WHERE id = {9}", "RENAME TABLE p_8 TO p_1, c_8 TO c_1")
    async with merging.running() as generation:
        on(merging, "a2", *changes[2:])
        await settled(merging, generation)


@pytest.mark.parametrize("action", ["CASCADE", "SET NULL"])
async def test_children_lose_their_parent_behind_a_lock(merging: Merging, action: str) -> None:
    """What the target's key sets to NULL is what the shard's has set, in their order."""
    for server in (*merging.sources.values(), merging.target):
        shards = ("",) if server is merging.target else ("_1", "_2")
        for n in shards:
            keys = f"ON DELETE SET NULL ON UPDATE {action}"
            merging.on(server, f"DROP TABLE c{n}", f"CREATE TABLE c{n} {child(keys, f'p{n}')}")
    changes = (
        "UPDATE c_{0} SET p = {1} WHERE id = {4}",
        "ALTER TABLE c_{0} ADD COLUMN m INT",
        "INSERT INTO c_{0} VALUES ({5}, {1}, 7), ({6}, NULL, 8)",
        "DELETE FROM p_{0} WHERE id = {1}",
        "INSERT INTO p_{0} VALUES ({1}, 9)",
        "UPDATE c_{0} SET p = {1} WHERE id = {6}",
        "UPDATE p_{0} SET id = {7} WHERE id = {2}",
        "UPDATE c_{0} SET m = 4 WHERE p IS NULL",
        "ALTER TABLE p_{0} ADD COLUMN n INT DEFAULT 5",
        "DELETE FROM p_{0} WHERE id = {3}",
        "UPDATE c_{0} SET m = 5 WHERE p IS NULL",
        "INSERT INTO p_{0} VALUES ({3}, 1, 2)",
        "UPDATE c_{0} SET p = {3} WHERE id = {3}",
    )
    async with merging.running() as generation:
        fill(merging)
        await merging.check(generation)
        on(merging, "a1", *changes)
        on(merging, "b2", *changes[:9])
        on(merging, "a2", "DELETE FROM p_{0} WHERE id = {3}")
        assert len(await locks(merging, generation)) == 2
    async with merging.running() as generation:
        on(merging, "b1", *changes)
        on(merging, "b2", *changes[9:])
        on(merging, "a2", *changes[:4], *changes[6:])
        await settled(merging, generation)


def pending(generation: Generation) -> bool:
    """Whether a decided item, and with it its cutovers, is saved and not executed."""
    assert generation.running is not None
    coordination = generation.running.coordination
    assert isinstance(coordination, LockCoordinator)
    return any(lock.pending is not None for lock in coordination.locks.values())


def target(merging: Merging) -> str:
    """The child's structure on the target."""
    [[_, sql]] = merging.on(merging.target, "SHOW CREATE TABLE c")
    return str(sql)


async def test_a_cutover_at_a_row_of_a_former_parent_is_passed_when_it_is_read_again(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
) -> None:
    """The second reading no longer knows the key, and leaves the row out of the child's events."""
    merging = merging_from(mariadb_source, mariadb_source_full)
    merging.more["shard-mode"] = "pessimistic"
    family(merging, "ON UPDATE CASCADE")
    first, last = merging.sources.values()
    async with merging.running() as generation:
        for number, server in enumerate((first, last), 1):
            merging.on(
                server,
                f"INSERT INTO p_1 VALUES ({number}, 1)",
                f"INSERT INTO c_1 VALUES ({number}, {number})",
                "ALTER TABLE c_1 DROP FOREIGN KEY c_1_ibfk_1",
            )
        await settles(lambda: "FOREIGN KEY" in target(merging), False)
        with merging.target.connect(database=merging.database) as session:
            session.cursor().execute("LOCK TABLES c READ")
            merging.on(
                first,
                "ALTER TABLE c_1 ADD n INT",
                "INSERT INTO c_1 VALUES (3, 1, 1)",
                "UPDATE p_1 SET id = 4",
            )
            await merging.caught_up(generation)
            merging.on(last, "ALTER TABLE c_1 ADD n INT")
            await settles(lambda: pending(generation), True)
    async with merging.running():
        await settles(lambda: "`n` int" in target(merging), True)
        await settles(merging.differences, {})
