"""Compares all values of keys with one another, in one Spark job.

Executors read the shards, compute the digest of each value, and distribute the digests by hash, so
that equal ones are in one partition. Spark sorts large partitions on disk, so memory does not grow.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from pymysql.err import MySQLError
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from replicator.binlog.errors import BinlogError
from replicator.mysql.errors import error_text
from replicator.pipeline.compare.compare_rows import CompareServers, Sessions
from replicator.pipeline.duplicate_keys.key_plan import KeyRead
from replicator.pipeline.duplicate_keys.key_sample import HOLDERS, KeyReader, KeyTally
from replicator.pipeline.spark.python_job import sealed, unsealed
from replicator.pipeline.workers.worker_pool import release_slots

ROWS_A_PARTITION = 2_000_000
"""Approximate number of digests that are sorted at a time."""

SLOTS = 100
"""Maximum number of shared values that are kept as examples, per key and first member; chosen by
hash."""

_DIGESTS = "key int, digest binary, read int, line binary"
_UNREAD = -1
"""The key number of a row that has the error message of a member's server."""

_GROUPED = f"""
WITH counted AS (
    SELECT key, digest, read, line,
        COUNT(*) OVER (PARTITION BY key, digest) AS rows,
        ROW_NUMBER() OVER (PARTITION BY key, digest ORDER BY read, line) AS place,
        COLLECT_LIST(read) OVER (PARTITION BY key, digest ORDER BY read, line
            ROWS BETWEEN CURRENT ROW AND {HOLDERS - 1} FOLLOWING) AS holders
    FROM {{digests}}
), marked AS (
    SELECT *, IF(rows > 1 AND place = 1, digest, NULL) AS example FROM counted
)
SELECT key, read, COUNT(*) AS looked_at, COUNT_IF(rows > 1) AS sharing, COUNT(example) AS shared,
    MIN_BY(line, example) AS line, MIN_BY(holders, example) AS holders,
    MIN_BY(rows, example) AS rows, MIN(line) AS first_line
FROM marked GROUP BY key, read, PMOD(HASH(digest), {SLOTS})
"""


def compare_keys(
    spark: SparkContext, parts: Sequence[Sequence[KeyRead]], servers: CompareServers
) -> dict[int, KeyTally]:
    """Compare keys of members; return the results by key.

    Each of ``parts`` is read by one task over one connection to each of its sources. So the number
    of parts must not exceed the simultaneous connections of the sources. Blocks. Raises Spark's
    errors.
    """
    release_slots(spark)
    reads = [read for part in parts for read in part]
    found = {read.key: KeyTally() for read in reads}
    expected = sum(read.estimate for read in reads)
    partitions = max(spark.defaultParallelism, -(-expected // ROWS_A_PARTITION))
    digests = digest_frame(spark, len(parts)).repartition(partitions, "key", "digest")
    with sealed(spark, (servers, parts)):
        answers = SparkSession(spark).sql(_GROUPED, digests=digests).toArrow().to_pylist()
    for answer in answers:
        read = reads[answer["read"]]
        tally = found[read.key]
        if answer["key"] == _UNREAD:
            tally.failures[read.member] = answer["first_line"].decode()
            continue
        tally.looked_at += answer["looked_at"]
        tally.shared += answer["shared"]
        if answer["sharing"]:
            tally.by_member[read.member] += answer["sharing"]
        if answer["shared"]:
            tally.add_example(reads, answer["line"], answer["holders"], answer["rows"])
    return found


def digest_frame(spark: SparkContext, tasks: int) -> DataFrame:
    """Return the values of keys; each task reads the part with its number.

    A row has the number of the key, the digest, which is the same for equal values, the number of
    the read, and the beginning of the row line. For an unreadable member, it has the server's
    message instead. The servers and the parts must be `sealed` when the frame is evaluated.
    """
    rows = spark.parallelize(range(tasks), tasks).flatMap(_read)
    return SparkSession(spark).createDataFrame(rows, _DIGESTS, verifySchema=False)


def _read(task: int) -> Iterator[tuple[int, bytes, int, bytes]]:
    servers, parts = unsealed()
    number = sum(map(len, parts[:task]))
    with contextlib.closing(Sessions(servers)) as sessions:
        reader = KeyReader(sessions)
        for place, read in enumerate(parts[task], number):
            try:
                for digest, line in reader.all(read):
                    yield read.key, digest, place, line
            except (MySQLError, BinlogError) as error:
                sessions.close()
                yield _UNREAD, b"%d" % place, place, error_text(error).encode()
