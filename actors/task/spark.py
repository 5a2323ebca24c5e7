"""The Spark session of a task: started when it is first needed, and anew when it was lost."""

from __future__ import annotations

import anyio
import anyio.to_thread
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from actors.faults import FatalError, TransientError
from actors.task.opening import Opening
from config.models import Task
from replicator.pipeline.cluster import ClusterError
from replicator.pipeline.session import close_session, ready_session


class TaskSpark:
    """At most one session at a time. One that does not start is a fault of the settings the first
    time, and something that passes later."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._session: SparkSession | None = None
        self._had_session = False
        self._opening: Opening[SparkSession] | None = None

    async def session(self) -> SparkSession:
        """The session, started if there is none. Raises FatalError, TransientError."""
        session = await self.session_unless(anyio.Event())
        assert session is not None
        return session

    async def session_unless(self, wished: anyio.Event) -> SparkSession | None:
        """The session as `session` gives it, or None as soon as ``wished`` is set.

        Starting it goes on then, and is what the next call waits for.
        """
        if self._session is None:
            opening = self._opening = self._opening or Opening(self._open_ready)
            if not await opening.done_unless(wished):
                return None
            self._opening = None
            self._session = self._opened(opening)
            self._had_session = True
        return self._session

    async def close(self) -> None:
        """End the session, if there is one."""
        session, self._session = self._session, None
        if session is not None:
            await anyio.to_thread.run_sync(close_session, session)

    def _open_ready(self) -> SparkSession:
        spark = self._task.spark
        return ready_session(spark.master, spark.conf, self._task.name)

    def _opened(self, opening: Opening[SparkSession]) -> SparkSession:
        where = f"spark.master {self._task.spark.master}"
        try:
            return opening.result()
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
