"""Spark jobs that compare ranges; each task gets every n-th range."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from pyspark import SparkContext

from replicator.downstream.meta.held_shards import HeldShards
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.compare.compare_rows import (
    CompareServers,
    Look,
    Looked,
    LookedAgain,
    Sessions,
    look_again,
    look_at,
)
from replicator.pipeline.compare.doubts import Doubt
from replicator.pipeline.spark.json_results import from_json, to_json
from replicator.pipeline.spark.python_job import run_in_tasks
from replicator.pipeline.workers.worker_pool import make_room

_FirstWork = tuple[ComparisonPlan, tuple[Look, ...], CompareServers, int, bool, int]
_FurtherWork = tuple[ComparisonPlan, tuple[Doubt, ...], CompareServers, int, bool, HeldShards, int]
_Answer = TypeVar("_Answer")


def look_at_ranges(
    spark: SparkContext,
    comparison: ComparisonPlan,
    looks: Sequence[Look],
    servers: CompareServers,
    tasks: int,
    *,
    checksums: bool,
    most: int,
) -> list[Looked]:
    """Compare ranges for the first time, in so many tasks at once; one answer each, in their order.

    ``checksums`` and ``most`` as for `look_at`. Blocks. Raises what Spark raises.
    """
    tasks = min(tasks, len(looks))
    work: _FirstWork = comparison, tuple(looks), servers, tasks, checksums, most
    return _run(spark, _look, work, len(looks), tasks, Looked)


def look_again_at(
    spark: SparkContext,
    comparison: ComparisonPlan,
    doubts: Sequence[Doubt],
    servers: CompareServers,
    tasks: int,
    *,
    applied: bool,
    held: HeldShards,
    strikes: int,
) -> list[LookedAgain]:
    """Compare doubtful rows once more; as `look_at_ranges`, the rest as for `look_again`."""
    tasks = min(tasks, len(doubts))
    work: _FurtherWork = comparison, tuple(doubts), servers, tasks, applied, held, strikes
    return _run(spark, _look_again, work, len(doubts), tasks, LookedAgain)


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


def _look(work: _FirstWork, task: int) -> Iterator[bytes]:
    comparison, looks, servers, tasks, checksums, most = work
    with contextlib.closing(Sessions(servers)) as sessions:
        for look in looks[task::tasks]:
            yield to_json(look_at(comparison, look, sessions, checksums=checksums, most=most))


def _look_again(work: _FurtherWork, task: int) -> Iterator[bytes]:
    comparison, doubts, servers, tasks, applied, held, strikes = work
    with contextlib.closing(Sessions(servers)) as sessions:
        for doubt in doubts[task::tasks]:
            answer = look_again(
                comparison, doubt, sessions, applied=applied, held=held, strikes=strikes
            )
            yield to_json(answer)
