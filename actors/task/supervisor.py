"""The supervisor: the life of a task, from `replicator run` to its exit code."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from typing import Any

import anyio
import anyio.to_thread
import structlog
from py4j.protocol import Py4JError
from pymysql.err import MySQLError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from actors.backoff import Backoff
from actors.control.protocol import Reply, Request
from actors.control.server import ControlServer
from actors.counts import TaskCounts
from actors.faults import DdlEvent, FatalError, TransientError
from actors.refusals import refusal
from actors.task import operator_commands
from actors.task.generation import Generation
from actors.task.prechecks import precheck
from actors.task.status_report import RateMeter, task_status
from actors.task.wiring import RunningTask
from actors.task_setup import address_of, executor_files
from config.models import Task
from replicator.downstream.meta_tables import drop_tables
from replicator.mysql.connection import Connection, DatabaseAddress, DatabaseUnavailableError
from replicator.pipeline.cluster import ClusterError
from replicator.pipeline.session import close_session, ready_session
from replicator.status import Fault, TaskState, TaskStatus, now

RESTART_WAIT = (0.5, 30.0)
"""Seconds before the first and, at most, before any later restart after a transient failure."""

RATE_INTERVAL = 1.0
"""Seconds between two looks at the counters that rates are made from."""


class TaskSupervisor:
    """Starts generations of the task's actors, restarts and pauses them, obeys the operator.

    A transient failure (a server away, Spark failing) starts a new generation from the saved
    state, with growing pauses. A fatal one pauses the task with its error until the operator
    resumes or stops it; with ``exit_on_error`` it ends the process instead.
    """

    def __init__(self, task: Task, *, exit_on_error: bool = False) -> None:
        self._task = task
        self._exit_on_error = exit_on_error
        self._state: TaskState = "starting"
        self._since = now()
        self._fault: Fault | None = None
        self._ddl_event: DdlEvent | None = None
        self._wish = "run"
        self._wished = anyio.Event()
        self._generation: Generation | None = None
        self._counts = TaskCounts()
        self._rates = RateMeter(self._counts)
        self._prepared = False
        self._had_session = False
        self._ran = False
        self._failed = False
        self._log = structlog.get_logger().bind(task=task.name)

    def status(self) -> TaskStatus:
        """What the task is doing now."""
        return task_status(
            self._task.name,
            self._state,
            self._since,
            os.getpid(),
            self._fault,
            self._generation,
            self._counts,
            self._rates,
        )

    def request(self, command: str) -> None:
        """Pause, resume or stop the task; returns at once. ValueError for anything else."""
        if command not in ("pause", "resume", "stop"):
            raise ValueError(f"no such command: {command}")
        wish = "run" if command == "resume" else command
        if self._wish == "stop" or (wish == "run" and self._state == "running"):
            return
        if wish == "run":
            self._fault = None
            self._ddl_event = None
        self._wish = wish
        self._wished.set()

    async def run(self) -> int:
        """Live until stopped; the exit code: 0 when stopped in order, 1 after a fatal error.

        Raises actors.control.server.AlreadyRunningError when another process runs the task, and
        actors.task.prechecks.PrecheckError.
        """
        async with anyio.create_task_group() as tasks:
            await tasks.start(ControlServer(self._task.name, self._answer).run)
            tasks.start_soon(self._obey_signals)
            tasks.start_soon(self._measure)
            try:
                code = await self._live()
            finally:
                tasks.cancel_scope.cancel()
        return code

    async def _live(self) -> int:
        session: SparkSession | None = None
        backoff = Backoff(RESTART_WAIT)
        while self._wish != "stop":
            self._wished = anyio.Event()
            if self._wish == "pause":
                await self._pause()
                continue
            self._set_state("starting")
            self._ran = False
            try:
                await self._prepare()
                if session is None:
                    session = await self._open_session()
                await self._run_generation(session)
                continue
            except FatalError as error:
                self._fail(error)
                if self._exit_on_error:
                    break
                self._wish = "pause" if self._wish == "run" else self._wish
                continue
            except (TransientError, DatabaseUnavailableError) as error:
                if self._ran:
                    backoff.reset()
                self._tell_of_restart(error, backoff.next)
                if isinstance(error, TransientError):
                    await self._close_session(session)
                    session = None
            await backoff.wait(self._wished)
        self._set_state("stopped")
        await self._close_session(session)
        return 1 if self._failed else 0

    async def _prepare(self) -> None:
        """Once per process: check everything, then forget the former state where that is asked."""
        if not self._prepared:
            await precheck(self._task)
            if self._task.remove_meta:
                await self._remove_meta()
            self._prepared = True

    async def _run_generation(self, session: SparkSession) -> None:
        """One generation; of the errors of its actors the one that says most is raised."""
        generation = self._generation = Generation(self._task, session, self._counts)
        running = anyio.Event()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._announce, running)
                await generation.run(self._wished, running)
                if generation.finished:
                    self._wish = "stop"
                tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            address = address_of(self._task.target_database)
            raise _weightiest(group, address) from group

    async def _announce(self, running: anyio.Event) -> None:
        await running.wait()
        self._ran = True
        self._failed = False
        self._fault = None
        self._set_state("running")
        await self._wished.wait()
        self._set_state("stopping" if self._wish == "stop" else "pausing")

    async def _pause(self) -> None:
        self._set_state("paused")
        await self._wished.wait()

    async def _open_session(self) -> SparkSession:
        spark = self._task.spark
        files = executor_files(self._task)

        def open_ready() -> SparkSession:
            return ready_session(spark.master, spark.conf, self._task.name, files)

        where = f"spark.master {spark.master}"
        try:
            session = await anyio.to_thread.run_sync(open_ready)
        except ClusterError as error:
            if self._had_session and not error.lasting:
                raise TransientError(str(error)) from error
            raise FatalError(
                "spark.executors", str(error), where=where, ways_out=error.ways_out
            ) from error
        except (PySparkException, Py4JError, OSError) as error:
            if self._had_session:
                raise TransientError(f"Spark does not start again: {error}") from error
            raise FatalError(
                "spark.not-started",
                f"Spark does not start: {error}",
                where=where,
                ways_out=(
                    "correct spark.master and spark.conf in the task file, and start the task anew",
                    "if the machine lacked memory, `replicator resume` tries again",
                ),
            ) from error
        self._had_session = True
        return session

    async def _close_session(self, session: SparkSession | None) -> None:
        if session is not None:
            await anyio.to_thread.run_sync(close_session, session)

    async def _remove_meta(self) -> None:
        connection = Connection(address_of(self._task.target_database))
        await drop_tables(connection, self._task.meta_schema, self._task.name)
        connection.close()
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
            running = self._running if self._state == "running" else None
            return await operator_commands.unlock(
                running.coordination if running else None, request.arguments
            )
        if request.command == "binlog":
            return await self._binlog(request.arguments)
        try:
            self.request(request.command)
        except ValueError as error:
            return Reply(ok=False, error=str(error))
        return Reply(ok=True)

    async def _binlog(self, arguments: Mapping[str, Any]) -> Reply:
        try:
            if arguments.get("action") == "list":
                return await operator_commands.list_overrides(self._task)
            return await operator_commands.give_override(
                self._task,
                self._ddl_event,
                lambda: self._running.overrides if self._running else None,
                arguments,
            )
        except (DatabaseUnavailableError, MySQLError) as error:
            return Reply(ok=False, error=f"the target can't be written to: {error}")

    @property
    def _running(self) -> RunningTask | None:
        """What follows the sources, or did until the task paused."""
        return self._generation.running if self._generation else None

    def _tell_of_restart(self, error: Exception, wait: float) -> None:
        self._log.warning("task.restart", reason=str(error), seconds=wait)
        ways_out = ("mend or wait: the task goes on by itself as soon as it can",)
        self._fault = Fault("task.restart", str(error), "", ways_out, now())

    def _fail(self, error: FatalError) -> None:
        self._failed = True
        self._ddl_event = error.ddl_event
        overrides = (
            operator_commands.ways_of(self._task.name, error.ddl_event) if error.ddl_event else ()
        )
        ways_out = (*overrides, *error.ways_out)
        self._fault = Fault(error.event, error.message, error.where, ways_out, now())
        self._log.error(error.event, error=error.message, where=error.where, ways_out=ways_out)

    def _set_state(self, state: TaskState) -> None:
        self._state = state
        self._since = now()
        self._log.info(f"task.{state}")


def _weightiest(group: BaseExceptionGroup[BaseException], target: DatabaseAddress) -> BaseException:
    """The error to act on: a fatal one before a transient one, anything unexpected first.

    What a server says itself is the target's: the readers and the start tell of the sources.
    """
    errors = [
        refusal("target", target, error) if isinstance(error, MySQLError) else error
        for error in _leaves(group)
    ]
    for error in errors:
        if not isinstance(error, FatalError | TransientError | DatabaseUnavailableError):
            return error
    return next((e for e in errors if isinstance(e, FatalError)), errors[0])


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
