"""The full copy as Spark jobs: each takes some chunks, and executors copy them."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from replicator.crashpoints import take_settings
from replicator.pipeline.copy_chunk import ChunkOutcome, CopyOutcome, CopySettings, copy_chunk
from replicator.pipeline.copy_plan import CopyChunk
from replicator.pipeline.living_job import make_room

OUTCOME_SCHEMA = "outcome binary"

_OUTCOME = pa.schema([("outcome", pa.binary())])


def copy_chunks(
    session: SparkSession, chunks: Sequence[CopyChunk], settings: CopySettings
) -> tuple[ChunkOutcome, ...]:
    """Copy chunks, one after the other, in one task of Spark; several jobs may run at once.

    Blocks until all are committed, or one has failed: its outcome is the last one. Copying a
    chunk again changes nothing. Raises what Spark raises when the job itself fails.
    """
    crash = (os.environ.get("REPLICATOR_CRASH_AT", ""), str(os.getpid()))
    # One value: Spark would spread rows over tasks, and what a source bears is decided elsewhere.
    plan = pa.table({"chunks": pa.array([pickle.dumps(tuple(chunks))], pa.large_binary())})
    make_room(session)
    frame = session.createDataFrame(plan)
    done = frame.mapInArrow(partial(_copy_all, settings, crash), OUTCOME_SCHEMA).toArrow()
    return tuple(map(pickle.loads, done.column("outcome").to_pylist()))


def _copy_all(
    settings: CopySettings, crash: tuple[str, str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    take_settings(*crash)
    for batch in batches:
        for chunks in batch.column(0).to_pylist():
            for chunk in pickle.loads(chunks):
                outcome = copy_chunk(chunk, settings)
                yield pa.record_batch([pa.array([pickle.dumps(outcome)], pa.binary())], _OUTCOME)
                if outcome.outcome is not CopyOutcome.DONE:
                    return
