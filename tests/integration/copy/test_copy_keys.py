"""Shards that lose their primary key, or get another one, while they are copied."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from actors.errors.faults import TaskParts, of_target
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from tests.integration.copy.test_copy_ddl import NUMBERS, copying, numbers, on, slow
from tests.integration.copy.test_recopy import DROPPED, WRITTEN, equal
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import fault_of, settles
from tests.support.tasks.task_files import endpoint

SLOW = pytest.mark.slow
MakeMerging = Callable[..., Merging]

KEYLESS = (
    "INSERT INTO x_1 VALUES (1600, 1, 1), (1601, 1, 1), (1601, 1, 1)",
    "UPDATE x_1 SET n = -2 WHERE id IN (1003, 1145)",
    "DELETE FROM x_1 WHERE id IN (1006, 1146, 1601)",
)
ADDED = "ALTER TABLE x_1 ADD PRIMARY KEY (id)"


@pytest.mark.also_tidb(slow=True)
@pytest.mark.parametrize(
    "back",
    [pytest.param(True, id="and gets it back"), pytest.param(False, id="for good", marks=SLOW)],
)
async def test_a_shard_drops_its_key_and_the_process_starts_anew_in_between(
    merging_from: MakeMerging, mariadb_source: DatabaseServer, *, back: bool
) -> None:
    merging = merging_from(mariadb_source)
    slow(merging, "", speed=150)
    merging.create("x", NUMBERS, with_target=False)
    merging.create("y", NUMBERS, with_target=False)
    numbers(merging, "x_1", 1000)
    numbers(merging, "y_1", 1000)
    async with copying(merging, 1):
        await on(merging.source, merging, [*WRITTEN, DROPPED, *KEYLESS])
    async with merging.running():
        # Rows of the shard are on the target, and its key is gone.
        await on(merging.source, merging, [ADDED] if back else [])
    async with merging.running() as generation:
        await equal(merging, generation)
        await on(merging.source, merging, ["UPDATE x_1 SET n = 7 WHERE id IN (1100, 1003)"])
        await merging.check(generation)


RIGHTS = "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX"


@pytest.mark.slow
async def test_a_target_that_may_not_be_emptied_keeps_no_other_waiting(
    merging_from: MakeMerging, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    db = merging.database
    merging.on(
        merging.target,
        f"CREATE USER '{db}'@'%' IDENTIFIED BY 'x'",
        f"GRANT {RIGHTS} ON {db}.* TO '{db}'@'%'",
        f"GRANT {RIGHTS}, DROP ON {db}_meta.* TO '{db}'@'%'",
    )
    slow(merging, "", speed=300)
    merging.more["target-database"] = {**endpoint(merging.target), "user": db, "password": "x"}
    for table in ("x", "y"):
        merging.create(table, NUMBERS, with_target=False)
        numbers(merging, f"{table}_1", 1000)

    async def run() -> None:
        async with copying(merging, 1):
            await on(merging.source, merging, [*WRITTEN, DROPPED, *KEYLESS])
            await anyio.sleep_forever()

    fault = await fault_of(run())
    assert fault.event == "server.refused"
    assert fault.scope == of_target(TableName(db, "x"))
    merging.blocked = TaskParts(targets=fault.scope.targets)
    async with merging.running() as generation:
        await merging.copied(generation)
        await on(merging.source, merging, ["UPDATE y_1 SET n = 7 WHERE id = 1100"])
        await settles(lambda: merging.differences(but=["x"]), {})
    merging.on(merging.target, f"GRANT DROP ON {db}.* TO '{db}'@'%'")
    merging.blocked = TaskParts()
    async with merging.running() as generation:
        await equal(merging, generation)
        await merging.check(generation)
