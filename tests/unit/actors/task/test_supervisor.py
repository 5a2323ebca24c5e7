"""The states of a task, one after the other, as its runs end and the operator wants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from actors.control.arguments import RunOptions
from actors.errors.faults import (
    FatalError,
    Recovery,
    TaskParts,
    TransientError,
    of_source,
    of_target,
)
from actors.errors.refusals import locked_fault
from actors.jobs.backoff import Backoff
from actors.task import part_backoff
from actors.task.outcome import Failed, Outcome, Pause, Retry, Stop, restart_fault
from actors.task.resources.spark import TaskSpark
from actors.task.supervisor import TaskSupervisor
from config.loading import load_task
from replicator.mysql.connection.asyncio_connection import DatabaseUnavailableError
from replicator.mysql.names import TableName

FAULT = Failed(
    FatalError(
        "ddl.refused",
        "no",
        "mend it",
        where="a",
    )
)
AWAY = DatabaseUnavailableError("the target is away")
EXAMPLE = Path(__file__).parents[4] / "config/examples/merge-two-sources.yaml"


@pytest.fixture(autouse=True)
def _passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARD_PASSWORD", "one")
    monkeypatch.setenv("TARGET_PASSWORD", "two")


Step = Callable[[TaskSupervisor], Outcome]


class Scripted(TaskSupervisor):
    """Runs end as a script says; with its end the task is stopped."""

    def __init__(self, *steps: Step, exit_on_error: bool = False) -> None:
        task = load_task(EXAMPLE)
        super().__init__(task, TaskSpark(task), RunOptions(exit_on_error))
        self.steps = list(steps)

    async def _run_once(self) -> Outcome:
        if not self.steps:
            self.request("stop")
            return Stop()
        self._wished = anyio.Event()
        return self.steps.pop(0)(self)

    async def live(self) -> int:
        """The exit code."""
        with anyio.fail_after(10):
            return await self._live()


def ends(outcome: Outcome) -> Step:
    return lambda _: outcome


def asked(command: str, outcome: Outcome) -> Step:
    """The operator asks for something, and the run ends."""

    def step(task: TaskSupervisor) -> Outcome:
        task.request(command)
        return outcome

    return step


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The restart waits, in seconds, which take none."""
    found: list[float] = []

    class Waiting(Backoff):
        async def wait(self, until: anyio.Event | None = None) -> None:
            found.append(self.next)
            at_once = anyio.Event()
            at_once.set()
            await super().wait(at_once)

    monkeypatch.setattr("actors.task.supervisor.Backoff", Waiting)
    return found


async def until(task: TaskSupervisor, state: str) -> None:
    with anyio.fail_after(10):
        while task.status().state != state:
            await anyio.lowlevel.checkpoint()


async def test_a_task_that_has_done_its_work_ends_in_order() -> None:
    task = Scripted(ends(Stop()))
    assert await task.live() == 0
    assert task.status().state == "stopped"


async def test_a_pause_lasts_until_the_operator_resumes() -> None:
    task = Scripted(asked("pause", Pause()), ends(Stop()))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(task.live)
        await until(task, "paused")
        assert len(task.steps) == 1
        task.request("resume")
        await until(task, "stopped")


async def test_a_pause_that_is_taken_back_before_it_began_is_none() -> None:
    def changes_their_mind(task: TaskSupervisor) -> Outcome:
        task.request("pause")
        task.request("resume")
        return Pause()

    assert await Scripted(changes_their_mind, ends(Stop())).live() == 0


async def test_a_fault_pauses_and_is_told_until_it_is_resumed() -> None:
    task = Scripted(ends(FAULT), ends(Stop()))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(task.live)
        await until(task, "paused")
        fault = task.status().error
        assert fault is not None
        assert (fault.event, fault.where, fault.remedies) == ("ddl.refused", "a", ("mend it",))
        task.request("resume")
        assert task.status().error is None
        await until(task, "stopped")


async def test_to_stop_a_task_that_a_fault_has_paused_is_an_error_code() -> None:
    task = Scripted(ends(FAULT))
    async with anyio.create_task_group() as tasks:

        async def stop() -> None:
            await until(task, "paused")
            task.request("stop")

        tasks.start_soon(stop)
        assert await task.live() == 1


async def test_a_fault_ends_the_process_where_that_is_wanted() -> None:
    task = Scripted(ends(FAULT), ends(Stop()), exit_on_error=True)
    assert await task.live() == 1
    assert len(task.steps) == 1
    assert task.status().error is not None


async def test_restarts_wait_longer_and_longer_until_one_has_run(waits: list[float]) -> None:
    retry = ends(Retry(AWAY, ran=False))
    task = Scripted(retry, retry, retry, ends(Retry(AWAY, ran=True)), retry, ends(Stop()))
    assert await task.live() == 0
    assert waits == [0.5, 1.0, 2.0, 0.5, 1.0]


async def test_a_restart_tells_of_the_first_failure_and_of_the_next_attempt() -> None:
    first = restart_fault(None, AWAY, 0.5)
    earlier = replace(first, since=first.since - timedelta(minutes=5))
    again = restart_fault(earlier, AWAY, 30.0)
    assert again.since == earlier.since
    assert "next attempt at" in again.remedies[0]
    other = replace(earlier, event="rows.refused")
    assert restart_fault(other, AWAY, 30.0).since >= first.since


async def test_what_a_restart_waits_for_is_told(waits: list[float]) -> None:
    told = []

    def looks(task: TaskSupervisor) -> Outcome:
        told.append(task.status().error)
        return Stop()

    await Scripted(ends(Retry(AWAY, ran=True)), looks).live()
    assert [fault and (fault.event, fault.message) for fault in told] == [
        ("task.restart", "the target is away")
    ]
    assert len(waits) == 1


