"""A Spark application of a process of its own: how it starts, and what is said when it ends."""

from __future__ import annotations

import json
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
    print(error, error.remedies[0], error.lasting, sep="|")
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
    assert "not accepted the application" in message
    assert "spark.authenticate.secret" in way
    assert lasting == "False"


COMMANDS = """
import json
from pathlib import Path
from pyspark import SparkContext
from replicator.pipeline.session import close_spark, spark_context
for conf in ({}, {"spark.speculation": "false"}):
    conf |= {"spark.driver.memory": "600m", "spark.sql.secretToken": "hush"}
    spark = spark_context("local[1]", conf, "test")
    command = Path(f"/proc/{SparkContext._gateway.proc.pid}/cmdline").read_text()
    secret = spark._jsc.sc().conf().get("spark.sql.secretToken")
    print(json.dumps([command.split("\\0"), secret, spark.parallelize([1, 2]).sum()]))
    close_spark(spark)
"""

OF_SPARK_SUBMIT_ALONE = {"--add-modules=jdk.incubator.vector", "-Dderby"}


@pytest.mark.slow
def test_java_is_started_like_spark_submit_does_it() -> None:
    told = [json.loads(line) for line in python(COMMANDS) if line.startswith("[[")]
    (direct, *found), (submitted, *found_by_submit) = told
    assert found == found_by_submit == ["hush", 3]
    assert "hush" not in " ".join(direct + submitted)
    main = submitted.index("org.apache.spark.deploy.SparkSubmit")
    missing = {
        option
        for option in submitted[:main]
        # The folder of an application is its own.
        if option not in direct and "replicator-spark-" not in option
    }
    assert {option.partition(".")[0] if "derby" in option else option for option in missing} == (
        OF_SPARK_SUBMIT_ALONE
    )
