"""What a shard's rows are read by is known, or the task stops: never a guess in silence."""

from __future__ import annotations

from collections.abc import Callable

from actors.faults import FatalError
from replicator.sandbox.server import DatabaseServer
from tests.support.merging import Merging
from tests.support.running import fault_of

CREATE = "(id INT PRIMARY KEY, a INT, b INT)"


async def fault_while(merging: Merging, *statements: str) -> FatalError:
    async def follow() -> None:
        async with merging.running() as generation:
            merging.do(*statements)
            await merging.caught_up(generation)

    return await fault_of(follow())


async def test_a_create_if_not_exists_of_a_shard_that_is_there_changes_nothing(
    merging_from: Callable[..., Merging], mysql56_source: DatabaseServer
) -> None:
    # MySQL logs it, though it made nothing.
    merging = merging_from(mysql56_source)
    merging.create("t", CREATE)
    async with merging.running() as generation:
        merging.do(
            "CREATE TABLE IF NOT EXISTS t_1 (id INT PRIMARY KEY, b INT, a INT)",
            "INSERT INTO t_1 VALUES (1, 2, 3)",
        )
        await merging.check(generation)
        assert merging.on(merging.target, "SELECT a, b FROM t") == ((2, 3),)


async def test_a_shard_made_like_a_table_that_is_not_replicated_is_a_fault(
    merging_from: Callable[..., Merging], mysql56_source: DatabaseServer
) -> None:
    merging = merging_from(mysql56_source)
    merging.create("t", CREATE)
    mysql56_source.execute(
        f"CREATE DATABASE {merging.database}_x",
        f"CREATE TABLE {merging.database}_x.p (id INT PRIMARY KEY, b INT, a INT)",
    )
    fault = await fault_while(
        merging,
        f"CREATE TABLE t_2 LIKE {merging.database}_x.p",
        "INSERT INTO t_2 VALUES (1, 2, 3)",
    )
    assert fault.event == "rows.structure-unknown"
    assert f"{merging.database}_x.p" in fault.message
    assert merging.on(merging.target, "SELECT * FROM t") == ()
