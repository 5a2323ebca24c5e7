"""Applying a batch of row events to its targets: one Spark job, however many tables it holds."""

from __future__ import annotations

import os
import pickle
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from replicator.pipeline.batch import ApplySettings, Batch, BatchResult
from replicator.pipeline.job import (
    OUTCOME_SCHEMA,
    SLICE_SCHEMA,
    Job,
    apply_fused,
    apply_slots,
    decode_to_slots,
    pack_events,
)
from replicator.watermark import NOTHING_APPLIED, Watermark

SMALL_BYTES = 256 * 1024
SMALL_EVENTS = 500
"""Below both, a batch is applied by one task: a shuffle would cost more than it saves."""


def apply_batch(session: SparkSession, batch: Batch, settings: ApplySettings) -> BatchResult:
    """Decode the events, work out their net effect, write it with the watermarks it reaches.

    Blocks until all buckets are committed or have failed; failures are outcomes in the result.
    Applying the same batch again changes nothing. Raises what Spark raises when the job itself
    fails: some buckets may then be committed, and the batch is to be applied again.
    """
    if not len(batch):
        return BatchResult(())
    small = len(batch) <= SMALL_EVENTS and batch.bytes <= SMALL_BYTES
    context = session.sparkContext
    buckets = {plan.target.number: plan.target.buckets for plan in batch.plans}
    slots = 1 if small else max(1, min(context.defaultParallelism, sum(buckets.values())))
    job = Job(
        plans=batch.plans,
        sources=batch.sources,
        ends=_ends(batch),
        left=batch.left,
        revision=batch.revision,
        shared=batch.shared,
        slots=slots,
        settings=settings,
        crash=(os.environ.get("REPLICATOR_CRASH_AT", ""), str(os.getpid())),
    )
    events = session.createDataFrame(_packed(_arrow(batch), slots))
    if slots == 1:
        done = events.mapInArrow(partial(apply_fused, job), OUTCOME_SCHEMA)
    else:
        done = (
            events.mapInArrow(partial(decode_to_slots, job), SLICE_SCHEMA)
            .repartitionById(slots, "slot")
            .mapInArrow(partial(apply_slots, job), OUTCOME_SCHEMA)
        )
    outcomes = done.toArrow().column("outcome").to_pylist()
    return BatchResult(tuple(pickle.loads(outcome) for outcome in outcomes))


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


def _arrow(batch: Batch) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "number": pa.array(range(len(batch)), pa.int64()),
            "plan": pa.array(batch.plan, pa.int32()),
            "source": pa.array(batch.source, pa.int32()),
            "version": pa.array(batch.version, pa.int32()),
            "transaction": pa.array(batch.transaction, pa.int64()),
            "ordinal": pa.array(batch.ordinal, pa.int64()),
            "event": pa.array(batch.event, pa.large_binary()),
        }
    )


def _packed(events: pa.RecordBatch, parts: int) -> pa.Table:
    """The events in ``parts`` pieces, a row each: Spark would convert every event on its way."""
    size = -(-events.num_rows // parts)
    pieces = [events.slice(at, size) for at in range(0, events.num_rows, size)]
    return pa.table({"events": pa.array(map(pack_events, pieces), pa.large_binary())})
