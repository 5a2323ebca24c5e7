"""Spark jobs that compare ranges: one of n tasks gets every n-th range."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from pyspark import SparkContext

from replicator.downstream.meta.held_shards import HeldShards
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.compare.compare_rows import (
    CompareServers,
    DoubtComparison,
    KeyRange,
    RangeComparison,
    Sessions,
    compare_doubt,
    compare_range,
)
from replicator.pipeline.compare.doubts import Doubt
from replicator.pipeline.spark.json_results import from_json, to_json
from replicator.pipeline.spark.python_job import run_in_tasks
from replicator.pipeline.workers.worker_pool import make_room

_FirstWork = tuple[ComparisonPlan, tuple[KeyRange, ...], CompareServers, int, bool, int]
_FurtherWork = tuple[ComparisonPlan, tuple[Doubt, ...], CompareServers, int, bool, HeldShards, int]
_Answer = TypeVar("_Answer")


def compare_ranges(
    spark: SparkContext,
    comparison: ComparisonPlan,
    ranges: Sequence[KeyRange],
    servers: CompareServers,
    tasks: int,
    *,
    checksums: bool,
    most: int,
) -> list[RangeComparison]:
    """Compare ranges for the first time, with this many tasks at once.

    Returns one result for each range, in their order. Blocks. Raises Spark's errors. ``checksums``
    and ``most`` as for `compare_range`.
    """
    tasks = min(tasks, len(ranges))
    work: _FirstWork = comparison, tuple(ranges), servers, tasks, checksums, most
    return _run(spark, _compare_ranges, work, len(ranges), tasks, RangeComparison)


def compare_doubts(
    spark: SparkContext,
    comparison: ComparisonPlan,
    doubts: Sequence[Doubt],
    servers: CompareServers,
    tasks: int,
    *,
    applied: bool,
    held: HeldShards,
    mismatches: int,
) -> list[DoubtComparison]:
    """Compare rows in doubt once more.

    Returns one result for each doubt, in their order. Blocks. Raises Spark's errors. The other
    arguments are as for `compare_doubt`.
    """
    tasks = min(tasks, len(doubts))
    work: _FurtherWork = comparison, tuple(doubts), servers, tasks, applied, held, mismatches
    return _run(spark, _compare_doubts, work, len(doubts), tasks, DoubtComparison)


def _run(
    spark: SparkContext,
    function: Callable[..., Iterator[bytes]],
    work: object,
    count: int,
    tasks: int,
    kind: type[_Answer],
) -> list[_Answer]:
    make_room(spark)
    answers = run_in_tasks(spark, tasks, function, work)
    order = [number for task in range(tasks) for number in range(task, count, tasks)]
    found = dict(zip(order, (from_json(kind, answer) for answer in answers), strict=True))
    return [found[number] for number in range(count)]


def _compare_ranges(work: _FirstWork, task: int) -> Iterator[bytes]:
    comparison, ranges, servers, tasks, checksums, most = work
    with contextlib.closing(Sessions(servers)) as sessions:
        for key_range in ranges[task::tasks]:
            yield to_json(
                compare_range(comparison, key_range, sessions, checksums=checksums, most=most)
            )


def _compare_doubts(work: _FurtherWork, task: int) -> Iterator[bytes]:
    comparison, doubts, servers, tasks, applied, held, mismatches = work
    with contextlib.closing(Sessions(servers)) as sessions:
        for doubt in doubts[task::tasks]:
            answer = compare_doubt(
                comparison, doubt, sessions, applied=applied, held=held, mismatches=mismatches
            )
            yield to_json(answer)
