"""The Spark job that applies batches: one for many, ended for other jobs, replaced when lost."""

from __future__ import annotations

from pyspark import SparkContext

from tests.support.streams.applying import Merge


def jobs_of(context: SparkContext) -> int:
    """How many Spark jobs there have been."""
    return int(context._jsc.sc().dagScheduler().numTotalJobs())


def test_many_batches_are_applied_by_one_job(merge: Merge) -> None:
    merge.create("id INT PRIMARY KEY, v INT")
    merge.done("INSERT INTO a.t VALUES (0, 0)")
    before = jobs_of(merge.spark)
    merge.done("INSERT INTO a.t VALUES (1, 1)")
    merge.done("INSERT INTO b.t SELECT seq, seq FROM seq_1000_to_80000")
    merge.done("UPDATE a.t SET v = 2")
    assert jobs_of(merge.spark) == before
    assert merge.rows() == merge.shards()
