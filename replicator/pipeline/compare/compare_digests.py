"""Compares tables that no key divides into ranges: as a whole, by the digests of their rows.

Spark sorts large tables on disk, and the differing rows stay there: memory does not grow with the
tables, nor with their differences. A row that differs may only not be applied yet, so the tables
are read again. If a row differs as at the previous read, and the shards have it as often as then,
this counts as a *mismatch* (`replicator.pipeline.compare.doubts`); any other result resets its
mismatches.

An event that is not applied yet can also make a wrong target look equal. If the shards were read
once before (`DigestComparer.look_at_shards`), a row is therefore equal only if the target has it as
often as the shards had it at both reads. Otherwise it is in doubt, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pymysql.err import MySQLError
from pyspark import SparkContext, StorageLevel
from pyspark.sql import DataFrame, SparkSession

from replicator.mysql.errors import error_text
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.compare.compare_rows import CompareServers, Sessions
from replicator.pipeline.compare.digest_sums import (
    RowsUnreadError,
    row_digest,
    rows_of,
    tables_by_task,
)
from replicator.pipeline.compare.doubts import RowDifference, RowGroup, differences_of
from replicator.pipeline.spark.python_job import sealed, unsealed
from replicator.pipeline.workers.worker_pool import make_room

PAGE_ROWS = 10_000
"""Number of differing rows per page that the driver receives."""

_ROWS = "digest binary, key binary, net int, read int, normal binary, line binary, failure string"
_GROUPED = """
SELECT digest, FIRST(key) AS key, SUM(net) AS net, SUM(IF(net < 0, -net, 0)) AS there,
       MAX(read) AS read, FIRST(normal) AS normal, MIN_BY(line, net) AS line,
       MAX(failure) AS failure
FROM {rows} GROUP BY digest, IF(digest = X'', read, -1)
"""
_SUMMED = _GROUPED + "HAVING SUM(net) <> 0 OR MAX(failure) IS NOT NULL"
_SUMMED_AFTER = f"""
SELECT COALESCE(n.digest, f.digest) AS digest, COALESCE(n.key, f.digest) AS key,
       COALESCE(net, 0) AS net, COALESCE(there, 0) AS there, COALESCE(read, 0) AS read, normal,
       line, n.failure, COALESCE(here, 0) AS former
FROM ({_GROUPED}) n FULL JOIN {{former}} f ON n.digest = f.digest
WHERE n.digest = X'' OR n.failure IS NOT NULL
   OR (:all OR f.digest IS NOT NULL)
      AND (COALESCE(net, 0) <> 0 OR COALESCE(net + there, 0) <> COALESCE(here, 0))
"""
_OF_SHARDS = """
SELECT digest, SUM(net) AS here, MAX(failure) AS failure FROM {rows}
WHERE digest <> X'' OR failure IS NOT NULL GROUP BY digest
"""
_COUNTS = "SELECT net, read FROM {summed} WHERE digest = X''"
_FAILURES = "SELECT failure FROM {read} WHERE failure IS NOT NULL LIMIT 1"
_HERE = "SELECT digest, net + there AS here FROM {doubted}"
_ALL = "SELECT * FROM {summed} WHERE digest <> X''"
_FIRST = "SELECT *, ABS(net) AS times, 0 AS mismatches FROM {now}"
_FURTHER = """
SELECT n.*, IF(s.stays, LEAST(ABS(n.net), s.times), ABS(n.net)) AS times,
       IF(s.stays, s.mismatches + 1, 0) AS mismatches
FROM {now} n LEFT SEMI JOIN {former} k ON n.key = k.key
LEFT JOIN (SELECT digest, SIGN(net) AS way, net + there AS here, times, mismatches, TRUE AS stays
           FROM {former}) s
ON :counts AND n.digest = s.digest AND SIGN(n.net) = s.way AND n.net + n.there = s.here
"""
_STAYS = ":counts AND net <> 0 AND net + there = former"
_FIRST_AFTER = f"SELECT *, ABS(net) AS times, INT({_STAYS}) AS mismatches FROM {{now}}"
_FURTHER_AFTER = f"""
SELECT digest, key, net, there, read, normal, line, former,
       IF(stays AND same, LEAST(ABS(net), was), ABS(net)) AS times,
       IF(stays, IF(same, mismatches, 0) + 1, 0) AS mismatches
FROM (SELECT n.*, s.mismatches, s.times AS was, SIGN(n.net) = s.way AS same, ({_STAYS}) AS stays
      FROM {{now}} n JOIN (SELECT digest, SIGN(net) AS way, times, mismatches FROM {{former}}) s
      ON n.digest = s.digest) n
