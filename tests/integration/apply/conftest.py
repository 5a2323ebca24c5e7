"""What tests of applying share: a merge, and both ways of a batch: to one task, or to several."""

from __future__ import annotations

import pytest
from pyspark import SparkContext

from replicator.pipeline.apply import apply as apply_module
from replicator.sandbox.server import DatabaseServer
from tests.support.streams.applying import Merge


@pytest.fixture
def merge(
    spark: SparkContext,
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
) -> Merge:
    return Merge(spark, mariadb_source, target_server, database_name)


@pytest.fixture(params=["one task", "several"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "several":
        monkeypatch.setattr(apply_module, "SMALL_EVENTS", 0)
    return str(request.param)
