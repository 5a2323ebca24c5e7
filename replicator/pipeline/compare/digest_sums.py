"""Compares tables that no key divides into ranges, by the sums of their rows' digests.

The digests of all rows of a table are added modulo 2^128. If these sums and the numbers of rows are
equal, two tables have the same rows, each as often: the sum is a hash of a multiset, for which the
order of the rows does not matter. Source: "Incremental Multiset Hash Functions and Their
Application to Memory Integrity Checking" (Clarke et al., 2003), MSet-Add-Hash.

Nothing is sorted, and Spark SQL is not needed. `replicator.pipeline.compare.compare_digests` finds
the rows that differ.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

from pymysql.err import MySQLError
from pyspark import SparkContext

from replicator.mysql.errors import error_text
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.compare.compare_queries import rows_query
from replicator.pipeline.compare.compare_rows import CompareServers, Sessions
from replicator.pipeline.spark.json_results import from_json, to_json
from replicator.pipeline.spark.python_job import run_in_tasks
from replicator.pipeline.workers.worker_pool import make_room

DIGEST_BYTES = 16

_Work = tuple[ComparisonPlan, CompareServers, tuple[tuple[int, ...], ...]]


class RowsUnreadError(Exception):
    """A server refused to return the rows of a table; the message says why."""


@dataclass(frozen=True, slots=True)
class TableSum:
    """The sum of one table.

    Attributes:
        table: 0 for the target, then the shards.
        rows: number of rows.
        digests: the sum of the digests of the rows.
        failure: why the table could not be read; empty if it could.
    """

    table: int
    rows: int
    digests: int
    failure: str = ""


def row_digest(normal: bytes) -> bytes:
    """Return the digest of a row from its normal line, which is the same for equal rows."""
    return blake2b(normal, digest_size=DIGEST_BYTES).digest()


def tables_by_task(shards: int, tasks: int) -> list[list[int]]:
    """Return the tables that each task reads: the target alone, then the shards.

    The target is alone since it has as many rows as all shards together.
    """
    others = max(1, min(tasks - 1, shards))
    return [[0], *([*range(1 + at, 1 + shards, others)] for at in range(others))]


def rows_of(comparison: ComparisonPlan, sessions: Sessions, number: int) -> Iterator[bytes]:
    """Yield the rows of the target (0) or a shard, in the form in which the target writes them.

    Raises the server's error.
    """
    table = (comparison.target, *comparison.shards)[number]
    for block, rows in sessions.to(table.source).blocks(rows_query(table, None, None)):
        for line in bytes(block).split(b"\n")[:rows]:
            yield table.written(line)


def equal_by_sums(
    spark: SparkContext, comparison: ComparisonPlan, servers: CompareServers, tasks: int
) -> tuple[int, ...] | None:
    """Read all tables, ``tasks`` at once.

    Return their numbers of rows if target and shards are equal.

    Returns None if rows differ. Blocks. Raises RowsUnreadError, and Spark's errors.
    """
    shared = tuple(map(tuple, tables_by_task(len(comparison.shards), tasks)))
    work: _Work = comparison, servers, shared
    make_room(spark)
    answers = run_in_tasks(spark, len(shared), _sums, work)
    sums = sorted((from_json(TableSum, answer) for answer in answers), key=lambda one: one.table)
    for one in sums:
        if one.failure:
            raise RowsUnreadError(one.failure)
    target, *shards = sums
    equal = (target.rows, target.digests) == (
        sum(one.rows for one in shards),
        sum(one.digests for one in shards) % _MODULUS,
    )
    return tuple(one.rows for one in sums) if equal else None


_MODULUS = 1 << 8 * DIGEST_BYTES


def _sums(work: _Work, task: int) -> Iterator[bytes]:
    comparison, servers, shared = work
    with contextlib.closing(Sessions(servers)) as sessions:
        for number in shared[task]:
            yield to_json(_sum_of(comparison, sessions, number))


def _sum_of(comparison: ComparisonPlan, sessions: Sessions, number: int) -> TableSum:
    total = count = 0
    try:
        for written in rows_of(comparison, sessions, number):
            total += int.from_bytes(row_digest(comparison.normal(written)), "big")
            count += 1
    except MySQLError as error:
        table = (comparison.target, *comparison.shards)[number]
        return TableSum(number, 0, 0, f"{table}: {error_text(error)}")
    return TableSum(number, count, total % _MODULUS)
