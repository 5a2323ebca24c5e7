"""Applying a batch of row events to its targets, by tasks of Spark that stay."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pyspark.sql import SparkSession

from replicator.crashpoints import CrashPoint, reach
from replicator.pipeline.batch import (
    ApplySettings,
    Batch,
    BatchResult,
    BucketOutcome,
    LeftOut,
)
from replicator.pipeline.frames import Frame, frame_of
from replicator.pipeline.job import Job, Part, apply_part
from replicator.pipeline.living_job import living_job
from replicator.pipeline.placement import Share, spread
from replicator.pipeline.raw_events import RawEvents, raw_events
from replicator.watermark import NOTHING_APPLIED, Watermark

SMALL_BYTES = 256 * 1024
SMALL_EVENTS = 500
"""Below both, a batch is applied by one task: more would each have to decode it."""


def apply_batch(session: SparkSession, batch: Batch, settings: ApplySettings) -> BatchResult:
    """Decode the events, work out their net effect, write it with the watermarks it reaches.

    Blocks until all buckets are committed or have failed; failures are outcomes in the result.
    Applying the same batch again changes nothing. Raises what Spark raises when the job itself
    fails: some buckets may then be committed, and the batch is to be applied again.
    """
    if not len(batch):
        return BatchResult(())
    small = len(batch) <= SMALL_EVENTS and batch.bytes <= SMALL_BYTES
    buckets = {plan.target.number: plan.target.buckets for plan in batch.plans}
    job = job_of(batch, settings)
    answers = living_job(session, apply_part).ask(
        lambda tasks: _frames(job, batch, spread(_sizes(batch), buckets, tasks)),
        1 if small else sum(buckets.values()),
        sent=lambda: reach(CrashPoint.PARTS_SENT),
    )
    told = [one for answer in answers for one in answer]
    return BatchResult(
        tuple(one for one in told if isinstance(one, BucketOutcome)),
        tuple(one for one in told if isinstance(one, LeftOut)),
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
        settings=settings,
        crash=(os.environ.get("REPLICATOR_CRASH_AT", ""), str(os.getpid())),
    )


def _sizes(batch: Batch) -> dict[int, int]:
    """The bytes of each target's events."""
    sizes = [0] * len(batch.plans)
    for plan, event in zip(batch.plan, batch.event, strict=True):
        sizes[plan] += len(event)
    targets: dict[int, int] = {}
    for table, size in zip(batch.plans, sizes, strict=True):
        targets[table.target.number] = targets.get(table.target.number, 0) + size
    return targets


def _frames(job: Job, batch: Batch, shares: Sequence[Share]) -> list[Frame | None]:
    """What each task is sent: nothing where it has no share."""
    everything = {plan.target.number for plan in batch.plans}
    whole: RawEvents | None = None
    frames: list[Frame | None] = []
    for share in shares:
        if not share:
            frames.append(None)
        elif share.keys() == everything:
            whole = whole or raw_events(batch)
            frames.append(frame_of(Part(job, whole, share)))
        else:
            plans = (i for i, plan in enumerate(batch.plans) if plan.target.number in share)
            frames.append(frame_of(Part(job, raw_events(batch, frozenset(plans)), share)))
    return frames


def _ends(batch: Batch) -> dict[tuple[int, int], Watermark]:
    ends: dict[tuple[int, int], Watermark] = {}
    heads = zip(
        batch.source,
        batch.plan,
        map(Watermark, batch.version, batch.transaction, batch.ordinal),
        strict=True,
    )
    for source, plan, watermark in heads:
        of = (source, batch.plans[plan].target.number)
        if watermark > ends.get(of, NOTHING_APPLIED):
            ends[of] = watermark
    return ends
