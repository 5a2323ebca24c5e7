"""All values of keys compared with one another, as one Spark job.

Executors read the shards, bring each value to its digest, and pass the digests on by their hash:
equal ones meet in one partition, where they are sorted, which Spark does on disk where they are
many. So memory does not grow with the tables.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pymysql.err import MySQLError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from replicator.binlog.errors import BinlogError
from replicator.mysql.errors import error_text
from replicator.pipeline.answers import from_json, to_json
from replicator.pipeline.key_plan import KeyRead
from replicator.pipeline.key_reading import KeyReader, KeyServers
from replicator.pipeline.key_tally import KeyRows, KeyTally, tally
from replicator.pipeline.living_job import make_room
from replicator.pipeline.sealed import sealed, unsealed

ROWS_A_PARTITION = 2_000_000
"""Digests that are sorted at a time, about."""

_KEYS = "key int, high long, low long, member int, shown binary"
_SCHEMA = pa.schema(
    [
        ("key", pa.int32()),
        ("high", pa.int64()),
        ("low", pa.int64()),
        ("member", pa.int32()),
        ("shown", pa.binary()),
    ]
)
_FOUND = pa.schema([("found", pa.binary())])


@dataclass(frozen=True, slots=True)
class _Tallies:
    """What one task has found, by key, and what could not be read, by key and member."""

    found: Mapping[int, KeyTally]
    failures: Mapping[tuple[int, int], str]


def compare_keys(
    spark: SparkContext,
    parts: Sequence[Sequence[KeyRead]],
    servers: KeyServers,
    expected: int,
) -> tuple[dict[int, KeyTally], dict[tuple[int, int], str]]:
    """Compare keys of members: what was found by key, what could not be read by key and member.

    Each of ``parts`` is read by one task over one connection to each of its sources, so their
    number is what the sources bear at once. ``expected``: about how many rows there are. Blocks.
    Raises what Spark raises.
    """
    plan = pa.table(
        {
            "place": pa.array(range(len(parts)), pa.int32()),
            "reads": pa.array([pickle.dumps(tuple(part)) for part in parts], pa.large_binary()),
        }
    )
    make_room(spark)
    partitions = max(spark.defaultParallelism, -(-expected // ROWS_A_PARTITION))
    frame = (
        SparkSession(spark)
        .createDataFrame(plan)
        .repartitionById(len(parts), "place")
        .mapInArrow(_read, _KEYS)
        .repartition(partitions, "key", "high")
        .sortWithinPartitions("key", "high", "low", "member")
        .mapInArrow(_tally, "found binary")
    )
    found: dict[int, KeyTally] = {}
    failures: dict[tuple[int, int], str] = {}
    with sealed(spark, servers):
        answers = frame.toArrow().column("found").to_pylist()
    for part in (from_json(_Tallies, answer) for answer in answers):
        for key, its in part.found.items():
            found.setdefault(key, KeyTally(key)).add(its)
        failures.update(part.failures)
    return found, failures


def _read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    reader = KeyReader(unsealed())
    try:
        for batch in batches:
            for reads in batch.column(1).to_pylist():
                # The driver's own words, on their way to an executor.
                for read in pickle.loads(reads):  # nosec B301
                    yield from _values(reader, read)
    finally:
        reader.close()


def _values(reader: KeyReader, read: KeyRead) -> Iterator[pa.RecordBatch]:
    try:
        for values in reader.values(read):
            yield _batch(read.key, read.member, values.high, values.low, values.shown)
    except (MySQLError, BinlogError) as error:
        reader.drop(read.source)
        # A key below zero: what its member's server said.
        nothing = np.zeros(1, np.int64)
        yield _batch(-1 - read.key, read.member, nothing, nothing, [error_text(error).encode()])


def _batch(
    key: int,
    member: int,
    high: np.typing.NDArray[np.int64],
    low: np.typing.NDArray[np.int64],
    shown: list[bytes],
) -> pa.RecordBatch:
    size = len(shown)
    return pa.record_batch(
        [
            pa.array(np.full(size, key, np.int32)),
            pa.array(high),
            pa.array(low),
            pa.array(np.full(size, member, np.int32)),
            pa.array(shown, pa.binary()),
        ],
        _SCHEMA,
    )


def _tally(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    failures: dict[tuple[int, int], str] = {}
    found = tally(_rows(batches, failures))
    answer = to_json(_Tallies(found, failures))
    yield pa.record_batch([pa.array([answer], pa.binary())], _FOUND)


def _rows(
    batches: Iterable[pa.RecordBatch], failures: dict[tuple[int, int], str]
) -> Iterator[KeyRows]:
    for batch in batches:
        key, high, low, member = (batch.column(i).to_numpy() for i in range(4))
        shown = batch.column(4)
        for i in np.flatnonzero(key < 0).tolist():
            failures[int(-1 - key[i]), int(member[i])] = shown[i].as_py().decode()
        start = int(np.searchsorted(key, 0))
        if start < len(key):
            yield KeyRows(
                key[start:], high[start:], low[start:], member[start:], shown[start:].to_pylist()
            )
