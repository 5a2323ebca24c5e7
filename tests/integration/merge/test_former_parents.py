"""Rows of a table that was a parent by a foreign key until it was dropped."""

from __future__ import annotations

from collections.abc import Callable

from actors.sharding.pessimistic.coordinator import LockCoordinator
from actors.task.generation import Generation
from replicator.sandbox.server import DatabaseServer
from tests.integration.merge.test_cascades import family
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles


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


async def test_a_cutover_at_such_a_row_is_passed_when_its_source_is_read_again(
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
