"""What integration tests share: a Spark session, since starting one takes seconds, and merges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from replicator.sandbox.server import BinlogServer, DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.replication import ReplicatedPair
from tests.support.tasks.failover import Estate, FailingOver, estate
from tests.support.tasks.merging import Merging


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


@pytest.fixture
def failing_over(
    start_server: StartServer,
    spark: SparkContext,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> Iterator[FailingOver]:
    """Makes a source that fails over to its replica."""
    with ExitStack() as estates:

        def make(kind: type[BinlogServer], **more: Any) -> Estate:
            pair = ReplicatedPair(start_server, kind, **more)
            return estates.enter_context(
                estate(pair, target_server, database_name, tmp_path, spark)
            )

        yield make
