"""Running a task's actors inside the test, on a Spark that tests share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import anyio
import pytest
from pyspark import SparkContext

import config
from actors.control.arguments import OnChangedRules
from actors.counting.task_counts import TaskCounts
from actors.errors.faults import FatalError, TaskParts
from actors.setup.task_setup import source_setups
from actors.task.generation import Generation
from actors.task.resources.unavailable_sources import UnavailableSources
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.meta.lease import Lease, this_process
from replicator.sandbox.server import DatabaseServer
from replicator.schema.scratch.learned_structures import LearnedStructures
from tests.support.servers.binlog_ends import end_of

LOOK_SECONDS = 0.02
PATIENCE = 120.0
NOTHING = TaskParts()


def generation_of(
    task: config.Task,
    spark: SparkContext,
    blocked: TaskParts = NOTHING,
    on_changed_rules: OnChangedRules = OnChangedRules.STOP,
) -> Generation:
    """A generation of a task that was not run yet."""
    lease = Lease(task.meta_schema, task.name, this_process())
    away = UnavailableSources({setup.source: setup.address for setup in source_setups(task)})
    learned = LearnedStructures()

    async def shared(_: anyio.Event) -> SparkContext:
        return spark

    return Generation(task, shared, TaskCounts(), lease, blocked, away, learned, on_changed_rules)


@asynccontextmanager
async def running(
    task: config.Task,
    spark: SparkContext,
    blocked: TaskParts = NOTHING,
    on_changed_rules: OnChangedRules = OnChangedRules.STOP,
) -> AsyncIterator[Generation]:
    """One generation of the task, stopped in order at the end of the block."""
    generation = generation_of(task, spark, blocked, on_changed_rules)
    stop, started = anyio.Event(), anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(generation.run, stop, started)
        await started.wait()
        yield generation
        stop.set()


async def copied(generation: Generation, patience: float = PATIENCE) -> None:
    """Wait until the full copy is done and the binlog is followed."""
    with anyio.fail_after(patience):
        while generation.running is None:
            await anyio.sleep(LOOK_SECONDS)


async def caught_up(
    generation: Generation, sources: Mapping[str, DatabaseServer], patience: float = PATIENCE
) -> None:
    """Wait until everything that the sources have logged up to now is applied."""
    ends = {source: end_of(server) for source, server in sources.items()}
    with anyio.fail_after(patience):
        while not all(reached(generation, source, end) for source, end in ends.items()):
            await anyio.sleep(LOOK_SECONDS)


async def settles(look: Callable[[], object], wanted: object) -> None:
    """Wait until a look gives what is wanted, which it must in the end.

    With coordination, rows behind a change arrive after their source was read again.
    """
    with anyio.move_on_after(PATIENCE):
        while look() != wanted:
            # A look asks all servers: without a pause, that is what the machine would do.
            await anyio.sleep(LOOK_SECONDS * 5)
    assert look() == wanted


def reached(generation: Generation, source: str, end: BinlogPosition) -> bool:
    assert generation.running is not None
    applied = generation.running.writer.applied(source)
    return applied is not None and applied.binlog.key >= end.key


async def fault_of(run: Awaitable[object]) -> FatalError:
    """The one fault that ends a run."""
    with pytest.raises((FatalError, ExceptionGroup)) as caught:
        await run
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup):
        assert len(error.exceptions) == 1, error.exceptions
        [error] = error.exceptions
    assert isinstance(error, FatalError), repr(error)
    return error
