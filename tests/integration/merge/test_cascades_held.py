"""Foreign keys with actions while rows are held: `shard-mode: pessimistic`."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from actors.sharding.coordination import OpenLock
from actors.sharding.pessimistic.coordinator import LockCoordinator
from actors.task.generation import Generation
from actors.task.operator.lock_report import lock_statuses
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from replicator.schema.effects.overridden_effects import OverrideAction
from replicator.sharding.open_locks import DisputedError
from tests.integration.merge.test_cascades import PARENT, child, create, drop_key, extracted_family
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import override
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, fault_of

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
    """No lock is open, and the targets are equal to the shards."""
    assert await locks(merging, generation) == []
    await merging.check(generation)


async def test_connected_tables_are_held_together(merging: Merging) -> None:
    async with merging.running() as generation:
        fill(merging)
        await merging.check(generation)
        on(
            merging,
            "a1",
            "ALTER TABLE p_{0} ADD COLUMN n INT",
            "INSERT INTO p_{0} VALUES ({5}, 1, 1)",
            "INSERT INTO c_{0} VALUES ({5}, {5})",
            "DELETE FROM p_{0} WHERE id = {1}",
            "UPDATE p_{0} SET id = {6} WHERE id = {2}",
            "INSERT INTO x_1 VALUES (1, 1)",
        )
        on(merging, "a2", "DELETE FROM p_{0} WHERE id = {1}")
        on(merging, "b1", "UPDATE p_{0} SET id = {6} WHERE id = {2}")
        [lock] = await locks(merging, generation)
        assert lock.id == f"{merging.database}.p:1"
        lacking = {s: [n.table for n in names] for s, names in lock.view.missing.items()}
        assert lacking == {"a": ["p_2"], "b": ["p_1", "p_2"]}
        found = merging.on(merging.target, "SELECT id, p FROM c WHERE id < 300 ORDER BY id")
        assert [row[0] for row in found] == [101, 102, 103, 104, 202, 203, 204]
        assert merging.on(merging.target, "SELECT p FROM c WHERE id = 302") == ((306,),)
        assert merging.on(merging.target, "SELECT COUNT(*) FROM x") == ((1,),)
        for shard in SHARDS[1:]:
            on(merging, shard, "ALTER TABLE p_{0} ADD COLUMN n INT")
        await settled(merging, generation)


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
        # Other names: what foreign keys connect stays connected.
        on(
            merging,
            "a1",
            "RENAME TABLE c_1 TO c_8, p_1 TO p_8",
            "INSERT INTO p_8 VALUES ({9}, 1, 1)",
            "INSERT INTO c_8 VALUES ({9}, {9})",
        )
        [lock] = await locks(merging, generation)
        assert (lock.view.target.table, lock.view.version) == ("p", 2)
        assert [name.table for name in lock.tied] == ["c"]
    on(merging, "a1", "DELETE FROM p_8 WHERE id = {9}", "RENAME TABLE p_8 TO p_1, c_8 TO c_1")
    async with merging.running() as generation:
        on(merging, "a2", *changes[2:])
        await settled(merging, generation)


async def test_other_orders_are_a_conflict_that_an_unlock_ends(merging: Merging) -> None:
    """Each of two locks would wait for rows that the other one holds: the operator is told."""
    async with merging.running() as generation:
        fill(merging)
        parent = (
            "ALTER TABLE p_{0} ADD COLUMN n INT",
            "INSERT INTO p_{0} VALUES ({5}, 1, 1)",
            "INSERT INTO c_{0} (id, p) VALUES ({5}, {5}), ({6}, {1})",
            "DELETE FROM p_{0} WHERE id = {1}",
        )
        child = (
            "ALTER TABLE c_{0} ADD COLUMN m INT",
            "INSERT INTO c_{0} VALUES ({7}, {2}, 1)",
            "UPDATE p_{0} SET id = {8} WHERE id = {2}",
        )
        on(merging, "a1", *parent, *child)
        on(merging, "a2", *child, *parent)
        on(merging, "b1", *parent)
        on(merging, "b2", *child)
        on(merging, "a1", "INSERT INTO x_1 VALUES (1, 1)")
        [lock] = await locks(merging, generation)
        conflict = lock.view.conflict
        assert conflict is not None
        assert {conflict.ours.items[0].target, conflict.theirs.items[0].target} == {
            f"{merging.database}.p",
            f"{merging.database}.c",
        }
        assert merging.on(merging.target, "SELECT COUNT(*) FROM x") == ((1,),)
        assert generation.running is not None
        coordination = generation.running.coordination
        with pytest.raises(DisputedError):
            await coordination.unlock(lock.id, owner="", skip=False)
        await coordination.unlock(lock.id, owner="b", shard=f"{merging.database}.c_2", skip=False)
        [lock] = await locks(merging, generation)
        assert (lock.view.target.table, lock.view.conflict) == ("p", None)
        on(merging, "b1", *child)
        on(merging, "b2", *parent)
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
        assert len(await locks(merging, generation)) == 1
    async with merging.running() as generation:
        on(merging, "b1", *changes)
        on(merging, "b2", *changes[9:])
        on(merging, "a2", *changes[:4], *changes[6:])
        await settled(merging, generation)


async def test_a_key_that_goes_and_comes_back_behind_a_lock_opens_no_further_one(
    merging: Merging,
) -> None:
    """No shard has to lose its key because the operator has skipped that of another."""
    add = "ALTER TABLE p_{0} ADD COLUMN n INT"
    async with merging.running() as generation:
        fill(merging)
        await merging.check(generation)
        on(merging, "a1", add, "INSERT INTO p_{0} VALUES ({5}, 1, 1)")
        assert len(await locks(merging, generation)) == 1
    drop_key(merging, merging.source, "c_1")
    back = f"ALTER TABLE c_{{0}} ADD FOREIGN KEY (p) REFERENCES p_{{0}} (id) {CASCADES}, ADD m INT"
    on(merging, "a1", back, "DELETE FROM p_{0} WHERE id = {1}")
    for _ in range(2):
        found = await merging.fault()
        assert found.event == "ddl.not-supported"
        await override(merging, found, OverrideAction.SKIP)
    async with merging.running() as generation:
        assert [lock.view.target.table for lock in await locks(merging, generation)] == ["p"]
        for shard in SHARDS[1:]:
            on(merging, shard, add)
        assert await locks(merging, generation) == []
        await merging.check(generation, {"c": "id, p"})
        on(merging, "a1", "DELETE FROM p_{0} WHERE id = {2}")
        await merging.check(generation, {"c": "id, p"})


@pytest.mark.parametrize("drops", [False, True], ids=["unlock", "drop"])
async def test_a_child_whose_parent_is_dropped_can_not_run_the_statement_of_a_lock(
    merging: Merging, drops: bool
) -> None:
    add = "ALTER TABLE p_{0} ADD COLUMN n INT"
    async with merging.running() as generation:
        fill(merging)
        for shard in SHARDS[1:]:
            on(merging, shard, add, "DELETE FROM p_{0} WHERE id = {1}")
        on(merging, "a1", "SET foreign_key_checks = 0", "DROP TABLE p_1")
        [lock] = await locks(merging, generation)
        assert lock.view.missing == {"a": (TableName(merging.database, "c_1"),)}
        assert generation.running is not None
        [shown] = lock_statuses("shop", generation.running)
        assert shown.remedies[0].startswith(f"a: {merging.database}.c_1 can't run it: the shard of")
        assert "run the statement on the other shards" not in "".join(shown.remedies)
        if drops:
            on(merging, "a1", "DROP TABLE c_1")
        else:
            await generation.running.coordination.unlock(lock.id, owner="", skip=False)
            on(
                merging,
                "a1",
                "UPDATE c_1 SET p = NULL WHERE id = {2}",
                "DELETE FROM c_1 WHERE p = {3}",
            )
        assert await locks(merging, generation) == []
        changed = {102: None} if not drops else {102: 102, 103: 103}
        own = {101: 101, **changed, 104: None}
        others = {n + k: n + k for n in (200, 300, 400) for k in (2, 3)} | {
            n + 4: None for n in (200, 300, 400)
        }
        found = merging.on(merging.target, "SELECT id, p FROM c")
        assert {row[0]: row[1] for row in found} == own | others
        assert merging.on(merging.target, "SELECT COUNT(*), COUNT(n) FROM p") == ((9, 0),)


@pytest.mark.remedy("ddl.not-supported", "skip")
async def test_shards_of_a_family_that_is_copied_come_and_go(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    """Two shards with the same keys, which an extracted column keeps apart."""
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = "pessimistic"
    merging.mode = "all"
    extracted_family(merging)
    for shard in (1, 2):
        merging.do(
            f"INSERT INTO p_{shard} VALUES (1, 1), (2, 1), (3, 1)",
            f"INSERT INTO c_{shard} VALUES (1, 1), (1, 2), (2, 1), (3, 1)",
        )

    def there(table: str, columns: str) -> list[tuple[object, ...]]:
        found = merging.on(merging.target, f"SELECT `of`, {columns} FROM {table} ORDER BY 1, 2, 3")
        return [(str(of), *row) for of, *row in found]

    def of_second(table: str, columns: str) -> list[tuple[object, ...]]:
        return [row for row in there(table, columns) if row[0] == "2"]

    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do(
            "ALTER TABLE c_1 ADD COLUMN m INT DEFAULT 4",
            "DELETE FROM p_1 WHERE id = 1",
            "INSERT INTO p_1 VALUES (1, 9)",
            "INSERT INTO c_1 VALUES (1, 7, 5)",
            "UPDATE p_2 SET id = 9 WHERE id = 2",
            "DELETE FROM p_1 WHERE id = 2",
        )
        assert len(await locks(merging, generation)) == 1
        assert there("p", "id, v") == [
            *(("1", n, 1) for n in (1, 2, 3)),
            *(("2", n, 1) for n in (1, 3, 9)),
        ]
        assert of_second("c", "p, n") == [("2", *row) for row in ((1, 1), (1, 2), (3, 1), (9, 1))]
    # It starts again while a lock is open, and a shard has lost the one that it is connected with.
    merging.do("TRUNCATE TABLE c_2", "DROP TABLE c_2")
    async with merging.running() as generation:
        [lock] = await locks(merging, generation)
        assert lock.view.missing == {"a": (TableName(merging.database, "p_2"),)}
        merging.do("DROP TABLE p_2")
        assert await locks(merging, generation) == []
        assert there("p", "id, v")[:2] == [("1", 1, 9), ("1", 3, 1)]
        first = [row for row in there("c", "p, n, m") if row[0] == "1"]
        assert first == [("1", 1, 7, 5), ("1", 3, 1, 4)]
        assert len(of_second("c", "p, n")) == 4

    async def follow() -> None:
        # Without a foreign key, while it runs: a start would see that.
        async with merging.running() as generation:
            await merging.copied(generation)
            merging.do("CREATE TABLE c_5 LIKE c_1", "DELETE FROM p_1 WHERE id = 3")
            await merging.caught_up(generation)

    found = await fault_of(follow())
    assert found.event == "ddl.not-supported"
    merging.do("DROP TABLE c_5")
    await override(merging, found, OverrideAction.SKIP)
    async with merging.running() as generation:
        assert await locks(merging, generation) == []
        assert [row for row in there("c", "p, n") if row[0] == "1"] == [("1", 1, 7)]
