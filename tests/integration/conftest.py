"""What integration tests share: a Spark session, since starting one takes seconds, and merges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkContext

from replicator.sandbox.server import DatabaseServer
from tests.support.merging import Merging


@pytest.fixture
def merging_from(
    spark: SparkContext, target_server: DatabaseServer, database_name: str, tmp_path: Path
) -> Callable[..., Merging]:
    """Makes a merge of the sources given, ``a``, ``b`` …"""

    def make(*servers: DatabaseServer) -> Merging:
        sources = dict(zip("abc", servers, strict=False))
        return Merging(spark, tmp_path, sources, target_server, database_name)

    return make


@pytest.fixture
def merging(merging_from: Callable[..., Merging], source: DatabaseServer) -> Merging:
    """A merge of one source, of each kind in turn."""
    return merging_from(source)
