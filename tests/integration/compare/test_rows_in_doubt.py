"""Rows that differ at several reads, counted in Spark: which of them are surely wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from replicator.pipeline.compare.compare_digests import (
    doubts_after,
    doubts_of,
    sure_keys,
    unequal_rows,
)
from replicator.pipeline.compare.doubts import MISMATCHES

_READ = "digest binary, key binary, net int, read int, normal binary, line binary, failure string"
_ROWS = "digest string, key string, net bigint, there bigint"

Counts = dict[str, tuple[int, int]]
"""By row, how many of it the target and the shards have."""


def differing(session: SparkSession, rows: Counts) -> DataFrame:
    found = [(row, row, here - there, there) for row, (there, here) in rows.items()]
    return session.createDataFrame([row for row in found if row[2]], _ROWS)


def decided(session: SparkSession, readings: Sequence[Counts], mismatches: int) -> set[str]:
    """The rows that differ after these readings."""
    doubted = None
    for rows in readings:
        doubted = doubts_of(session, differing(session, rows), doubted, counts=True)
        doubted = doubted.localCheckpoint()
    assert doubted is not None
    return {row["key"] for row in sure_keys(session, doubted, mismatches).collect()}


def decided_exactly(
    session: SparkSession, before: dict[str, int], readings: Sequence[Counts]
) -> tuple[set[str], set[str]]:
    """The rows that differ after these readings, and those in doubt; ``before``: of the shards."""
    shards = [(row.encode(), number) for row, number in before.items()]
    former = session.createDataFrame(shards, "digest binary, here bigint")
    doubted = None
    for number, rows in enumerate(readings):
        read = [
            (row.encode(), row.encode(), net, 0, row.encode(), row.encode(), None)
            for row, (there, here) in rows.items()
            for net in [-1] * there + [1] * here
        ]
        now = unequal_rows(
            session,
            session.createDataFrame(read, _READ),
            former,
            every=not number,
        )
        doubted = doubts_after(session, now, doubted, counts=True).localCheckpoint()
        former = session.sql("SELECT digest, net + there AS here FROM {d}", d=doubted)
    assert doubted is not None
    sure = {bytes(row["key"]).decode() for row in sure_keys(session, doubted, 1).collect()}
    return sure, {bytes(row["key"]).decode() for row in doubted.collect()} - sure


def test_a_row_that_comes_meanwhile_hides_no_difference(spark: SparkContext) -> None:
    session = SparkSession(spark)
    before = {"hidden": 1, "gone": 1, "right": 2, "missing": 2, "deleted": 1}
    first = {
        "hidden": (2, 2),
        "right": (2, 2),
        "missing": (1, 2),
        "extra": (1, 0),
        "late": (0, 1),
        "new": (1, 1),
        "deleted": (1, 0),
    }
    found = decided_exactly(session, before, [first])
    assert found == ({"missing", "extra"}, {"hidden", "gone", "late", "new", "deleted"})
    second = {"hidden": (3, 2), "late": (1, 1), "new": (1, 1), "missing": (2, 2), "other": (0, 1)}
    found = decided_exactly(session, before, [first, second])
    assert found == ({"hidden"}, set())


def test_only_what_stays_as_it_is_differs(spark: SparkContext) -> None:
    session = SparkSession(spark)
    still = {"missing": (1, 3), "extra": (2, 0), "equal": (2, 2)}
    now = [
        {**still, "grows": (n, n + 1), "turns": (1 + 2 * (n % 2), 2), "seldom": (1, 1 + n // 2)}
        for n in range(4)
    ]
    assert decided(session, now, 3) == {"missing", "extra"}
    assert decided(session, [*now, {"missing": (2, 3)}], 4) == {"missing"}
    assert not decided(session, [*now, {}, *now], 1)


def test_rows_that_come_and_go_as_fast_as_they_can_are_no_alarm(spark: SparkContext) -> None:
    """A target that is a step behind, and shards that have one of the row half of the time."""
    session, chance = SparkSession(spark), random.Random(7)
    names = [f"row {n}" for n in range(300)]
    readings: list[Counts] = [
        {name: (chance.randrange(2), chance.randrange(2)) for name in names}
        for _ in range(1 + 2 * MISMATCHES)
    ]
    wrong = [set(decided(session, readings[: n + 1], MISMATCHES)) for n in (2, MISMATCHES)]
    assert wrong == [set(), set()]
    # One reading after the other is not enough.
    assert decided(session, readings[:2], 1)
