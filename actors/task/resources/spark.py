"""A task's Spark: started when it is first needed, and restarted when it is lost.

Spark starts slowly, so it is opened in a thread for which an ending process does not wait.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Generic, TypeVar

import anyio
import anyio.to_thread
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from actors.errors.faults import SparkFailedError, TransientError, fault
from actors.jobs.spark_jobs import without_stack
from actors.task.resources.cancellation import done_unless
from config.models import Task
from replicator.pipeline.session import begin_tasks, close_spark, ready, spark_context
from replicator.pipeline.spark.cluster import ClusterError, is_local
from replicator.pipeline.spark.direct_launch import StartedJava

T = TypeVar("T")


class Opening(Generic[T]):
    """Calls ``work`` in its own thread, for which an ending process does not wait."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._future: Future[T] = Future()
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def done(self) -> bool:
        """Whether the work is done, or has failed."""
        return self._future.done()

    async def done_unless(self, wished: anyio.Event) -> bool:
        """Wait until the work is done, or ``wished`` is set; return whether it is done."""
        return await done_unless(wished, self._wait) or self.done

    def result(self) -> T:
        """Return the result; blocks until the work is done. Raises the work's error."""
        return self._future.result()

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        done = anyio.Event()

        def tell(_: Future[T]) -> None:
            # The event loop may have ended meanwhile.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(done.set)

        self._future.add_done_callback(tell)
        await done.wait()

    def _run(self) -> None:
        try:
            self._future.set_result(self._work())
        except BaseException as error:  # noqa: BLE001  (raised again by `result`)
            self._future.set_exception(error)


SWITCH_SECONDS = 0.0005
"""Seconds for which a computing thread may keep other threads waiting while Spark starts."""

_SPARK_FAILED = (PySparkException, Py4JError, OSError)
"""The errors of a failed start of Spark."""


class TaskSpark:
    """Has at most one application at a time.

    The first failed start is a fault of the settings; later failures are temporary.
    """

    def __init__(self, task: Task, java: StartedJava | None = None) -> None:
        """``java`` is a JVM started for a Spark of this host."""
        self._task = task
        self._java = java
        self._context: SparkContext | None = None
        self._had_context = False
        self._begun: Opening[SparkContext] | None = None
        self._opening: Opening[SparkContext] | None = None

    def begin(self) -> None:
        """Start a Spark of this host in a thread, without waiting for it.

        The Spark of a cluster starts on request, after its master was found.
        """
        if is_local(self._task.spark.master):
            self._begun = Opening(self._open_busy)

    async def warm_up(self, wished: anyio.Event) -> bool:
        """Wait until a Spark of this host has started, or ``wished`` is set.

        Return whether it has started.

        An application on a cluster is not started, because it would keep unused executors. Raises
        the same errors as `context`.
        """
        if not is_local(self._task.spark.master):
            return True
        return await self.context_unless(wished) is not None

    async def context(self) -> SparkContext:
        """Return the application; start it if there is none. Raises FatalError, TransientError."""
        context = await self.context_unless(anyio.Event())
        assert context is not None
        return context

    async def context_unless(self, wished: anyio.Event) -> SparkContext | None:
        """Return the application as `context` does, or None as soon as ``wished`` is set.

        The start then continues, and the next call waits for it.
        """
        if self._context is None:
            opening = self._opening = self._opening or Opening(self._open_ready)
            if not await opening.done_unless(wished):
                return None
            self._opening = None
            self._context = self._opened(opening)
            self._had_context = True
        return self._context

    async def close(self) -> None:
        """End Spark if it runs; a Spark that is just starting ends with the process."""
        context, self._context = self._context, None
        for opening in (self._begun, self._opening):
            if context is None and opening is not None and opening.done:
                with suppress(ClusterError, *_SPARK_FAILED):
                    context = opening.result()
        self._begun = self._opening = None
        if context is not None:
            await anyio.to_thread.run_sync(close_spark, context)

    def _open(self) -> SparkContext:
        spark = self._task.spark
        java, self._java = self._java, None
        return spark_context(spark.master, spark.conf, self._task.name, java)

    def _open_busy(self) -> SparkContext:
        # The start of Spark sends hundreds of requests to Java. At each of them, other threads,
        # which load
        # modules meanwhile, keep the interpreter's lock for this time.
        usual = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_SECONDS)
        try:
            context = self._open()
            begin_tasks(context)
        finally:
            sys.setswitchinterval(usual)
        return context

    def _open_ready(self) -> SparkContext:
        begun, self._begun = self._begun, None
        return ready(begun.result() if begun else self._open())

    def _opened(self, opening: Opening[SparkContext]) -> SparkContext:
        master = self._task.spark.master
        try:
            return opening.result()
        except ClusterError as error:
            if self._had_context and not error.lasting:
                raise TransientError(str(error)) from error
            raise fault(
                "spark.executors", error=error, remedies=error.remedies, master=master
            ) from error
        except _SPARK_FAILED as error:
            if self._had_context:
                raise SparkFailedError(
                    f"Spark does not start again: {without_stack(error)}"
                ) from error
            raise fault("spark.not-started", error=without_stack(error), master=master) from error