def test_only_a_failure_of_spark_starts_spark_anew() -> None:
    assert Retry(TransientError("Spark failed"), ran=True).spark_lost
    assert not Retry(AWAY, ran=True).spark_lost


async def test_a_fault_while_the_task_stops_does_not_keep_it() -> None:
    assert await Scripted(asked("stop", FAULT)).live() == 1


def failed(scope: TaskParts) -> Failed:
    return Failed(
        FatalError(
            "rows.duplicate",
            "no",
            where="a",
            scope=scope,
        )
    )


OF_TARGET = failed(of_target(TableName("m", "x")))


async def test_a_fault_of_a_part_blocks_it_and_the_task_goes_on() -> None:
    seen: list[list[str]] = []

    def look(task: TaskSupervisor) -> Outcome:
        seen.append([part.name for part in task.status().blocked])
        return Stop()

    task = Scripted(ends(OF_TARGET), ends(failed(of_source("shard-a"))), look)
    assert await task.live() == 1, "a fault blocks something when it ends"
    assert seen == [["m.x", "shard-a"]]
    assert task.status().error is None


async def test_a_part_that_goes_on_is_no_reason_for_an_error_code() -> None:
    task = Scripted(ends(OF_TARGET), asked("resume", Pause()), ends(Stop()))
    assert await task.live() == 0
    assert task.status().blocked == ()


async def test_a_fault_of_a_part_that_is_blocked_already_pauses_the_task() -> None:
    task = Scripted(ends(OF_TARGET), ends(OF_TARGET))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(task.live)
        await until(task, "paused")
        error = task.status().error
        assert error is not None
        assert error.event == "rows.duplicate"
        task.request("stop")


async def test_a_task_pauses_when_all_of_its_sources_are_blocked_until_one_goes_on() -> None:
    task = Scripted(
        ends(failed(of_source("shard-a"))), ends(failed(of_source("shard-b"))), ends(Stop())
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(task.live)
        await until(task, "paused")
        assert [part.name for part in task.status().blocked] == ["shard-a", "shard-b"]
        task.request_parts("resume", {"sources": ["shard-b"]})
        await until(task, "stopped")
        assert [part.name for part in task.status().blocked] == ["shard-a"]


async def test_a_part_that_goes_on_does_not_end_a_pause_that_the_operator_wanted() -> None:
    task = Scripted(ends(OF_TARGET), asked("pause", Pause()), ends(Stop()))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(task.live)
        await until(task, "paused")
        task.request_parts("resume", {"targets": ["m.x"]})
        await anyio.lowlevel.checkpoint()
        assert (task.status().state, task.status().blocked) == ("paused", ())
        task.request("resume")
        await until(task, "stopped")


async def test_any_fault_ends_the_process_where_that_is_wanted() -> None:
    task = Scripted(ends(OF_TARGET), ends(Stop()), exit_on_error=True)
    assert await task.live() == 1
    assert len(task.steps) == 1


LOCKED = Failed(locked_fault([TableName("m", "x")], "waited", "target m.x"))


async def test_a_locked_target_is_set_aside_also_where_faults_end_the_process() -> None:
    seen: list[list[str]] = []

    def look(task: TaskSupervisor) -> Outcome:
        seen.append([part.name for part in task.status().blocked])
        return Stop()

    task = Scripted(ends(LOCKED), look, exit_on_error=True)
    assert await task.live() == 0, "nothing is to be mended when it ends"
    assert seen == [["m.x"]]


class OfTwoTargets(Scripted):
    """The task has two targets."""

    @property
    def _targets(self) -> frozenset[TableName]:
        return frozenset({TableName("m", "x"), TableName("m", "y")})


async def test_a_pause_for_want_of_targets_ends_when_a_locked_one_is_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(part_backoff, "PAUSES", (0.01, 0.01))
    task = OfTwoTargets(ends(LOCKED), ends(failed(of_target(TableName("m", "y")))), ends(Stop()))
    assert await task.live() == 1
    assert [part.name for part in task.status().blocked] == ["m.y"]


async def test_a_paused_task_is_tried_again_where_access_was_denied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(part_backoff, "PAUSES", (0.01, 0.01))
    denied = FatalError("server.refused", "no", where="target", recovery=Recovery.OPERATOR_OR_RETRY)
    task = Scripted(ends(Failed(denied)), ends(Failed(denied)), ends(Stop()))
    with anyio.fail_after(10):
        await task.live()
    assert not task.steps


async def test_a_task_without_access_that_the_operator_pauses_stays_paused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(part_backoff, "PAUSES", (0.2, 0.2))
    denied = FatalError("server.refused", "no", where="target", recovery=Recovery.OPERATOR_OR_RETRY)
    task = Scripted(ends(Failed(denied)), ends(Stop()))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(task.live)
        await until(task, "paused")
        task.request("pause")
        with anyio.move_on_after(1):
            await until(task, "stopped")
        assert task.status().state == "paused"
        task.request("resume")
        await until(task, "stopped")


async def test_a_target_that_is_due_does_not_end_a_pause_that_the_operator_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(part_backoff, "PAUSES", (0.01, 0.01))
    task = OfTwoTargets(ends(LOCKED), asked("pause", Pause()), ends(Stop()))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(task.live)
        await until(task, "paused")
        with anyio.fail_after(10):
            while task.status().blocked:
                await anyio.lowlevel.checkpoint()
        assert task.status().state == "paused"
        task.request("resume")
        await until(task, "stopped")
