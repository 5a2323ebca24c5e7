"""Looks at keys in Spark tasks: the rows that the shards and the target have of them."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pymysql.err import MySQLError
from pyspark import SparkContext
from pyspark.serializers import NoOpSerializer

from replicator.downstream.rows.key_lookup import KeyFields, key_conditions
from replicator.mysql.errors import error_text
from replicator.pipeline.compare.compare_plan import ComparedTable, ComparisonPlan
from replicator.pipeline.compare.compare_rows import (
    CompareServers,
    RowDifference,
    Sessions,
    binlog_ends,
    paired,
)
from replicator.pipeline.spark.json_results import from_json, to_json
from replicator.pipeline.spark.python_job import sealed, unsealed
from replicator.pipeline.validation.validation_plan import ValidationPlan


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """Keys to look at: ``plan`` is the number of their target's plan, ``shards`` are the numbers of
    the shards that they are from (empty: any), ``lines`` the key lines."""

    plan: int
    shards: tuple[int, ...]
    lines: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class KeyAnswer:
    """What a look at keys has found.

    ``ends``: by source, where its binlog ended behind the look at its shards, as file and offset.
    ``failure``: why a server could not be read.
    """

    differences: tuple[RowDifference, ...] = ()
    ends: tuple[tuple[str, str, int], ...] = ()
    failure: str = ""


def look_at_keys(
    spark: SparkContext,
    plans: Sequence[ValidationPlan],
    requests: Sequence[KeyRequest],
    servers: CompareServers,
    tasks: int,
    per_query: int,
) -> list[KeyAnswer]:
    """Look at keys in so many tasks at once, ``per_query`` of them with one query; an answer to
    each request, in their order.

    Blocks. Raises what Spark raises.
    """
    tasks = min(tasks, len(requests))
    job: Any = spark.parallelize(requests, tasks).mapPartitions(_look)
    # By itself PySpark would unpickle what tasks give.
    job._jrdd_deserializer = NoOpSerializer()
    with sealed(spark, (tuple(plans), servers, per_query)):
        answers: list[bytes] = job.collect()
    return [from_json(KeyAnswer, answer) for answer in answers]


def _look(requests: Iterable[KeyRequest]) -> Iterator[bytes]:
    plans, servers, per_query = unsealed()
    with contextlib.closing(Sessions(servers)) as sessions:
        for request in requests:
            yield to_json(look_at_request(plans[request.plan], request, sessions, per_query))


def look_at_request(
    plan: ValidationPlan, request: KeyRequest, sessions: Sessions, per_query: int
) -> KeyAnswer:
    """Look at some keys. Failures of the servers are told in the answer."""
    every = tuple(range(len(plan.shards)))
    shards = request.shards or every
    try:
        found = _differences(plan, request.lines, shards, sessions, per_query)
        if found and shards != every:
            # A row may have moved to another shard.
            keys = tuple({difference.key for difference in found})
            found = _differences(plan, keys, every, sessions, per_query)
        ends = binlog_ends(plan.comparison, sessions) if found else ()
    except MySQLError as error:
        sessions.close()
        return KeyAnswer(failure=error_text(error))
    return KeyAnswer(tuple(found), ends)


def _differences(
    plan: ValidationPlan,
    lines: Sequence[bytes],
    shards: Sequence[int],
    sessions: Sessions,
    per_query: int,
) -> list[RowDifference]:
    # The shards first: what the target has is then at least as new, unless it waits.
    comparison = plan.comparison
    by_shard: list[Counter[bytes]] = [Counter() for _ in plan.shards]
    for number in shards:
        table, keys = comparison.shards[number], plan.own_keys(number, lines)
        by_shard[number] = _rows(comparison, table, keys, sessions, per_query)
    fields = [list(zip(plan.key, line.split(b"\t"), strict=True)) for line in lines]
    target = _rows(comparison, comparison.target, fields, sessions, per_query)
    every: Counter[bytes] = Counter()
    for rows in by_shard:
        every.update(rows)
    return list(paired(comparison, every - target, target - every, by_shard))


def _rows(
    comparison: ComparisonPlan,
    table: ComparedTable,
    keys: Sequence[KeyFields],
    sessions: Sessions,
    per_query: int,
) -> Counter[bytes]:
    found: Counter[bytes] = Counter()
    head = b"SELECT %s FROM %s WHERE " % (b",".join(table.selected), table.name.quoted.encode())
    tail = b"".join(b" AND (%s)" % condition for condition in table.conditions)
    stream = sessions.to(table.source)
    for condition in key_conditions(keys, per_query):
        for block, rows in stream.blocks(head + condition + tail):
            lines = bytes(block).split(b"\n")[:rows]
            found.update(comparison.normal(table, line) for line in lines)
    return found