"""
_SURE = "SELECT key FROM {doubted} GROUP BY key HAVING MAX(mismatches) >= :mismatches"
_KEYS = "SELECT DISTINCT key FROM {doubted} ORDER BY key"
_DECIDED = """
SELECT COALESCE(SUM(IF(sure, missing - LEAST(missing, extra), 0)), 0) AS missing,
       COALESCE(SUM(IF(sure, extra - LEAST(missing, extra), 0)), 0) AS extra,
       COALESCE(SUM(IF(sure, LEAST(missing, extra), 0)), 0) AS different,
       COALESCE(SUM(IF(sure, 0, GREATEST(missing + extra, 1))), 0) AS left
FROM (SELECT MAX(mismatches) >= :mismatches AS sure, SUM(IF(net > 0, times, 0)) AS missing,
             SUM(IF(net < 0, times, 0)) AS extra
      FROM {doubted} GROUP BY key)
"""


@dataclass(frozen=True, slots=True)
class Decided:
    """The number of rows that differ for certain, by kind; ``left``: number of rows in doubt."""

    missing: int
    extra: int
    different: int
    left: int

    @property
    def some(self) -> bool:
        """Whether any rows differ for certain."""
        return bool(self.missing or self.extra or self.different)


def doubts_of(
    session: SparkSession, now: DataFrame, former: DataFrame | None, *, counts: bool
) -> DataFrame:
    """Return the rows in doubt with their mismatches, among the rows that differ ``now``.

    At the first read, all differing rows are in doubt; later, only rows whose keys were in doubt
    before. ``counts`` as for `DigestComparer.look`.
    """
    if former is None:
        return session.sql(_FIRST, now=now)
    return session.sql(_FURTHER, {"counts": counts}, now=now, former=former)


def doubts_after(
    session: SparkSession, now: DataFrame, former: DataFrame | None, *, counts: bool
) -> DataFrame:
    """Return the rows in doubt with their mismatches, and how often the shards had each before.

    ``now``: as returned by `unequal_rows`. Other arguments as for `doubts_of`.
    """
    if former is None:
        return session.sql(_FIRST_AFTER, {"counts": counts}, now=now)
    return session.sql(_FURTHER_AFTER, {"counts": counts}, now=now, former=former)


def unequal_rows(
    session: SparkSession, rows: DataFrame, former: DataFrame, *, every: bool
) -> DataFrame:
    """Return the rows that the target or the shards have more or less often than the shards had.

    Args:
        rows: the rows of the target and of the shards.
        former: digests, and how often the shards had each of them before.
        every: whether to include rows that the shards did not have.
    """
    return session.sql(_SUMMED_AFTER, {"all": every}, rows=rows, former=former)


def sure_keys(session: SparkSession, doubted: DataFrame, mismatches: int) -> DataFrame:
    """Return the keys that have a row with at least this many mismatches."""
    return session.sql(_SURE, {"mismatches": mismatches}, doubted=doubted)


class DigestComparer:
    """Reads a target and its shards repeatedly. All methods block, and raise Spark's errors."""

    def __init__(
        self, spark: SparkContext, comparison: ComparisonPlan, servers: CompareServers
    ) -> None:
        self._spark = spark
        self._session = SparkSession(spark)
        self._comparison = comparison
        self._servers = servers
        self._of_shards: DataFrame | None = None
        self._doubted: DataFrame | None = None
        self._sure: DataFrame | None = None

    def look_at_shards(self, *, tasks: int) -> None:
        """Read the shards, ``tasks`` at once, before the first read of all tables.

        The target must have no key. Raises RowsUnreadError.
        """
        shards = tables_by_task(len(self._comparison.shards), tasks)[1:]
        rows = self._rows(shards, tasks)
        with sealed(self._spark, (self._comparison, self._servers)):
            self._of_shards = self._keep(self._session.sql(_OF_SHARDS, rows=rows))
        self._raise_failure(self._of_shards)

    def look(self, *, counts: bool, tasks: int) -> tuple[int, ...]:
        """Read all tables, ``tasks`` at once; return the rows of the target and of each shard.

        Raises RowsUnreadError.

        ``counts``: whether the target has all rows that the sources had at the previous read. If
        so, a row that differs as it did then has one more mismatch. Rows that did not differ then
        are left out.
        """
        rows, now = self._read(tasks)
        doubts = doubts_of if self._of_shards is None else doubts_after
        self._doubted = self._keep(doubts(self._session, now, self._doubted, counts=counts))
        return rows

    def decide(self, mismatches: int) -> Decided:
        """Decide that the rows of keys with at least this many mismatches differ.

        Their doubt ends.
        """
        assert self._doubted is not None, "nothing was read"
        doubted = self._doubted
        found = self._session.sql(_DECIDED, {"mismatches": mismatches}, doubted=doubted)
        decided = Decided(**found.toArrow().to_pylist()[0])
        if decided.some:
            keys = sure_keys(self._session, doubted, mismatches)
            self._sure = self._keep(doubted.join(keys, "key", "left_semi"))
            self._doubted = self._keep(doubted.join(keys, "key", "left_anti"))
        return decided

    def keys(self) -> tuple[bytes, ...]:
        """Return the keys of the rows in doubt; the target must have a key."""
        assert self._doubted is not None, "nothing was read"
        rows = self._session.sql(_KEYS, doubted=self._doubted).toArrow().to_pylist()
        return tuple(row["key"] for row in rows)

    def differences(self) -> Iterator[RowDifference]:
        """Yield the rows of the last decision that differ, by their keys."""
        assert self._sure is not None, "nothing was decided"
        condition = "TRUE"
        while True:
            query = (
                f"SELECT * FROM {{sure}} WHERE {condition} ORDER BY key, digest LIMIT {PAGE_ROWS}"
            )
            page = self._session.sql(query, sure=self._sure).toArrow().to_pylist()
            whole = page
            if len(page) == PAGE_ROWS and page[0]["key"] != page[-1]["key"]:
                # The last key may have more rows on the next page.
                whole = [row for row in page if row["key"] != page[-1]["key"]]
            groups: dict[bytes, RowGroup] = {}
            seen = {row["key"]: row["there"] for row in whole}
            for row in whole:
                group = groups.setdefault(row["key"], RowGroup())
                if row["net"] < 0:
                    group.on_target += [(row["normal"], row["line"])] * row["times"]
                else:
                    shard = (row["normal"], row["line"], row["read"] - 1)
                    group.in_shards += [shard] * row["times"]
            for key, group in groups.items():
                for difference in differences_of(self._comparison, key, group):
                    yield replace(difference, seen=seen[key])
            if len(page) < PAGE_ROWS:
                return
            condition = f"key > X'{whole[-1]['key'].hex()}'"

    def _keep(self, frame: DataFrame) -> DataFrame:
        # A cached frame would not suffice. The secret of its tasks is valid only for this block, so
        # the frame can't be computed again. The blocks are dropped with the frame.
        return frame.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)

    def _read(self, tasks: int) -> tuple[tuple[int, ...], DataFrame]:
        """Return the number of rows of each table, and the differences."""
        rows = self._rows(tables_by_task(len(self._comparison.shards), tasks), tasks)
        with sealed(self._spark, (self._comparison, self._servers)):
            summed = self._keep(self._summed(rows))
        self._raise_failure(summed)
        counts = [0] * (1 + len(self._comparison.shards))
        for row in self._session.sql(_COUNTS, summed=summed).toArrow().to_pylist():
            counts[row["read"]] = row["net"]
        return tuple(counts), self._keep(self._session.sql(_ALL, summed=summed))

    def _rows(self, numbers: list[list[int]], tasks: int) -> DataFrame:
        make_room(self._spark)
        read = self._spark.parallelize(numbers, min(tasks, len(numbers)))
        rows = read.flatMap(lambda some: some).flatMap(_digests)
        return self._session.createDataFrame(rows, _ROWS, verifySchema=False)

    def _summed(self, rows: DataFrame) -> DataFrame:
        if self._of_shards is None:
            return self._session.sql(_SUMMED, rows=rows)
        former = self._of_shards
        if self._doubted is not None:
            former = self._session.sql(_HERE, doubted=self._doubted)
        return unequal_rows(self._session, rows, former, every=self._doubted is None)

    def _raise_failure(self, read: DataFrame) -> None:
        for row in self._session.sql(_FAILURES, read=read).toArrow().to_pylist():
            raise RowsUnreadError(row["failure"])


def _digests(number: int) -> Iterator[tuple[bytes, bytes, int, int, bytes, bytes, str | None]]:
    comparison, servers = unsealed()
    net = -1 if number == 0 else 1
    count = 0
    with contextlib.closing(Sessions(servers)) as sessions:
        try:
            for written in rows_of(comparison, sessions, number):
                normal = comparison.normal(written)
                digest = row_digest(normal)
                key = comparison.key_of(normal) if comparison.key else digest
                count += 1
                yield digest, key, net, number, normal, written, None
        except MySQLError as error:
            table = (comparison.target, *comparison.shards)[number]
            yield b"", b"", 0, number, b"", b"", f"{table}: {error_text(error)}"
    # No row has an empty digest, so this line has the number of rows.
    yield b"", b"", count, number, b"", b"", None
