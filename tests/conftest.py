"""Private database servers for tests: started when a test first asks, gone after the last one."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from replicator.sandbox.errors import ServerUnavailableError
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.mysql56 import GTID_OPTIONS, MySQL56Server
from replicator.sandbox.server import DatabaseServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

StartServer = Callable[..., DatabaseServer]


def started(server: DatabaseServer) -> DatabaseServer:
    """Start it; where its program can't be had the test is skipped, but in CI it fails."""
    try:
        server.start()
    except ServerUnavailableError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    return server


@pytest.fixture(scope="session")
def mariadb_source() -> Iterator[DatabaseServer]:
    """A MariaDB whose binlog has no column names, signedness or labels."""
    with started(MariaDBServer({"binlog_row_metadata": "NO_LOG"})) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_source_full() -> Iterator[DatabaseServer]:
    """A MariaDB whose binlog has full row metadata."""
    with started(MariaDBServer({"binlog_row_metadata": "FULL"})) as server:
        yield server


@pytest.fixture(scope="session")
def mysql56_source() -> Iterator[DatabaseServer]:
    """A MySQL 5.6 with GTIDs."""
    with started(MySQL56Server(GTID_OPTIONS)) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_target() -> Iterator[DatabaseServer]:
    """A MariaDB to write to."""
    with started(MariaDBServer()) as server:
        yield server


@pytest.fixture
def start_server() -> Iterator[StartServer]:
    """Starts further servers, ``start_server(MariaDBServer, {...})``, for one test."""
    with ExitStack() as servers:

        def start(
            kind: type[DatabaseServer], options: Mapping[str, str | None] | None = None
        ) -> DatabaseServer:
            return servers.enter_context(started(kind(options)))

        yield start


@pytest.fixture
def database_name() -> str:
    """A name that no other test uses, since tests share servers; nothing has that name yet."""
    return f"t_{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A Spark session for all tests that run a task in this process: starting one takes seconds."""
    from replicator.pipeline.session import spark_session, warm_up

    session = spark_session("local[2]", {}, "tests")
    warm_up(session)
    yield session
    session.stop()
