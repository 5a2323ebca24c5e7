"""A Spark application of a process of its own: how it starts, and what is said when it ends."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

STOPPED = """
from replicator.pipeline import cluster
from replicator.pipeline.session import close_spark, spark_context
spark = spark_context("local[1]", {cluster.PATIENCE_SETTING: "60s"}, "test")
spark._jsc.sc().stop()
try:
    cluster.examine_executors(spark)
except cluster.ClusterError as error:
    print(error, error.ways_out[0], error.lasting, sep="|")
try:
    spark.parallelize([1]).count()
except Exception as error:
    print(cluster.turned_away(error))
close_spark(spark)
"""


def python(code: str, **environment: str) -> list[str]:
    """The lines that a Python process prints, its log among them."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.slow
def test_an_application_that_was_turned_away_late_is_told_like_one_that_was_at_once() -> None:
    *_, examined, at_a_job = python(STOPPED)
    message, way, lasting = examined.split("|")
    assert message == at_a_job
    assert "not taken the application" in message
    assert "spark.authenticate.secret" in way
    assert lasting == "False"
