"""Comparisons as Spark jobs: ranges in tasks, and tables that have none as grouped digests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from hashlib import blake2b

from pymysql.err import MySQLError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from replicator.mysql.errors import error_text
from replicator.pipeline.compare.compare_plan import ComparisonPlan, rows_query
from replicator.pipeline.compare.compare_rows import (
    CompareServers,
    Look,
    Looked,
    RowDifference,
    Sessions,
    look_at,
)
from replicator.pipeline.spark.json_results import from_json, to_json
from replicator.pipeline.spark.python_job import run_in_tasks, sealed, unsealed
from replicator.pipeline.workers.worker_pool import release_slots

MOST_DIFFERENCES = 100_000
"""Rows that differ in a table without ranges, at most: all that is known of them is kept."""

_ROWS = "digest binary, net int, read int, line binary, failure string"
_GROUPED = f"""
WITH summed AS (
    SELECT digest, SUM(net) AS net, MAX(read) AS read, MIN(line) AS line, MAX(failure) AS failure
    FROM {{rows}} GROUP BY digest, IF(digest = X'', read, -1)
    HAVING SUM(net) <> 0 OR MAX(failure) IS NOT NULL
)
SELECT digest, net, read, line, failure FROM summed ORDER BY LENGTH(digest) LIMIT {MOST_DIFFERENCES}
"""

_Work = tuple[tuple[ComparisonPlan, ...], tuple[Look, ...], CompareServers, bool, int]


def look_at_ranges(
    spark: SparkContext,
    comparisons: Sequence[ComparisonPlan],
    looks: Sequence[Look],
    servers: CompareServers,
    tasks: int,
    *,
    checksums: bool,
) -> list[Looked]:
    """Look at ranges, in so many tasks at once; one answer each, in their order.

    Blocks. Raises what Spark raises.
    """
    release_slots(spark)
    tasks = min(tasks, len(looks))
    work: _Work = tuple(comparisons), tuple(looks), servers, checksums, tasks
    answers = run_in_tasks(spark, tasks, _look, work)
    # Task by task: each has every so-manyth look.
    order = [number for task in range(tasks) for number in range(task, len(looks), tasks)]
    found = dict(zip(order, (from_json(Looked, answer) for answer in answers), strict=True))
    return [found[number] for number in range(len(looks))]


def _look(work: _Work, task: int) -> Iterator[bytes]:
    comparisons, looks, servers, checksums, tasks = work
    with contextlib.closing(Sessions(servers)) as sessions:
        for look in looks[task::tasks]:
            comparison = comparisons[look.comparison]
            yield to_json(look_at(comparison, look, sessions, checksums=checksums))


def look_at_digests(
    spark: SparkContext, comparison: ComparisonPlan, servers: CompareServers
) -> tuple[list[RowDifference], list[int]]:
    """The rows that a target without ranges and its shards do not both have, equally often; and
    how many rows the target and each shard have.

    Rows meet by their digests, in Spark, which sorts on disk where they are many; so memory does
    not grow with the tables. Blocks. Raises what Spark raises, and RowsUnreadError.
    """
    release_slots(spark)
    count = 1 + len(comparison.shards)
    rows = spark.parallelize(range(count), count).flatMap(_digests)
    session = SparkSession(spark)
    frame = session.createDataFrame(rows, _ROWS, verifySchema=False)
    with sealed(spark, (comparison, servers)):
        found = session.sql(_GROUPED, rows=frame).toArrow().to_pylist()
    counts = [0] * count
    rows_found = []
    for row in found:
        if row["failure"]:
            raise RowsUnreadError(row["failure"])
        if row["digest"]:
            rows_found.append((row["net"], row["read"], row["line"]))
        else:
            counts[row["read"]] = row["net"]
    if len(rows_found) + count >= MOST_DIFFERENCES:
        raise RowsUnreadError(
            f"more than {len(rows_found):,} rows differ, too many to look at again without ranges"
            " of a key. Compare a part of them with --where"
        )
    return _differences(comparison, rows_found), counts


class RowsUnreadError(Exception):
    """A server would not tell the rows of a table; says why."""


def _digests(number: int) -> Iterator[tuple[bytes, int, int, bytes, str | None]]:
    comparison, servers = unsealed()
    table = (comparison.target, *comparison.shards)[number]
    net = -1 if number == 0 else 1
    count = 0
    with contextlib.closing(Sessions(servers)) as sessions:
        try:
            for block, rows in sessions.to(table.source).blocks(rows_query(table, None, None)):
                count += rows
                for line in bytes(block).split(b"\n")[:rows]:
                    normal = comparison.normal(table, line)
                    yield blake2b(normal, digest_size=16).digest(), net, number, normal, None
        except MySQLError as error:
            yield b"", 0, number, b"", f"{table}: {error_text(error)}"
    # No row has an empty digest: this one tells how many there are.
    yield b"", count, number, b"", None


def _differences(
    comparison: ComparisonPlan, rows: Sequence[tuple[int, int, bytes]]
) -> list[RowDifference]:
    extra = {comparison.key_of(line): (line, -net) for net, _, line in rows if net < 0}
    found = []
    for net, read, line in rows:
        if net > 0:
            key = comparison.key_of(line)
            other = extra.pop(key, (None, 0))[0] if comparison.key else None
            shard = str(comparison.shards[read - 1])
            found.append(RowDifference(key, other, line, shard, net))
    found += [RowDifference(key, line, None, "", times) for key, (line, times) in extra.items()]
    return found
