"""Tables that no key cuts into ranges, compared whole: their rows meet by digests, in Spark.

Spark sorts on disk where rows are many, and what differs stays there: memory does not grow with the
tables, nor with what differs. A row that differs may be on its way. Few rows with a key are looked
up by it then; else the tables are read again, and only what stayed counts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b

from pymysql.err import MySQLError
from pyspark import SparkContext, StorageLevel
from pyspark.sql import DataFrame, SparkSession

from replicator.mysql.errors import error_text
from replicator.pipeline.compare.compare_plan import ComparisonPlan, rows_query
from replicator.pipeline.compare.compare_rows import CompareServers, Sessions
from replicator.pipeline.compare.doubts import RowDifference, RowGroup, differences_of
from replicator.pipeline.spark.python_job import sealed, unsealed
from replicator.pipeline.workers.worker_pool import release_slots

PAGE_ROWS = 10_000
"""Rows that differ, as they come to the driver."""

_ROWS = "digest binary, key binary, net int, read int, normal binary, line binary, failure string"
_SUMMED = """
SELECT digest, FIRST(key) AS key, SUM(net) AS net, SUM(IF(net < 0, -net, 0)) AS there,
       MAX(read) AS read, FIRST(normal) AS normal, MIN_BY(line, net) AS line,
       MAX(failure) AS failure
FROM {rows} GROUP BY digest, IF(digest = X'', read, -1)
HAVING SUM(net) <> 0 OR MAX(failure) IS NOT NULL
"""
_COUNTS = "SELECT net, read, failure FROM {summed} WHERE digest = X'' OR failure IS NOT NULL"
_ALL = "SELECT digest, key, net, there, read, normal, line FROM {summed} WHERE digest <> X''"
_STAYED = """
SELECT n.digest, n.key, CAST(SIGN(n.net) AS BIGINT) * LEAST(ABS(n.net), ABS(f.net)) AS net,
       n.there, n.read, n.normal, n.line
FROM {now} n JOIN {former} f ON n.digest = f.digest AND SIGN(n.net) = SIGN(f.net)
 AND n.net + n.there = f.net + f.there
"""
_CHANGING = """
SELECT n.* FROM {now} n LEFT SEMI JOIN {former} f ON n.key = f.key
LEFT ANTI JOIN {stayed} s ON n.key = s.key
"""
_KEYS = "SELECT DISTINCT key FROM {changing} ORDER BY key"
_KINDS = """
SELECT COALESCE(SUM(missing - LEAST(missing, extra)), 0) AS missing,
       COALESCE(SUM(extra - LEAST(missing, extra)), 0) AS extra,
       COALESCE(SUM(LEAST(missing, extra)), 0) AS different
FROM (SELECT SUM(IF(net > 0, net, 0)) AS missing, SUM(IF(net < 0, -net, 0)) AS extra
      FROM {stayed} GROUP BY key)
