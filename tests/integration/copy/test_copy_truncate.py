"""All shards of a target are emptied by TRUNCATE while they are copied."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from actors.task.generation import Generation
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.copying import copied_some, slow_copy
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import PATIENCE

MakeMerging = Callable[..., Merging]

COLUMNS = {"key": "(id INT PRIMARY KEY, v INT)", "no key": "(id INT, v INT)"}


def fill(merging: Merging, first: int, rows: int) -> None:
    for number in (1, 2):
        values = ",".join(f"({1000 * number + n},{n})" for n in range(first, first + rows))
        merging.do(f"INSERT INTO t_{number} VALUES {values}")


def empty(merging: Merging) -> None:
    for number in (1, 2):
        merging.do(f"TRUNCATE t_{number}")


async def equal(merging: Merging, generation: Generation) -> None:
    await merging.copied(generation)
    with anyio.move_on_after(PATIENCE):
        while merging.differences():
            await anyio.sleep(0.2)
    await merging.check(generation)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("stopped", [False, True], ids=["at once", "after a stop"])
async def test_all_shards_are_emptied_while_they_are_copied(
    merging_from: MakeMerging,
    mariadb_source: DatabaseServer,
    mode: str,
    columns: str,
    stopped: bool,
) -> None:
    merging = slow_copy(merging_from(mariadb_source), 150)
    merging.more["shard-mode"] = mode
    merging.create("t", COLUMNS[columns], shards=2, with_target=False)
    fill(merging, 1, 200)
    async with merging.running() as generation:
        await copied_some(generation, 2)
        empty(merging)
        fill(merging, 100, 50)
        if not stopped:
            empty(merging)
            fill(merging, 120, 50)
            await equal(merging, generation)
    if stopped:
        async with merging.running() as generation:
            merging.do("TRUNCATE t_1", "INSERT INTO t_1 VALUES (1, 1)")
            merging.do("TRUNCATE t_2", "INSERT INTO t_2 VALUES (2, 2)")
            await equal(merging, generation)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("half", [False, True], ids=["all", "half before"])
async def test_all_shards_are_emptied_while_their_target_is_copied_again(
    merging_from: MakeMerging,
    mariadb_source: DatabaseServer,
    mode: str,
    columns: str,
    half: bool,
) -> None:
    """With half of them emptied before, the copy begins while the other statement is open."""
    merging = slow_copy(merging_from(mariadb_source), 400)
    merging.more["shard-mode"] = mode
    merging.create("t", COLUMNS[columns], shards=2, with_target=False)
    fill(merging, 1, 100)
    async with merging.running() as generation:
        await equal(merging, generation)
        if half:
            merging.do("TRUNCATE t_1", "INSERT INTO t_1 VALUES (1, 1), (3, 3)")
            await merging.caught_up(generation)
    generation = merging.generation()
    generation.recopy = {TableName(merging.database, "t")}
    stop, started = anyio.Event(), anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(generation.run, stop, started)
        await started.wait()
        if not half:
            merging.do("TRUNCATE t_1", "INSERT INTO t_1 VALUES (1, 1)")
        merging.do("TRUNCATE t_2", "INSERT INTO t_2 VALUES (2, 2)")
        await equal(merging, generation)
        stop.set()
    async with merging.running() as generation:
        merging.do("INSERT INTO t_2 VALUES (4, 4)", "TRUNCATE t_2", "TRUNCATE t_1")
        merging.do("INSERT INTO t_2 VALUES (5, 5)")
        await equal(merging, generation)
