"""Applying a batch of row events to its targets, by tasks of Spark that stay."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from pyspark import SparkContext

from replicator.failpoints import Failpoint, reach
from replicator.kernels.compiled import Integers
from replicator.pipeline.apply.batch import ApplySettings, Batch, BatchResult, Share, spread
from replicator.pipeline.apply.job import BatchShare, Job
from replicator.pipeline.apply.pool_work import work_on
from replicator.pipeline.apply.raw_events import RawEvents
from replicator.pipeline.spark.json_results import from_json
from replicator.pipeline.workers.frames import Frame, frame_of
from replicator.pipeline.workers.worker_pool import worker_pool
from replicator.watermark import Watermark

SMALL_BYTES = 256 * 1024
SMALL_EVENTS = 500
"""Below both, a batch is applied by one task: more would each have to decode it."""


def apply_batch(spark: SparkContext, batch: Batch, settings: ApplySettings) -> BatchResult:
    """Decode the events, work out their net effect, write it with the watermarks it reaches.

    Blocks until all buckets are committed or have failed; failures are outcomes in the result.
    Applying the same batch again changes nothing. Raises what Spark raises when the job itself
    fails: some buckets may then be committed, and the batch is to be applied again.
    """
    if not len(batch):
        return BatchResult(())
    small = len(batch) <= SMALL_EVENTS and batch.bytes <= SMALL_BYTES
    buckets = {plan.target.number: plan.target.buckets for plan in batch.plans.kinds}
    job = job_of(batch, settings)
    answers = worker_pool(spark, work_on).ask(
        lambda tasks: _frames(job, batch, spread(_sizes(batch), buckets, tasks, batch.tied)),
        1 if small else sum(buckets.values()),
        sent=lambda: reach(Failpoint.PARTS_SENT),
    )
    told = [from_json(BatchResult, answer) for answer in answers]
    return BatchResult(
        tuple(outcome for one in told for outcome in one.outcomes),
        tuple(left_out for one in told for left_out in one.left_out),
    )


def job_of(batch: Batch, settings: ApplySettings) -> Job:
    """What all tasks of a batch must know."""
    return Job(
        plans=batch.plans,
        sources=batch.sources,
        ends=_ends(batch),
        left=batch.left,
        revision=batch.revision,
        shared=batch.shared,
        reached=batch.reached,
        tied=batch.tied,
        settings=settings,
        crash=(os.environ.get("REPLICATOR_CRASH_AT", ""), str(os.getpid())),
    )


def _sizes(batch: Batch) -> dict[int, int]:
    """The bytes of each target's events."""
    events = batch.events
    targets = batch.plans.targets
    sizes = np.bincount(targets[events.plan], np.diff(events.start)).tolist()
    return {target: int(sizes[target]) for target in np.unique(targets).tolist()}


def _frames(job: Job, batch: Batch, shares: Sequence[Share]) -> list[Frame | None]:
    """What each task is sent: nothing where it has no share."""
    targets = batch.plans.targets
    frames: list[Frame | None] = []
    for share in shares:
        if not share:
            frames.append(None)
            continue
        taken = np.isin(targets, list(share))
        events = batch.events if taken.all() else batch.events.where(taken[batch.events.plan])
        frames.append(frame_of(BatchShare(job, events, share)))
    return frames


def _ends(batch: Batch) -> dict[tuple[int, int], Watermark]:
    """The highest watermark of each source's events for each target."""
    events = batch.events
    targets, of_plan = np.unique(batch.plans.targets, return_inverse=True)
    group = events.source * len(targets) + of_plan[events.plan]
    # Numbers of 16 bits are sorted by their digits.
    small = np.min_scalar_type(len(batch.sources) * len(targets))
    order = np.argsort(group.astype(small), kind="stable")
    groups, begins = np.unique(group[order], return_index=True)
    ends = {}
    for number, places in zip(groups.tolist(), np.split(order, begins[1:]), strict=True):
        source, target = divmod(number, len(targets))
        ends[source, int(targets[target])] = _highest(events, places)
    return ends


def _highest(events: RawEvents, places: Integers) -> Watermark:
    highest = []
    for column in (events.version, events.transaction, events.ordinal):
        values = column[places]
        highest.append(int(values.max()))
        places = places[values == highest[-1]]
    return Watermark(*highest)
