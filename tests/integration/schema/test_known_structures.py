"""What a shard's rows are read by is known, or the task stops: never a guess in silence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from actors.errors.faults import FatalError
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import copy_all_anew
from tests.support.tasks.running import fault_of

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


async def test_rows_of_a_shard_made_like_a_table_that_is_not_replicated_wait(
    merging_from: Callable[..., Merging], mysql56_source: DatabaseServer
) -> None:
    merging = merging_from(mysql56_source)
    merging.create("t", CREATE)
    mysql56_source.execute(
        f"CREATE DATABASE {merging.database}_x",
        f"CREATE TABLE {merging.database}_x.p (id INT PRIMARY KEY, b INT, a INT)",
    )
    async with merging.running() as generation:
        merging.do(
            f"CREATE TABLE t_2 LIKE {merging.database}_x.p", "INSERT INTO t_2 VALUES (1, 2, 3)"
        )
        await merging.caught_up(generation)
        assert generation.running is not None
        [lock] = generation.running.coordination.open_locks()
    assert f"got the structure of {merging.database}_x.p" in lock.reason
    assert merging.on(merging.target, "SELECT * FROM t") == ()


SWAP = (
    "INSERT INTO t_1 VALUES (1, 2, 3)",
    "ALTER TABLE t_1 MODIFY b INT AFTER id",
    "INSERT INTO t_1 VALUES (2, 3, 2)",
)


@pytest.mark.remedy("rows.structure-unknown", "copy anew")
async def test_rows_before_a_change_are_not_read_by_the_structure_behind_it(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", CREATE)
    merging.generation()  # takes the start
    merging.do(*SWAP)
    fault = await fault_while(merging)
    assert fault.event == "rows.structure-unknown"
    assert "MODIFY b" in fault.message
    assert merging.on(merging.target, "SELECT * FROM t") == ()
    await copy_all_anew(merging, "t", columns={"t": "id, a, b"})


async def test_rows_before_a_change_may_tell_their_structure(
    merging_from: Callable[..., Merging], mariadb_source_full: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source_full)
    merging.create("t", CREATE)
    merging.generation()
    merging.do(*SWAP)
    async with merging.running() as generation:
        await merging.check(generation)


async def test_what_changes_no_columns_and_what_is_made_later_are_read_for_certain(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", CREATE)
    merging.generation()
    merging.do(
        "INSERT INTO t_1 VALUES (1, 2, 3)",
        "ALTER TABLE t_1 ADD INDEX (a), COMMENT 'x'",
        "CREATE TABLE t_2 (id INT PRIMARY KEY, b INT, a INT)",
        "INSERT INTO t_2 VALUES (2, 2, 3)",
        "ALTER TABLE t_2 MODIFY a INT AFTER id",
        "INSERT INTO t_2 VALUES (3, 2, 3)",
    )
    merging.shards("t", 2)
    async with merging.running() as generation:
        await merging.caught_up(generation)
        rows = merging.on(merging.target, "SELECT id, a, b FROM t ORDER BY id")
        assert rows == ((1, 2, 3), (2, 3, 2), (3, 2, 3))