"""


class RowsUnreadError(Exception):
    """A server would not tell the rows of a table; says why."""


@dataclass(frozen=True, slots=True)
class DigestsLooked:
    """What one reading found: ``rows`` of the target and of each shard, and how many rows differ,
    of those that differed before (all, the first time): ``missing``, ``extra`` and ``different``
    stayed as they were, and the shards had as many of them; ``changing`` did not."""

    rows: tuple[int, ...]
    missing: int = 0
    extra: int = 0
    different: int = 0
    changing: int = 0

    @property
    def stayed(self) -> int:
        """Rows that differ as they did before."""
        return self.missing + self.extra + self.different


class DigestComparer:
    """Reads a target and its shards again and again. All methods block, and raise what Spark
    raises."""

    def __init__(
        self, spark: SparkContext, comparison: ComparisonPlan, servers: CompareServers
    ) -> None:
        self._spark = spark
        self._session = SparkSession(spark)
        self._comparison = comparison
        self._servers = servers
        self._former: DataFrame | None = None
        self._stayed: DataFrame | None = None
        self._changing: DataFrame | None = None

    def look(self) -> DigestsLooked:
        """Read all tables. Raises RowsUnreadError."""
        rows, now = self._read()
        if self._former is None:
            self._stayed, self._changing = None, now
            return DigestsLooked(rows, changing=now.count())
        stayed = self._keep(self._session.sql(_STAYED, now=now, former=self._former))
        changing = self._keep(
            self._session.sql(_CHANGING, now=now, former=self._former, stayed=stayed)
        )
        (kinds,) = self._session.sql(_KINDS, stayed=stayed).toArrow().to_pylist()
        self._stayed, self._changing = stayed, changing
        return DigestsLooked(rows, **kinds, changing=changing.count())

    def go_on(self, *, settled: bool) -> None:
        """The next reading is about what changes; unless it is ``settled``, what stayed, too."""
        assert self._changing is not None, "nothing was read"
        left = self._changing
        if not settled and self._stayed is not None:
            # As RDDs: both frames are of the same reading, and Spark 4.3 fails to give one of them
            # other attributes for a UNION.
            rows = left.rdd.union(self._stayed.rdd)
            left = self._keep(self._session.createDataFrame(rows, left.schema, verifySchema=False))
        self._former = left

    def keys(self) -> tuple[bytes, ...]:
        """The keys of the rows that may be on their way; the target must have a key."""
        assert self._changing is not None, "nothing was read"
        rows = self._session.sql(_KEYS, changing=self._changing).toArrow().to_pylist()
        return tuple(row["key"] for row in rows)

    def differences(self) -> Iterator[RowDifference]:
        """The rows that stayed as they were, by their keys."""
        assert self._stayed is not None, "nothing was looked at twice"
        condition = "TRUE"
        while True:
            query = (
                f"SELECT * FROM {{stayed}} WHERE {condition} ORDER BY key, digest LIMIT {PAGE_ROWS}"
            )
            page = self._session.sql(query, stayed=self._stayed).toArrow().to_pylist()
            whole = page
            if len(page) == PAGE_ROWS and page[0]["key"] != page[-1]["key"]:
                # The last key may have more rows on the next page.
                whole = [row for row in page if row["key"] != page[-1]["key"]]
            groups: dict[bytes, RowGroup] = {}
            seen = {row["key"]: row["there"] for row in whole}
            for row in whole:
                group = groups.setdefault(row["key"], RowGroup())
                if row["net"] < 0:
                    group.on_target += [(row["normal"], row["line"])] * -row["net"]
                else:
                    shard = (row["normal"], row["line"], row["read"] - 1)
                    group.in_shards += [shard] * row["net"]
            for key, group in groups.items():
                for difference in differences_of(self._comparison, key, group):
                    yield replace(difference, seen=seen[key])
            if len(page) < PAGE_ROWS:
                return
            condition = f"key > X'{whole[-1]['key'].hex()}'"

    def _keep(self, frame: DataFrame) -> DataFrame:
        # Not only cached: what its tasks are told in confidence is theirs for this block only, so
        # it can't be computed once more. The blocks go with the frame.
        return frame.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)

    def _read(self) -> tuple[tuple[int, ...], DataFrame]:
        """How many rows each table has, and what differs."""
        release_slots(self._spark)
        tables = 1 + len(self._comparison.shards)
        rows = self._spark.parallelize(range(tables), tables).flatMap(_digests)
        frame = self._session.createDataFrame(rows, _ROWS, verifySchema=False)
        with sealed(self._spark, (self._comparison, self._servers)):
            summed = self._keep(self._session.sql(_SUMMED, rows=frame))
        counts = [0] * tables
        for row in self._session.sql(_COUNTS, summed=summed).toArrow().to_pylist():
            if row["failure"]:
                raise RowsUnreadError(row["failure"])
            counts[row["read"]] = row["net"]
        return tuple(counts), self._keep(self._session.sql(_ALL, summed=summed))


def _digests(number: int) -> Iterator[tuple[bytes, bytes, int, int, bytes, bytes, str | None]]:
    comparison, servers = unsealed()
    table = (comparison.target, *comparison.shards)[number]
    net = -1 if number == 0 else 1
    count = 0
    with contextlib.closing(Sessions(servers)) as sessions:
        try:
            for block, rows in sessions.to(table.source).blocks(rows_query(table, None, None)):
                count += rows
                for line in bytes(block).split(b"\n")[:rows]:
                    written = table.written(line)
                    normal = comparison.normal(written)
                    digest = blake2b(normal, digest_size=16).digest()
                    key = comparison.key_of(normal) if comparison.key else digest
                    yield digest, key, net, number, normal, written, None
        except MySQLError as error:
            yield b"", b"", 0, number, b"", b"", f"{table}: {error_text(error)}"
    # No row has an empty digest: this one tells how many there are.
    yield b"", b"", count, number, b"", b"", None
