"""Columns that the target computes have the values that the shards have, or are a fault."""

from __future__ import annotations

import re
from collections.abc import Callable

import anyio
import pytest

from replicator.pipeline.plans.computed_columns import OWN_VALUE
from replicator.sandbox.server import DatabaseServer
from replicator.schema.effects.overridden_effects import OverrideAction
from tests.integration.columns.test_column_mapping import equal, mapped
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import override
from tests.support.tasks.running import PATIENCE, fault_of, settles

PLAIN = "(id INT PRIMARY KEY, a INT, v INT)"


@pytest.fixture(params=["mariadb_source", "mysql_source"])
def newer(request: pytest.FixtureRequest) -> DatabaseServer:
    """Each kind of server that has computed columns in turn."""
    server: DatabaseServer = request.getfixturevalue(request.param)
    return server


@pytest.mark.parametrize("mode", ["incremental", "all"])
async def test_a_target_that_computes_what_the_shards_store_is_refused(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode = mode
    merging.create("t", PLAIN, target="(id INT PRIMARY KEY, a INT, v INT AS (a * 2) STORED)")
    if mode == "all":
        merging.do("INSERT INTO t_1 VALUES (1, 2, 3)")
    else:
        async with merging.running() as generation:
            await merging.caught_up(generation)
        merging.do("INSERT INTO t_1 VALUES (1, 2, 3)")
    found = await merging.fault()
    assert "the target computes `v`, and the shard stores values" in found.message
    assert found.scope is not None
    assert [str(name) for name in found.scope.targets] == [f"{merging.database}.t"]
    # What the message tells to do.
    merging.on(merging.target, "ALTER TABLE t MODIFY COLUMN `v` int(11)")
    async with merging.running() as generation:
        await merging.copied(generation)
        await merging.check(generation)


@pytest.mark.not_on_tidb("it makes no stored column a plain one")
async def test_a_stored_column_that_depends_on_the_session_that_wrote_it(
    merging_from: Callable[..., Merging], newer: DatabaseServer
) -> None:
    merging = merging_from(newer)
    merging.create("t", "(id INT PRIMARY KEY, at TIMESTAMP NULL, hour INT AS (HOUR(at)) STORED)")
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.do(
        "SET time_zone = '+05:00'", "INSERT INTO t_1 (id, at) VALUES (1, '2020-01-02 03:04:05')"
    )
    found = await merging.fault()
    assert "its values depend on the time zone of the session" in found.message
    [statement] = re.findall(r"ALTER TABLE [^;]+;", found.message)
    merging.on(merging.target, statement)
    async with merging.running() as generation:
        await merging.check(generation)
    assert merging.on(merging.target, "SELECT hour FROM t") == ((3,),)


@pytest.mark.not_on_tidb("it makes no plain column a generated one")
@pytest.mark.parametrize(
    "change", ["MODIFY v INT AS (a * 2) STORED", "CHANGE v v INT AS (2*a) STORED"]
)
async def test_a_column_that_one_shard_begins_to_compute(
    merging_from: Callable[..., Merging], newer: DatabaseServer, change: str
) -> None:
    """The target computes it when both do."""
    merging = merging_from(newer)
    merging.create("t", PLAIN, shards=2)
    async with merging.running() as generation:
        merging.do("INSERT INTO t_1 VALUES (1, 1, 2)", "INSERT INTO t_2 VALUES (2, 2, 77)")
        await merging.caught_up(generation)
        merging.do(f"ALTER TABLE t_1 {change}", "UPDATE t_1 SET a = 10")
        merging.do("INSERT INTO t_1 (id, a) VALUES (3, 3)", "UPDATE t_2 SET v = 78")
        await merging.caught_up(generation)
        merging.do("UPDATE t_2 SET v = a * 2", f"ALTER TABLE t_2 {change}")
        merging.do("UPDATE t_2 SET a = 20", "UPDATE t_1 SET a = a + 30")
        await settles(merging.differences, {})
        await merging.check(generation)
    [(_, created)] = merging.on(merging.target, "SHOW CREATE TABLE t")
    assert "GENERATED ALWAYS" in str(created)


@pytest.mark.not_on_tidb("it makes no plain column a generated one")
@pytest.mark.remedy("ddl.computed", "skip")
async def test_an_unlock_never_computes_what_a_shard_still_stores(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = "pessimistic"
    merging.create("t", PLAIN, shards=2)

    async def unlocked() -> None:
        async with merging.running() as generation:
            merging.do("INSERT INTO t_1 VALUES (1, 1, 2)", "INSERT INTO t_2 VALUES (2, 2, 77)")
            merging.do("ALTER TABLE t_1 MODIFY v INT AS (a * 2) STORED", "UPDATE t_1 SET a = 10")
            await merging.caught_up(generation)
            assert generation.running is not None
            coordination = generation.running.coordination
            await settles(lambda: len(coordination.open_locks()), 1)
            [lock] = coordination.open_locks()
            await coordination.unlock(lock.id, owner="", skip=False)
            await anyio.sleep(PATIENCE)

    found = await fault_of(unlocked())
    assert found.event == "ddl.computed"
    assert f"{merging.database}.t_2 stores values of its own in it" in found.message
    await override(merging, found, OverrideAction.SKIP)
    async with merging.running() as generation:
        merging.do("INSERT INTO t_1 (id, a) VALUES (3, 3)", "UPDATE t_2 SET v = 78")
        await settles(merging.differences, {})
        await merging.check(generation)


@pytest.mark.not_on_tidb("it adds no stored column that it computes")
@pytest.mark.parametrize("kind", ["STORED", "VIRTUAL"])
async def test_a_column_that_is_dropped_and_comes_back_computed(
    merging_from: Callable[..., Merging], newer: DatabaseServer, kind: str
) -> None:
    merging = merging_from(newer)
    merging.create("t", PLAIN, shards=2)
    changes = "DROP v", f"ADD v INT AS (a * 2) {kind}"
    async with merging.running() as generation:
        merging.do("INSERT INTO t_1 VALUES (1, 1, 2)", "INSERT INTO t_2 VALUES (2, 2, 77)")
        merging.do(*(f"ALTER TABLE t_1 {change}" for change in changes), "UPDATE t_1 SET a = 10")
        await merging.caught_up(generation)
        merging.do("UPDATE t_2 SET a = 5, v = 78")
        await merging.caught_up(generation)
        merging.do(*(f"ALTER TABLE t_2 {change}" for change in changes), "UPDATE t_2 SET a = a + 1")
        await settles(merging.differences, {})
        await merging.check(generation)


@pytest.mark.not_on_tidb("it makes no plain column a generated one")
async def test_a_column_that_all_shards_begin_to_compute_with_coordination(
    merging_from: Callable[..., Merging], newer: DatabaseServer
) -> None:
    merging = merging_from(newer)
    merging.more["shard-mode"] = "pessimistic"
    merging.create("t", PLAIN, shards=2)
    async with merging.running() as generation:
        merging.do("INSERT INTO t_1 VALUES (1, 1, 2)", "INSERT INTO t_2 VALUES (2, 2, 4)")
        for shard in ("t_1", "t_2"):
            merging.do(f"ALTER TABLE {shard} MODIFY v INT AS (a * 2) STORED")
            merging.do(f"UPDATE {shard} SET a = a + 30")
        # What comes next is that no more: it says nothing about the statement before.
        merging.do("ALTER TABLE t_1 MODIFY v INT", "ALTER TABLE t_2 MODIFY v INT")
        merging.do("UPDATE t_1 SET v = 5", "UPDATE t_2 SET v = 6")
        with anyio.fail_after(PATIENCE):
            while merging.differences():
                await anyio.sleep(0.1)
        await merging.check(generation)


@pytest.mark.parametrize(
    "columns",
    ["c INT DEFAULT (id + 1)", "c INT AS (id % 100) STORED", "c INT AS (id % 100) VIRTUAL"],
)
@pytest.mark.not_on_tidb("it has no defaults that refer to columns, and adds no stored column")
async def test_a_column_made_of_a_mapped_one(
    merging_from: Callable[..., Merging], newer: DatabaseServer, columns: str
) -> None:
    merging = merging_from(newer)
    mapped(merging)
    merging.create(
        "x", "(id INT PRIMARY KEY, v INT)", shards=2, target="(id BIGINT PRIMARY KEY, v INT)"
    )
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (301, 1)", "INSERT INTO x_2 VALUES (302, 1)")
        await merging.caught_up(generation)
    for shard in ("x_1", "x_2"):
        merging.do(
            f"ALTER TABLE {shard} ADD {columns}",
            f"INSERT INTO {shard} (id, v) VALUES (401, 2)",
            f"UPDATE {shard} SET v = 5 WHERE id < 400",
        )
        found = await merging.fault()
        assert found.event == "ddl.not-supported"
        assert f"(`id` & {OWN_VALUE})" in found.message
        instead = columns.replace("id", f"(id & {OWN_VALUE})", 1)
        if shard == "x_1":
            statement = f"ALTER TABLE {shard} ADD {instead}"
            await override(merging, found, OverrideAction.REPLACE, statement)
        else:
            await override(merging, found, OverrideAction.SKIP)
        async with merging.running() as generation:
            await merging.caught_up(generation)
    async with merging.running() as generation:
        await merging.caught_up(generation)
        await equal(merging, "x", 2, "id, v, c")


@pytest.mark.parametrize("mode", ["incremental", "all"])
async def test_a_target_that_computes_from_mapped_values_is_refused(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode = mode
    mapped(merging)
    computed = "d INT AS (id % 100) STORED, c INT AS (d + 1) VIRTUAL"
    merging.create(
        "x",
        f"(id INT PRIMARY KEY, v INT, {computed})",
        target=f"(id BIGINT PRIMARY KEY, v INT, {computed})",
    )
    if mode == "incremental":
        async with merging.running() as generation:
            await merging.caught_up(generation)
    merging.do("INSERT INTO x_1 (id, v) VALUES (301, 1)")
    found = await merging.fault()
    assert "the target computes `d` from `id`" in found.message
