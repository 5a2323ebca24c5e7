"""Applies a batch of row events to its targets by long-lived Spark tasks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from pyspark import SparkContext

from replicator.failpoints import Failpoint, reach
from replicator.pipeline.apply.batch import (
    ApplySettings,
    Batch,
    BatchResult,
    Share,
    spread,
)
from replicator.pipeline.apply.pool_work import work_on
from replicator.pipeline.spark.json_results import from_json
from replicator.pipeline.workers.frames import Frame, frame_of
from replicator.pipeline.workers.worker_pool import worker_pool

SMALL_BYTES = 256 * 1024
SMALL_EVENTS = 500
"""A batch below both limits is applied by one task, since each task would have to decode it."""


def apply_batch(spark: SparkContext, batch: Batch, settings: ApplySettings) -> BatchResult:
    """Decode the events, compute their net effect, and write it with the new watermarks.

    Blocks until all buckets are committed or have failed; failures are outcomes in the result.
    Applying the same batch again changes nothing. Raises Spark's error if the job itself fails;
    some buckets may then be committed, and the batch must be applied again.
    """
    if not len(batch):
        return BatchResult(())
    sizes = batch.sizes
    small = len(batch) <= SMALL_EVENTS and sum(sizes.values()) <= SMALL_BYTES
    buckets = {plan.target.number: plan.target.buckets for plan in batch.plans.kinds}
    answers = worker_pool(spark, work_on).ask(
        lambda tasks: frames_of(batch, spread(sizes, buckets, tasks, batch.cascading), settings),
        1 if small else sum(buckets.values()),
        sent=lambda: reach(Failpoint.PARTS_SENT),
    )
    results = [from_json(BatchResult, answer) for answer in answers]
    return BatchResult(
        tuple(outcome for one in results for outcome in one.outcomes),
        tuple(left_out for one in results for left_out in one.left_out),
        tuple(keys for one in results for keys in one.keys),
    )


def frames_of(batch: Batch, shares: Sequence[Share], settings: ApplySettings) -> list[Frame | None]:
    """Return the message to each task; None for a task without a share."""
    crash = os.environ.get("REPLICATOR_CRASH_AT", ""), str(os.getpid())
    sent = replace(settings, crash=crash)
    parts: dict[frozenset[int], Batch] = {}
    frames: list[Frame | None] = []
    for share in shares:
        if not share:
            frames.append(None)
            continue
        # Tasks with buckets of the same targets receive the same events.
        targets = frozenset(share)
        if targets not in parts:
            parts[targets] = batch.of_targets(targets)
        frames.append(frame_of((replace(parts[targets], share=share), sent)))
    return frames
