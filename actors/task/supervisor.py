"""The supervisor: the life of a task, from `replicator run` to its exit code."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import anyio
import structlog
from pymysql.err import MySQLError
from pyspark.sql import SparkSession

from actors.backoff import Backoff
from actors.control.protocol import Reply, Request
from actors.control.server import ControlServer
from actors.counts import TaskCounts
from actors.faults import DdlEvent, FatalError, LostCommitsError, TransientError, UnreadRows
from actors.refusals import refusal
from actors.task import operator_commands, structure_commands
from actors.task.generation import Generation
from actors.task.lease_keeper import LeaseKeeper, lease_lost
from actors.task.leftovers import refuse_removed
from actors.task.outcome import Failed, Outcome, Pause, Retry, Stop, weightiest
from actors.task.prechecks import precheck
from actors.task.recurrence import Recurrence, rows_copied, saved_positions
from actors.task.spark import TaskSpark
from actors.task.status_report import RateMeter, task_status
from actors.task.wiring import RunningTask
from actors.task_setup import address_of
from config.models import Task
from replicator.downstream.fence import OutOfStepError
from replicator.downstream.holder import this_process
from replicator.downstream.lease import Lease, LeaseLostError
from replicator.downstream.meta_tables import create_tables, drop_tables
from replicator.mysql.connection import Connection, DatabaseUnavailableError
from replicator.status import Fault, TaskState, TaskStatus, now

RESTART_WAIT = (0.5, 30.0)
"""Seconds before the first and, at most, before any later restart after a transient failure."""

RELEASE_SECONDS = 5.0
"""Seconds that giving the lease back may take at the end of the process."""

RATE_INTERVAL = 1.0
"""Seconds between two looks at the counters that rates are made from."""


@dataclass(frozen=True, slots=True)
class Phase:
    """Where a task is in its life, since when, and what keeps it there.

    ``ddl_event`` is the statement that ``fault`` is about, if it is about one; ``unread`` the
    rows, if another structure may help them.
    """

    state: TaskState
    since: datetime
    fault: Fault | None = None
    ddl_event: DdlEvent | None = None
    unread: UnreadRows | None = None


class TaskSupervisor:
    """Starts generations of the task's actors, restarts and pauses them, obeys the operator.

    A transient failure (a server away, Spark failing) starts a new generation from the saved
    state, with growing pauses. A fatal one pauses the task with its error until the operator
    resumes or stops it; with ``exit_on_error`` it ends the process instead.
    """

    def __init__(self, task: Task, *, exit_on_error: bool = False) -> None:
        self._task = task
        self._exit_on_error = exit_on_error
        self._phase = Phase("starting", now())
        self._wish = "run"
        self._wished = anyio.Event()
        self._generation: Generation | None = None
        self._counts = TaskCounts()
        self._rates = RateMeter(self._counts)
        self._spark = TaskSpark(task)
        self._recurrence = Recurrence()
        self._lease = Lease(task.meta_schema, task.name, this_process())
        self._keeper = LeaseKeeper(
            address_of(task.target_database), task.meta_schema, task.name, self._lease
        )
        self._lease_lost = anyio.Event()
        self._prepared = False
        self._still = anyio.Lock()
        self._log = structlog.get_logger().bind(task=task.name)

    def status(self) -> TaskStatus:
        """What the task is doing now."""
        return task_status(
            self._task.name,
            self._phase.state,
            self._phase.since,
            os.getpid(),
            self._phase.fault,
            self._generation,
            self._counts,
            self._rates,
        )

    def request(self, command: str) -> None:
        """Pause, resume or stop the task; returns at once. ValueError for anything else."""
        if command not in ("pause", "resume", "stop"):
            raise ValueError(f"no such command: {command}")
        wish = "run" if command == "resume" else command
        if self._wish == "stop" or (wish == "run" and self._phase.state == "running"):
            return
        if wish == "run":
            self._phase = replace(self._phase, fault=None, ddl_event=None, unread=None)
        self._wish = wish
        self._wished.set()

    async def run(self) -> int:
        """Live until stopped; the exit code: 0 when stopped in order, 1 after a fatal error.

        Raises actors.control.server.AlreadyRunningError or
        replicator.downstream.lease.LeaseHeldError when another process runs the task, and
        actors.task.prechecks.PrecheckError.
        """
        async with anyio.create_task_group() as tasks:
            await tasks.start(ControlServer(self._task.name, self._answer).run)
            tasks.start_soon(self._obey_signals)
            tasks.start_soon(self._measure)
            tasks.start_soon(self._keep_lease)
            try:
                code = await self._live()
            finally:
                with anyio.move_on_after(RELEASE_SECONDS, shield=True):
                    await self._keeper.release()
                tasks.cancel_scope.cancel()
        return code

    async def _live(self) -> int:
        backoff, code = Backoff(RESTART_WAIT), 0
        while await self._wanted():
            match await self._run_once():
                case Stop():
                    code = 0
                    break
                case Pause():
                    code = 0
                case Failed(error):
                    code = 1
                    self._fail(error)
                    if self._exit_on_error or error.final:
                        break
                case Retry(error, ran) as retry:
                    if ran:
                        code = 0
                        backoff.reset()
                    self._tell_of_restart(error, backoff.next)
                    if retry.spark_lost:
                        await self._spark.close()
                    await backoff.wait(self._wished)
        self._enter("stopped")
        await self._spark.close()
        return code

    async def _wanted(self) -> bool:
        """Whether the task is to run; waits for as long as it is to pause."""
        while self._wish == "pause":
            self._wished = anyio.Event()
            self._enter("paused")
            await self._wished.wait()
            # What is being saved for the next start is there by then.
            async with self._still:
                pass
        return self._wish == "run"

    async def _run_once(self) -> Outcome:
        """One generation, with what must be there before it."""
        self._wished = anyio.Event()
        self._enter("starting")
        started = anyio.Event()
        try:
            if self._keeper.lost is not None:
                raise self._keeper.lost
            if not await self._prepare():
                return Stop() if self._wish == "stop" else Pause()
            session = await self._spark.session()
            finished = await self._run_generation(session, started)
        except FatalError as error:
            return Failed(error)
        except LeaseLostError as error:
            return Failed(lease_lost(error))
        except LostCommitsError as error:
            lost = error.mismatch
            self._log.warning(
                "target.lost-commits",
                target=lost.target,
                bucket=lost.bucket,
                what=lost.what,
                expected=lost.expected,
                found=lost.found,
            )
            return Retry(error, ran=started.is_set())
        except (TransientError, DatabaseUnavailableError) as error:
            saved, copied = saved_positions(self._generation), rows_copied(self._generation)
            fault = self._recurrence.fault(error, saved, copied)
            return Failed(fault) if fault else Retry(error, ran=started.is_set())
        return Stop() if finished or self._wish == "stop" else Pause()

    async def _prepare(self) -> bool:
        """Once per process: check everything, take the lease, and then forget the former state
        where that is asked. False where the operator wants something else before that is done."""
        if self._prepared:
            await self._with_target(lambda target: refuse_removed(target, self._task))
            return True
        await precheck(self._task)
        forgetting = self._task.remove_meta
        if not await self._keeper.take(self._wished, forgetting=forgetting):
            return False
        if forgetting:
            await self._with_target(self._remove_meta)
        self._prepared = True
        return True

    async def _with_target(self, work: Callable[[Connection], Awaitable[None]]) -> None:
        """Raises FatalError where the target refuses it."""
        connection = Connection(address_of(self._task.target_database))
        try:
            await work(connection)
        except MySQLError as error:
            raise refusal(connection.address, error, source=None) from error
        finally:
            connection.close()

    async def _run_generation(self, session: SparkSession, started: anyio.Event) -> bool:
        """Whether all is done. Of several errors of its actors the weightiest is raised."""
        generation = self._generation = Generation(self._task, session, self._counts, self._lease)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._announce, started)
                tasks.start_soon(self._end_without_lease)
                await generation.run(self._wished, started)
                tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            raise weightiest(group, address_of(self._task.target_database)) from group
        return generation.finished

    async def _announce(self, started: anyio.Event) -> None:
        await started.wait()
        self._phase = replace(self._phase, fault=None, ddl_event=None, unread=None)
        self._enter("running")
        await self._wished.wait()
        self._enter("stopping" if self._wish == "stop" else "pausing")

    async def _keep_lease(self) -> None:
        """Renew the lease. A run ends when it is lost; a pause, so that a run tells of it."""
        await self._keeper.keep()
        self._lease_lost.set()
        if self._wish == "pause":
            self._wish = "run"
            self._wished.set()

    async def _end_without_lease(self) -> None:
        await self._lease_lost.wait()
        assert self._keeper.lost is not None
        raise self._keeper.lost

    async def _remove_meta(self, target: Connection) -> None:
        place = (self._task.meta_schema, self._task.name)
        await drop_tables(target, *place)
        await create_tables(target, *place)
        self._log.info("meta.removed")

    async def _obey_signals(self) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for number in signals:
                self._log.info("task.signal", signal=signal.Signals(number).name)
                self.request("stop")

    async def _measure(self) -> None:
        while True:
            self._rates.look()
            await anyio.sleep(RATE_INTERVAL)

    async def _answer(self, request: Request) -> Reply:
        if request.command == "status":
            return Reply(ok=True, body=self.status().to_dict())
        if request.command == "unlock-ddl-lock":
            running = self._running if self._phase.state == "running" else None
            return await operator_commands.unlock(
                running.coordination if running else None, request.arguments
            )
        if request.command == "binlog":
            return await self._binlog(request.arguments)
        if request.command == "schema":
            return await self._schema(request.arguments)
        try:
            self.request(request.command)
        except ValueError as error:
            return Reply(ok=False, error=str(error))
        return Reply(ok=True)

    async def _binlog(self, arguments: Mapping[str, Any]) -> Reply:
        try:
            if arguments.get("action") == "list":
                return await operator_commands.list_overrides(self._task, self._lease)
            return await operator_commands.give_override(
                self._task,
                self._lease,
                self._phase.ddl_event,
                lambda: self._running.overrides if self._running else None,
                arguments,
            )
        except (OutOfStepError, LeaseLostError) as error:
            return Reply(ok=False, error=f"nothing was saved: {error}")
        except (DatabaseUnavailableError, MySQLError) as error:
            return Reply(ok=False, error=f"the target can't be written to: {error}")

    async def _schema(self, arguments: Mapping[str, Any]) -> Reply:
        registry = self._running.registry if self._running else None
        unread = self._phase.unread
        try:
            if arguments.get("action") == "list":
                return await structure_commands.list_structures(
                    self._task, self._lease, registry, unread, arguments
                )
            async with self._still:
                if self._phase.state != "paused":
                    error = f"the task is {self._phase.state}: pause it first"
                    return Reply(ok=False, error=error)
                return await structure_commands.tell_structure(
                    self._task, self._lease, registry, unread, arguments
                )
        except (OutOfStepError, LeaseLostError) as error:
            return Reply(ok=False, error=f"nothing was saved: {error}")
        except (DatabaseUnavailableError, MySQLError) as error:
            return Reply(ok=False, error=f"a server that is needed for it can't be used: {error}")

    @property
    def _running(self) -> RunningTask | None:
        """What follows the sources, or did until the task paused."""
        return self._generation.running if self._generation else None

    def _tell_of_restart(self, error: Exception, wait: float) -> None:
        self._log.warning("task.restart", reason=str(error), seconds=wait)
        ways_out = ("mend or wait: the task goes on by itself as soon as it can",)
        fault = Fault("task.restart", str(error), "", ways_out, now())
        self._phase = replace(self._phase, fault=fault)

    def _fail(self, error: FatalError) -> None:
        """Tell of a fault; what is wanted from now on is a pause, if not the end."""
        event = error.ddl_event
        unread = error.unread
        answers = operator_commands.ways_of(self._task.name, event) if event else ()
        if unread is not None:
            answers = structure_commands.ways_of(self._task.name, unread)
        ways_out = (*answers, *error.ways_out)
        fault = Fault(error.event, error.message, error.where, ways_out, now())
        self._phase = replace(self._phase, fault=fault, ddl_event=event, unread=unread)
        self._log.error(error.event, error=error.message, where=error.where, ways_out=ways_out)
        if self._wish == "run":
            self._wish = "pause"

    def _enter(self, state: TaskState) -> None:
        self._phase = replace(self._phase, state=state, since=now())
        self._log.info(f"task.{state}")
