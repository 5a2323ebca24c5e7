"""Submits Spark jobs from an actor: in a thread, several times if Spark fails, never stuck."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypeVar
from weakref import WeakKeyDictionary

import anyio
import anyio.to_thread
import structlog
from attrs import define, field
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException, PythonException

from actors.errors.faults import ApplicationLostError, ExecutorError, SparkFailedError
from actors.jobs.backoff import Backoff, times
from replicator.pipeline.spark.cluster import is_local
from replicator.pipeline.spark.cluster_state import (
    LostExecutor,
    MasterAnswer,
    ask_master,
    executor_count,
    lost_executors,
)
from replicator.status import now

RETRY_WAIT = (0.2, 15.0)
"""Seconds before the second attempt, and the maximum before any later attempt."""

SPARK_ATTEMPTS = 3
"""Number of times that a job that Spark itself failed is submitted before a new session is made."""

EXECUTOR_LOOK = 2.0
"""Seconds between two checks whether a cluster still has executors for a running job."""

NO_EXECUTORS = (
    "the Spark cluster has no executor for the task, and gives none. The page of its manager shows"
    " whether workers are alive and have free cores and memory. The task goes on as soon as there"
    " is an executor"
)
"""The reason why a job waits if the cluster's manager has the application."""

NO_MASTER = (
    "the Spark cluster has no executor for the task, and no master answers. Start the master; the"
    " task then goes on"
)
"""The reason why a job waits if the master is down."""

_NO_MEMORY = re.compile(r"[\w.]*MemoryError\b")
"""The errors of Python, NumPy and Arrow for missing memory, each with its own name."""

SPARK_FAILED = (PySparkException, Py4JJavaError)
"""The errors of a job that Spark failed."""

Result = TypeVar("Result")


class JobAttempts(Backoff):
    """The attempts at one piece of work.

    The waits between them, and the number of Spark's failures.
    """

    def __init__(self) -> None:
        super().__init__(RETRY_WAIT)
        self.spark_failures = 0
        self._since: datetime | None = None

    def times(self, waited: int = 0) -> str:
        """Return when the first failure was, and when the next attempt is.

        Call it before each wait.

        ``waited``: the seconds between the first error of the failed attempt and its end.
        """
        self._since = self._since or now() - timedelta(seconds=waited)
        return times(self._since, self.next)

    def spark_failed(self, error: Exception) -> None:
        """Count a failure of Spark itself, or of code that ran in it.

        Raises SparkFailedError after too many failures, ExecutorError if the failure was Python's.
        """
        self.spark_failures += 1
        if self.spark_failures < SPARK_ATTEMPTS:
            return
        # The error follows after the traceback, which the log has.
        of_python = isinstance(error, PythonException)
        text = str(error).strip().splitlines()[-1] if of_python else without_stack(error)
        message = f"Spark failed {self.spark_failures} times: {text}"
        if of_python and not _NO_MEMORY.match(text):
            raise ExecutorError(message, text) from error
        raise SparkFailedError(message) from error


def without_stack(error: Exception) -> str:
    """Return the message of a Spark error, without its Java stack trace."""
    return str(error).partition("\n\tat ")[0].replace("\n: ", ": ").strip()


async def submit(
    spark: SparkContext,
    job: Callable[[], Result],
    *,
    starving: Callable[[str], None],
    stop: anyio.Event | None = None,
) -> Result:
    """Run a job that blocks until Spark has completed it, and return its result.

    A cancellation waits for the end of the job, and ends the job if a cluster has no executor for
    it.

    Args:
        starving: called with the reason when a cluster has no executor for the job any more, and
            with an empty text when it has one again.
        stop: an event that ends the job when there is no executor.

    Raises one of SPARK_FAILED if Spark failed, SparkFailedError if its JVM is gone,
    ApplicationLostError if the cluster's master does not have the application any more.
    """
    try:
        if is_local(spark.master or ""):
            return await anyio.to_thread.run_sync(job)
        watch = _ExecutorWatch(spark, starving, stop)
        return await _watched(job, watch)
    except SPARK_FAILED:
        raise
    except _jvm_gone() as error:
        # The job did not fail: the connection to the JVM broke before its answer.
        raise SparkFailedError(f"Spark's JVM is gone: {error!r}") from error


