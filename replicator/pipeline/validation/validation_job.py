"""Spark tasks that validate keys: they read the rows of these keys from shards and target.

Rows are compared as `replicator compare` does (`replicator.pipeline.compare.compare_plan`).
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pymysql.err import MySQLError
from pyspark import SparkContext
from pyspark.serializers import NoOpSerializer

from replicator.mysql.errors import error_text
from replicator.pipeline.compare.compare_plan import ComparedTable, ComparisonPlan, plan_comparison
from replicator.pipeline.compare.compare_rows import (
    CompareServers,
    Sessions,
    binlog_ends,
    lines_with_keys,
    rows_with_keys,
    unequal_groups,
)
from replicator.pipeline.compare.compare_structures import ComparedShard
from replicator.pipeline.compare.doubts import RowDifference, differences_of
from replicator.pipeline.compare.retired_rows import EXTRA, RowsOnTargetAlone
from replicator.pipeline.spark.json_results import from_json, to_json
from replicator.pipeline.spark.python_job import sealed, unsealed
from replicator.schema.structure.structure import Table


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """Keys to validate.

    Attributes:
        plan: the number of the plan of the keys' target.
        shards: the numbers of the shards of the keys; empty for any shard.
        lines: the key lines.
    """

    plan: int
    shards: tuple[int, ...]
    lines: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class KeyAnswer:
    """The result of validating keys.

    Attributes:
        ends: by source, the end of its binlog after its shards were read, as file and offset.
        failure: why a server could not be read.
    """

    differences: tuple[RowDifference, ...] = ()
    ends: tuple[tuple[str, str, int], ...] = ()
    failure: str = ""


def look_at_keys(
    spark: SparkContext,
    plans: Sequence[ComparisonPlan],
    requests: Sequence[KeyRequest],
    servers: CompareServers,
    tasks: int,
    per_query: int,
) -> list[KeyAnswer]:
    """Validate keys with this many tasks at once; return the results in the order of the requests.

    ``per_query``: number of keys per query. Blocks. Raises Spark's errors.
    """
    tasks = min(tasks, len(requests))
    job: Any = spark.parallelize(requests, tasks).mapPartitions(_look)
    # By default, PySpark would unpickle the results of tasks.
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
    plan: ComparisonPlan, request: KeyRequest, sessions: Sessions, per_query: int
) -> KeyAnswer:
    """Validate some keys. The result includes the failures of servers."""
    every = tuple(range(len(plan.shards)))
    shards = request.shards or every
    try:
        found = _differences(plan, request.lines, shards, sessions, per_query)
        if found and shards != every:
            # A row may have moved to another shard.
            keys = tuple({difference.key for difference in found})
            found = _differences(plan, keys, every, sessions, per_query)
        ends = binlog_ends(plan, sessions) if found else ()
    except MySQLError as error:
        sessions.close()
        return KeyAnswer(failure=error_text(error))
    return KeyAnswer(tuple(found), ends)


def _differences(
    plan: ComparisonPlan,
    lines: Sequence[bytes],
    shards: Sequence[int],
    sessions: Sessions,
    per_query: int,
) -> list[RowDifference]:
    keys = _differing_keys(plan, lines, shards, sessions, per_query)
    return _closely(plan, keys, shards, sessions, per_query) if keys else []


def _differing_keys(
    comparison: ComparisonPlan,
    lines: Sequence[bytes],
    shards: Sequence[int],
    sessions: Sessions,
    per_query: int,
) -> tuple[bytes, ...]:
    """Return the keys that may differ, because the servers do not write their rows alike.

    Nearly all rows are equal byte by byte, so only the values of the others are compared.
    """
    # Read the shards first: the target's rows are then at least as new, unless they wait.
    every: Counter[bytes] = Counter()
    for number in shards:
        table = comparison.shards[number]
        every.update(lines_with_keys(comparison, table, lines, sessions, per_query))
    target = lines_with_keys(comparison, comparison.target, lines, sessions, per_query)
    unlike = (every - target) + (target - every)
    return tuple({comparison.key_of(comparison.normal(line)) for line in unlike})


def _closely(
    comparison: ComparisonPlan,
    lines: Sequence[bytes],
    shards: Sequence[int],
    sessions: Sessions,
    per_query: int,
) -> list[RowDifference]:
    by_shard = {
        number: rows_with_keys(
            comparison, comparison.shards[number], lines, sessions, per_query=per_query
        )
        for number in shards
    }
    target = rows_with_keys(comparison, comparison.target, lines, sessions, per_query=per_query)
    groups = unequal_groups(comparison, target, by_shard, frozenset(lines))
    return [
        difference
        for key, group in groups.items()
        for difference in differences_of(comparison, key, group)
        if difference.kind != "extra" or not comparison.alone.kept
    ]


class NoKeyError(Exception):
    """A target has no key by which its rows can be found."""


def plan_validation(
    target: Table,
    shards: Sequence[ComparedShard],
    *,
    values: bool,
    alone: RowsOnTargetAlone = EXTRA,
) -> ComparisonPlan:
    """Plan how to validate keys.

    Args:
        values: whether to compare all columns instead of only the key's.
        alone: the treatment of rows that only the target has.

    Raises:
        NoKeyError: the target has no usable key.
        PlanError: the target can't store the values.
    """
    comparison = plan_comparison(target, shards, alone=alone)
    if not comparison.key:
        raise NoKeyError(f"{target.schema}.{target.name} has no unique key without NULLs")
    return comparison if values else _key_alone(comparison)


def _key_alone(comparison: ComparisonPlan) -> ComparisonPlan:
    at = {place: number for number, place in enumerate(comparison.key)}

    def cut(table: ComparedTable) -> ComparedTable:
        return replace(
            table,
            selected=tuple(table.selected[place] for place in comparison.key),
            transcodes=tuple((at[p], old, new) for p, old, new in table.transcodes if p in at),
        )

    return replace(
        comparison,
        target=cut(comparison.target),
        shards=tuple(map(cut, comparison.shards)),
        columns=tuple(comparison.columns[place] for place in comparison.key),
        key=tuple(range(len(comparison.key))),
        nullable=(),
        forms=tuple((at[place], form) for place, form in comparison.forms if place in at),
    )
