"""What several of the crash tests begin with."""

from __future__ import annotations

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.acceptance.crashes.test_shard_ddl import Walk


@pytest.fixture(params=["one source", "two sources"])
def walk(
    request: pytest.FixtureRequest,
    mariadb_source: DatabaseServer,
    mysql56_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
) -> Walk:
    """Two shards, of one source or of two, that change their structure in turn."""
    one = request.param == "one source"
    second = ("a", mariadb_source) if one else ("b", mysql56_source)
    return Walk([("a", mariadb_source, "t1"), (*second, "t2")], target_server, database_name)
