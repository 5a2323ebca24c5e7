"""Running a batch's Spark job until it is done, in a thread."""

from __future__ import annotations

import anyio
import anyio.to_thread
import pyarrow as pa
import structlog
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from actors.backoff import Backoff
from actors.faults import FatalError, TransientError
from replicator.mysql.errors import MISSING_PRIVILEGE
from replicator.pipeline.apply import apply_batch
from replicator.pipeline.batch import ApplySettings, Batch, BatchResult, BucketOutcome, Outcome
from replicator.pipeline.cluster import executor_count, is_local
from replicator.schema.registry import SchemaRegistry

RETRY_WAIT = (0.2, 15.0)
"""Seconds before the first and, at most, before any later attempt to reach the target."""

DUPLICATE_ROWS = f"rows.{Outcome.DUPLICATE.value}"
"""The event of the fault that two rows have the same key."""

SPARK_ATTEMPTS = 3
"""How often a job that failed in Spark itself is submitted before the session is replaced."""

EXECUTOR_LOOK = 2.0
"""Seconds between checks that a cluster still has executors for a running batch."""

_JVM_GONE = (Py4JError, EOFError, OSError, pa.ArrowException)


class JobRunner:
    """Submits batches. Submitting one again is harmless: each bucket knows what it has."""

    def __init__(
        self, session: SparkSession, settings: ApplySettings, registry: SchemaRegistry
    ) -> None:
        self.state = "idle"
        self._session = session
        self._settings = settings
        self._registry = registry
        self._log = structlog.get_logger()

    @property
    def stuck(self) -> bool:
        """Whether the batch waits for something unreachable."""
        return self.state.startswith("retrying")

    async def run(self, batch: Batch) -> BatchResult:
        """Apply a batch, waiting for an unreachable target.

        Raises FatalError for a batch that cannot be applied as it is, TransientError when Spark
        keeps failing.
        """
        backoff = Backoff(RETRY_WAIT)
        failures = 0
        self.state = "applying"
        while True:
            try:
                result = await self._submit(batch)
            except (PySparkException, Py4JJavaError) as error:
                failures += 1
                self._log.warning("batch.spark-failed", attempt=failures, error=str(error)[:2000])
                if failures >= SPARK_ATTEMPTS:
                    raise TransientError(f"Spark failed {failures} times: {error}") from error
                trouble = "Spark failed"
            except _JVM_GONE as error:
                # Not a job that failed: the connection to the JVM broke, with its answer.
                raise TransientError(f"Spark's JVM is gone: {error!r}") from error
            else:
                if not result.failures:
                    self.state = "idle"
                    return result
                for bucket in result.failures:
                    if bucket.outcome is not Outcome.UNREACHABLE:
                        raise self._fault(bucket)
                trouble = result.failures[0].message
            self.state = f"retrying: {trouble}"
            self._log.warning("batch.retry", reason=trouble, seconds=round(backoff.next, 1))
            await backoff.wait()

    async def _submit(self, batch: Batch) -> BatchResult:
        """Run one job, `stuck` while the cluster has no executor; stopping cancels it then."""
        if is_local(self._session.sparkContext.master or ""):
            return await anyio.to_thread.run_sync(apply_batch, self._session, batch, self._settings)
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_executors)
            try:
                result = await anyio.to_thread.run_sync(
                    apply_batch, self._session, batch, self._settings
                )
            except (PySparkException, *_JVM_GONE) as error:
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return result

    async def _watch_executors(self) -> None:
        context = self._session.sparkContext
        before = self.state
        try:
            while True:
                await anyio.sleep(EXECUTOR_LOOK)
                if await anyio.to_thread.run_sync(executor_count, context):
                    self.state = before
                elif self.state == before:
                    reason = "the Spark cluster has no executor left for the task, and gives none"
                    self.state = f"retrying: {reason}"
                    self._log.warning("batch.no-executors", reason=reason)
        except Py4JError:
            # The JVM is gone or the application has ended: the job itself reports that.
            return
        finally:
            if self.state != before:
                # The thread that waits for the job can't be cancelled; without its job it ends.
                context.cancelAllJobs()
                self.state = before

    def _fault(self, bucket: BucketOutcome) -> FatalError:
        target = self._registry.target_name(bucket.target)
        if bucket.code in MISSING_PRIVILEGE:
            refused: tuple[str, ...] = (
                f"grant {self._settings.address.user} what the error names (`replicator check`"
                " tells all it needs); then `replicator resume`",
            )
        else:
            refused = (
                "remove what the error names from the target, or change the target's table so"
                " that it takes the row; then `replicator resume`",
            )
        ways = {
            Outcome.DUPLICATE: (
                "remove or change the row in one of the shards (the change then arrives here too)"
                " or on the target, then `replicator resume`",
                "if rows may overwrite one another, set safe-mode: true in the syncer",
            ),
            Outcome.UNDECODABLE: (
                "bring over by hand what this transaction did, then start the task behind it with"
                " remove-meta and meta: {binlog-name, binlog-pos} for every source (SHOW BINLOG"
                " EVENTS tells where it ends, `replicator status` where other sources are)",
                "mend the cause at the source, so that later rows can be read",
            ),
        }
        return FatalError(
            f"rows.{bucket.outcome.value}",
            bucket.message,
            where="; ".join([*bucket.members, f"target {target}"]),
            ways_out=ways.get(bucket.outcome, refused),
        )
