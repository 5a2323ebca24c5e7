"""A Spark session for all integration tests: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from replicator.pipeline.session import spark_session, warm_up


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = spark_session("local[2]", {}, "tests")
    warm_up(session)
    yield session
    session.stop()
