"""Submitting Spark jobs from an actor: in a thread, a few times where Spark fails, never stuck."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

import anyio
import anyio.to_thread
from attrs import define, field
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException, PythonException

from actors.backoff import Backoff, times
from actors.faults import ExecutorError, SparkFailedError
from replicator.pipeline.spark.cluster import executor_count, is_local
from replicator.status import now

RETRY_WAIT = (0.2, 15.0)
"""Seconds before the first and, at most, before any later attempt."""

SPARK_ATTEMPTS = 3
"""How often a job that Spark itself failed is submitted before a new session is made."""

EXECUTOR_LOOK = 2.0
"""Seconds between two checks whether a cluster still has executors for a running job."""

NO_EXECUTORS = "the Spark cluster has no executor left for the task, and gives none"

_NO_MEMORY = re.compile(r"[\w.]*MemoryError\b")
"""What Python, NumPy and Arrow raise, each under a name of its own."""

SPARK_FAILED = (PySparkException, Py4JJavaError)
"""The errors of a job that Spark failed."""

Result = TypeVar("Result")


class JobAttempts(Backoff):
    """The attempts at one piece of work: the waits between them, and how often Spark failed."""

    def __init__(self) -> None:
        super().__init__(RETRY_WAIT)
        self.spark_failures = 0
        self._since: datetime | None = None

    def times(self, waited: int = 0) -> str:
        """When the first failure was, and when the next attempt is; ask for it before each wait.
        ``waited``: the seconds between the first error of the failed attempt and its end.
        """
        self._since = self._since or now() - timedelta(seconds=waited)
        return times(self._since, self.next)

    def spark_failed(self, error: Exception) -> None:
        """Count a failure of Spark itself, or of what ran in it.

        Raises SparkFailedError when there were too many, ExecutorError where it was Python's.
        """
        self.spark_failures += 1
        if self.spark_failures < SPARK_ATTEMPTS:
            return
        # The error stands after the traceback, which the log has.
        of_python = isinstance(error, PythonException)
        text = str(error).strip().splitlines()[-1] if of_python else without_stack(error)
        message = f"Spark failed {self.spark_failures} times: {text}"
        if of_python and not _NO_MEMORY.match(text):
            raise ExecutorError(message, text) from error
        raise SparkFailedError(message) from error


def without_stack(error: Exception) -> str:
    """The words of an error of Spark, without where in Java it was raised."""
    return str(error).partition("\n\tat ")[0].replace("\n: ", ": ").strip()


async def submit(
    spark: SparkContext,
    job: Callable[[], Result],
    *,
    starving: Callable[[bool], None],
    stop: anyio.Event | None = None,
) -> Result:
    """Run a job that blocks until Spark has done it, and return its result. ``starving`` is called
    when a cluster has no executor for it any more, and when it has one again. Meanwhile ``stop`` or
    a cancellation ends the job; at other times both wait for its end. Raises one of SPARK_FAILED
    when Spark failed, SparkFailedError when its JVM is gone.
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
    """The errors of a job whose connection to the JVM broke."""
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
        watch.ended = True
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return result


@define(eq=False)
class _ExecutorWatch:
    """Watches whether a job has executors; ends it when it has none and nothing waits for it."""

    _context: SparkContext
    _starving: Callable[[bool], None]
    _stop: anyio.Event | None
    ended: bool = field(default=False, init=False)
    """Whether the job has come to its end."""
    _starves: bool = field(default=False, init=False)

    async def run(self) -> None:
        """Look until the job has ended, or has been ended."""
        try:
            while not (self._starves and self._stop is not None and self._stop.is_set()):
                await self._until_next_look()
                count = await anyio.to_thread.run_sync(executor_count, self._context)
                if self._starves != (count == 0):
                    self._starves = count == 0
                    self._starving(self._starves)
        except Py4JError:
            # The JVM is gone, or the application was ended: the job itself reports that.
            self.ended = True
        finally:
            if self._starves:
                if not self.ended:
                    # The thread that waits for the job can't be cancelled; without its job it ends.
                    self._context.cancelAllJobs()
                self._starving(False)

    async def _until_next_look(self) -> None:
        with anyio.move_on_after(EXECUTOR_LOOK):
            if self._stop is None or self._stop.is_set():
                await anyio.sleep_forever()
            else:
                await self._stop.wait()
