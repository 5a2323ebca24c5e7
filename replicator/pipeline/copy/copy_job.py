"""The full copy as Spark jobs: each takes some chunks, and executors copy them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from pyspark import SparkContext

from replicator.failpoints import take_settings
from replicator.pipeline.copy.chunk_progress import ProgressWriter
from replicator.pipeline.copy.copy_chunk import ChunkOutcome, CopyOutcome, CopySettings, copy_chunk
from replicator.pipeline.copy.copy_plan import CopyChunk
from replicator.pipeline.spark.json_results import from_json, to_json
from replicator.pipeline.spark.python_job import run_in_tasks
from replicator.pipeline.workers.worker_pool import share_slots

_KNOWN = frozenset({"chunk"})
"""What the driver need not be told of the outcome of a chunk."""


def copy_chunks(
    spark: SparkContext, chunks: Sequence[CopyChunk], settings: CopySettings, progress: str = ""
) -> tuple[ChunkOutcome, ...]:
    """Copy chunks, one after the other, in one task of Spark; several jobs may run at once.

    Blocks until all are committed, or one has failed: its outcome is the last one. Copying a
    chunk again changes nothing. ``progress``: the file in which the task tells how far it is
    (`ProgressReader`), if any. Raises what Spark raises when the job itself fails.
    """
    crash = (os.environ.get("REPLICATOR_CRASH_AT", ""), str(os.getpid()))
    share_slots(spark)
    # One task: what a source bears is decided elsewhere.
    answers = run_in_tasks(spark, 1, _copy_all, (tuple(chunks), settings, crash, progress))
    return tuple(
        from_json(ChunkOutcome, answer, chunk=chunk)
        for chunk, answer in zip(chunks, answers, strict=False)
    )


def _copy_all(
    told: tuple[tuple[CopyChunk, ...], CopySettings, tuple[str, str], str], _: int
) -> Iterator[bytes]:
    chunks, settings, crash, path = told
    take_settings(*crash)
    with ProgressWriter(path) as progress:
        for chunk in chunks:
            outcome = copy_chunk(chunk, settings, progress.tell)
            progress.end_chunk(outcome.rows, outcome.size)
            yield to_json(outcome, without=_KNOWN)
            if outcome.outcome is not CopyOutcome.DONE:
                return
