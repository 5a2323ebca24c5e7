"""What the ways out of faults say, done as it is said: the task continues and no row is lost."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from structlog.testing import capture_logs

from actors.faults import FatalError, of_target
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from tests.support.merging import Merging
from tests.support.running import LOOK_SECONDS, NOTHING, PATIENCE, fault_of

MakeMerging = Callable[..., Merging]
X = "(id INT PRIMARY KEY, v VARCHAR(9))"


async def fault(merging: Merging) -> FatalError:
    """The fault that ends the next run."""
    with anyio.fail_after(PATIENCE):
        return await fault_of(merging.generation().run(anyio.Event(), anyio.Event()))


async def equal(merging: Merging) -> None:
    """Wait until the targets have the rows of the shards."""
    with anyio.move_on_after(PATIENCE):
        while merging.differences():
            await anyio.sleep(LOOK_SECONDS)
    assert merging.differences() == {}


def way(found: FatalError, words: str) -> str:
    """The one way out that has these words."""
    [told] = [told for told in found.ways_out if words in told]
    return told


def not_empty(merging: Merging) -> None:
    """Shards with rows, and a target that has one of somebody's that is in the way of the last."""
    merging.create("x", X, shards=2)
    merging.create("z", X)
    for number, server in enumerate(merging.sources.values()):
        first = 1000 * number
        merging.on(
            server,
            f"INSERT INTO x_1 SELECT {first} + seq, 'a' FROM seq_1_to_20",
            f"INSERT INTO x_2 SELECT {first} + 100 + seq, 'b' FROM seq_1_to_20",
            f"INSERT INTO z_1 VALUES ({number}, 'z')",
        )
    merging.on(merging.target, f"INSERT INTO x VALUES ({1000 * number + 105}, 'old')")


async def empty_as_told(merging: Merging) -> None:
    found = await fault(merging)
    assert found.event == "copy.duplicate"
    told = way(found, "TRUNCATE TABLE")
    [statement] = [part for part in told.split(": ") if part.startswith("TRUNCATE")]
    merging.target.execute(statement.split(";")[0])


async def test_a_target_with_rows_is_emptied_during_its_copy(
    merging_from: MakeMerging, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode = "all"
    not_empty(merging)
    await empty_as_told(merging)
    with capture_logs() as logs:
        async with merging.running() as generation:
            await merging.copied(generation)
            merging.do("INSERT INTO x_1 VALUES (50, 'later')", "DELETE FROM x_2 WHERE id = 101")
            await merging.check(generation)
    assert [e["target"] for e in logs if e["event"] == "copy.target-emptied"] == [
        f"{merging.database}.x"
    ]


async def test_a_blocked_target_is_emptied_while_others_are_followed(
    merging_from: MakeMerging, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode = "all"
    not_empty(merging)
    await empty_as_told(merging)
    merging.on(merging.target, "INSERT INTO x VALUES (105, 'old')")
    merging.blocked = of_target(TableName(merging.database, "x"))
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("INSERT INTO x_1 VALUES (50, 'held')", "INSERT INTO z_1 VALUES (7, 'flows')")
        merging.do("DELETE FROM x_1 WHERE id = 3")
        await merging.caught_up(generation)
    assert merging.differences(but=["x"]) == {}
    merging.on(merging.target, "TRUNCATE TABLE x")
    merging.blocked = NOTHING
    async with merging.running() as generation:
        await merging.copied(generation)
        await equal(merging)
        merging.do("INSERT INTO x_1 VALUES (51, 'later')", "DELETE FROM x_2 WHERE id = 101")
        await equal(merging)


async def test_a_target_is_emptied_when_one_of_two_sources_is_copied(
    merging_from: MakeMerging,
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
) -> None:
    merging = merging_from(mariadb_source, mariadb_source_full)
    merging.mode = "full"
    not_empty(merging)
    await empty_as_told(merging)
    await merging.copy()
    assert merging.differences() == {}


async def test_a_target_that_keeps_rows_of_its_copy_is_not_copied_anew(
    merging_from: MakeMerging, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode = "all"
    not_empty(merging)
    found = await fault(merging)
    assert found.event == "copy.duplicate"
    merging.on(merging.target, "DELETE FROM x WHERE v = 'old'")
    with capture_logs() as logs:
        async with merging.running() as generation:
            await merging.copied(generation)
            await merging.check(generation)
    assert not [e for e in logs if e["event"] == "copy.target-emptied"]
