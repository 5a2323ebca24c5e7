"""Sources with a database of the test's own."""

from __future__ import annotations

import pytest

from replicator.sandbox.server import DatabaseServer


@pytest.fixture(params=["mariadb_source", "mysql56_source"])
def source(request: pytest.FixtureRequest, database_name: str) -> DatabaseServer:
    server: DatabaseServer = request.getfixturevalue(request.param)
    server.execute(f"CREATE DATABASE {database_name}")
    return server


@pytest.fixture
def mariadb(mariadb_source: DatabaseServer, database_name: str) -> DatabaseServer:
    mariadb_source.execute(f"CREATE DATABASE {database_name}")
    return mariadb_source
