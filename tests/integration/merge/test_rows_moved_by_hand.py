"""A shard that joins another target, whose rows the operator has moved: none of it is lost there.

The other shards of the new target go on while it waits for the operator's answer.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from actors.errors.faults import FatalError
from replicator.downstream.ddl.target_renames import TargetRenames
from replicator.downstream.meta.moved_shards import MovedShardStore
from replicator.sandbox.server import DatabaseServer
from replicator.schema.effects.overridden_effects import OverrideAction
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import override, until_shard_waits
from tests.support.tasks.running import PATIENCE, settles

X = "(id INT PRIMARY KEY, a INT)"
OF_THE_SHARD = "id BETWEEN 200 AND 299"
MODES = pytest.mark.parametrize(
    "mode", ["", "pessimistic", pytest.param("optimistic", marks=pytest.mark.slow)]
)


@pytest.fixture
def merging(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
) -> Merging:
    """Two sources with shards of x and of y."""
    return merging_from(mariadb_source, mariadb_source_full)


async def begin(merging: Merging, mode: str, columns: str = X) -> None:
    merging.more["shard-mode"] = mode
    merging.create("x", X, shards=2)
    merging.create("y", columns, shards=1)
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1)", "INSERT INTO x_2 VALUES (200, 1), (201, 2)")
        await merging.check(generation)


def move(merging: Merging, number: int = 0) -> None:
    """The RENAME of a shard, and changes of its rows between those of another shard of y."""
    merging.do(
        "UPDATE x_2 SET a = 7 WHERE id = 200",
        "RENAME TABLE x_2 TO y_2",
        f"INSERT INTO y_1 (id) VALUES ({1000 + number})",
        "UPDATE y_2 SET a = 8 WHERE id = 200",
        "DELETE FROM y_2 WHERE id = 201",
        "INSERT INTO y_2 (id, a) VALUES (202, 3), (203, 4)",
        f"UPDATE y_1 SET id = {2000 + number}",
        "DELETE FROM y_2 WHERE id = 203",
    )


async def refused(merging: Merging) -> FatalError:
    """The fault that ends the next run; both targets have the same one."""
    with anyio.fail_after(PATIENCE), pytest.raises((FatalError, ExceptionGroup)) as caught:
        await merging.generation().run(anyio.Event(), anyio.Event())
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, FatalError), repr(error)
    return error


def move_rows(merging: Merging) -> None:
    merging.on(
        merging.target,
        "SET SESSION foreign_key_checks=0",
        f"INSERT INTO y (id, a) SELECT id, a FROM x WHERE {OF_THE_SHARD}",
        f"DELETE FROM x WHERE {OF_THE_SHARD}",
    )


async def goes_on(merging: Merging, columns: str = X) -> None:
    """The target gets what was read before and what comes now."""
    second = list(merging.sources.values())[1]
    merging.do(f"CREATE TABLE x_2 {X}", "INSERT INTO x_2 VALUES (300, 1)")
    merging.on(second, f"CREATE TABLE y_2 {columns}")
    merging.shards("y", 2)
    async with merging.running() as generation:
        await settles(merging.differences, {})
        merging.do("UPDATE y_2 SET a = 9 WHERE id = 202", "INSERT INTO y_1 (id) VALUES (4)")
        await merging.check(generation)
    async with merging.running() as generation:
        merging.do("DELETE FROM y_2 WHERE id = 200", "UPDATE y_1 SET id = 5 WHERE id = 4")
        await merging.check(generation)


@MODES
async def test_rows_behind_those_of_other_shards_are_not_lost(merging: Merging, mode: str) -> None:
    await begin(merging, mode)
    move(merging)
    found = await until_shard_waits(merging)
    # The rows of the other shard are applied by now.
    assert merging.on(merging.target, "SELECT id FROM y") == ((2000,),)
    move_rows(merging)
    await override(merging, found, OverrideAction.SKIP)
    await goes_on(merging)


@MODES
async def test_the_new_target_lacks_a_column(merging: Merging, mode: str) -> None:
    other = "(id INT PRIMARY KEY, b INT)"
    await begin(merging, mode, other)
    move(merging)
    found = await until_shard_waits(merging)
    merging.on(merging.target, "ALTER TABLE y ADD a INT")
    move_rows(merging)
    await override(merging, found, OverrideAction.SKIP)
    async with merging.running() as generation:
        rows = "SELECT id, a FROM y WHERE id < 1000"
        await settles(lambda: merging.on(merging.target, rows), ((200, 8), (202, 3)))
        await merging.caught_up(generation)


@pytest.mark.parametrize("step", ["before", "recorded"])
async def test_a_shard_joins_once_if_the_task_breaks_off(
    merging: Merging, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begin(merging, "")
    move(merging)
    found = await until_shard_waits(merging)
    move_rows(merging)
    await override(merging, found, OverrideAction.SKIP)

    async def die(*_: object) -> None:
        raise ZeroDivisionError(step)

    with monkeypatch.context() as patched:
        if step == "before":
            patched.setattr(TargetRenames, "admit", die)
        else:
            patched.setattr(MovedShardStore, "finish", die)
        with anyio.fail_after(PATIENCE), pytest.raises(ZeroDivisionError):
            await merging.generation().run(anyio.Event(), anyio.Event())
    move_more = "INSERT INTO y_1 (id) VALUES (6), (7)", "INSERT INTO y_2 VALUES (204, 1)"
    merging.do(*move_more)
    await goes_on(merging)


@pytest.mark.remedy("ddl.create-differs", "skip")
@pytest.mark.parametrize("answer", ["skip", pytest.param("resume", marks=pytest.mark.slow)])
async def test_a_created_shard_joins_with_the_rows_that_were_held(
    merging: Merging, answer: str
) -> None:
    """Rows of another shard were applied while those of the new one were held."""
    await begin(merging, "pessimistic")
    second = list(merging.sources.values())[1]
    merging.shards("x", 3)
    merging.on(second, f"CREATE TABLE x_3 {X}")
    merging.do(
        "CREATE TABLE x_3 (id INT PRIMARY KEY, a BIGINT)",
        "INSERT INTO x_3 VALUES (300, 5000000000), (301, 1)",
        "INSERT INTO x_1 VALUES (2, 2)",
        "UPDATE x_3 SET a = a + 1 WHERE id = 300",
        "INSERT INTO x_1 VALUES (3, 3)",
    )
    found = await refused(merging)
    assert found.event == "ddl.create-differs"
    assert merging.on(merging.target, "SELECT id FROM x WHERE id IN (3, 300)") == ((3,),)
    merging.on(merging.target, "ALTER TABLE x MODIFY a BIGINT")
    if answer == "skip":
        await override(merging, found, OverrideAction.SKIP)
    for _ in range(2):
        async with merging.running() as generation:
            await settles(merging.differences, {})
            merging.do("UPDATE x_3 SET a = a + 1", "UPDATE x_1 SET a = a + 1")
            await merging.check(generation)