def _jvm_gone() -> tuple[type[Exception], ...]:
    """Return the errors of a job whose connection to the JVM broke."""
    # Imported here: a start needs nothing else of Arrow, whose import takes a tenth of a second.
    import pyarrow

    return Py4JError, EOFError, OSError, pyarrow.ArrowException


async def _watched(job: Callable[[], Result], watch: _ExecutorWatch) -> Result:
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch.run)
        try:
            result = await anyio.to_thread.run_sync(job)
        except (*SPARK_FAILED, *_jvm_gone()) as error:
            failure = error
        watch.ended.set()
        tasks.cancel_scope.cancel()
    if watch.lost is not None:
        raise watch.lost from failure
    if failure is not None:
        raise failure
    return result


@define(eq=False)
class _ExecutorWatch:
    """Watches the executors of a job, and ends a job without executors that nobody waits for.

    Attributes:
        ended: an event that is set when the job has ended.
        lost: why the application gets no executors any more; None unless the watch ended the job
            for this reason.
    """

    _context: SparkContext
    _starving: Callable[[str], None]
    _stop: anyio.Event | None
    ended: anyio.Event = field(factory=anyio.Event, init=False)
    lost: ApplicationLostError | None = field(default=None, init=False)
    _why: str = field(default="", init=False)

    async def run(self) -> None:
        """Check repeatedly until the job has ended, or must end."""
        try:
            while not (self._why and self._stop is not None and self._stop.is_set()):
                await self._until_next_look()
                await self._look()
                if self.lost is not None:
                    break
        except Py4JError:
            # The JVM is gone, or the application was ended: the job itself reports that.
            return
        finally:
            with anyio.CancelScope(shield=True):
                await self._end()
            if self._why:
                self._starving("")

    async def _look(self) -> None:
        count = await anyio.to_thread.run_sync(_count_and_log, self._context)
        why = "" if count else await self._explain()
        if why != self._why and self.lost is None:
            self._why = why
            self._starving(why)

    async def _explain(self) -> str:
        """Return why there is no executor; record if the application is lost."""
        # A master that accepts no connection can take minutes, so nobody waits for this thread.
        answer = await anyio.to_thread.run_sync(ask_master, self._context, abandon_on_cancel=True)
        if answer is MasterAnswer.UNKNOWN:
            self.lost = ApplicationLostError(
                f"the Spark master {self._context.master} does not know the task's application"
                f" {self._context.applicationId} any more: it was restarted, or its connection"
                " broke. A running task starts Spark again; start any other command again"
            )
        return NO_MASTER if answer is MasterAnswer.SILENT else NO_EXECUTORS

    async def _end(self) -> None:
        """Wait for the end of the job, and end the job if it has no executor.

        This is needed because the thread of the job waits for Spark, and can't be cancelled.
        """
        with suppress(Py4JError):
            while not self.ended.is_set():
                count = await anyio.to_thread.run_sync(executor_count, self._context)
                if self.lost is not None or not count:
                    self._context.cancelAllJobs()
                with anyio.move_on_after(EXECUTOR_LOOK):
                    await self.ended.wait()

    async def _until_next_look(self) -> None:
        with anyio.move_on_after(EXECUTOR_LOOK):
            if self._stop is None or self._stop.is_set():
                await anyio.sleep_forever()
            else:
                await self._stop.wait()


_logged: WeakKeyDictionary[SparkContext, frozenset[LostExecutor]] = WeakKeyDictionary()
"""The lost executors that were logged, by application."""


def _count_and_log(context: SparkContext) -> int:
    """Return the number of executors, and log those that were lost since the last call."""
    count, lost = executor_count(context), frozenset(lost_executors(context))
    new = lost - _logged.get(context, frozenset())
    _logged[context] = lost
    for executor in sorted(new, key=lambda executor: executor.executor):
        structlog.get_logger().warning(
            "spark.executor-lost",
            executor=executor.executor,
            host=executor.host,
            reason=executor.reason,
            left=count,
        )
    return count
