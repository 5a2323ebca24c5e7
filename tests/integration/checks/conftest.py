"""The servers that checks look at: one of each kind, with users of few privileges."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import started
from tests.support.servers.mysql56 import MySQL56Server


@pytest.fixture(scope="module")
def mariadb() -> Iterator[DatabaseServer]:
    with started(MariaDBServer()) as server:
        yield server


@pytest.fixture(scope="module", params=[MariaDBServer, MySQL56Server])
def upstream(request: pytest.FixtureRequest) -> Iterator[DatabaseServer]:
    with started(request.param()) as server:
        server.execute(
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t1 (id INT PRIMARY KEY, a VARCHAR(10))",
            "CREATE TABLE shop.t2 (id INT PRIMARY KEY, a VARCHAR(10))",
            "GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO 'full'@'127.0.0.1'"
            " IDENTIFIED BY 'secret'",
            "GRANT SELECT ON shop.* TO 'full'@'127.0.0.1'",
            "GRANT SELECT ON shop.* TO 'reader'@'127.0.0.1' IDENTIFIED BY 'secret'",
            "GRANT REPLICATION CLIENT ON *.* TO 'reader'@'127.0.0.1'",
            "GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO 'blind'@'127.0.0.1'"
            " IDENTIFIED BY 'secret'",
            "GRANT INSERT ON shop.t1 TO 'blind'@'127.0.0.1'",
        )
        yield server


@pytest.fixture
def target(mariadb: DatabaseServer) -> Iterator[DatabaseServer]:
    mariadb.execute("CREATE DATABASE merged")
    yield mariadb
    mariadb.execute("DROP DATABASE merged")
