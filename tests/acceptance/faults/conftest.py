"""What tests of faults share: a task that follows one server of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import started
from tests.support.tasks.long_task import LongTask
from tests.support.tasks.shards import Shards


@pytest.fixture(scope="module")
def own_source() -> Iterator[DatabaseServer]:
    """A source that no other module writes to, so that little of its binlog is to be read."""
    with started(MariaDBServer()) as server:
        yield server


@pytest.fixture(params=["mariadb_target"])
def one_server(
    request: pytest.FixtureRequest,
    own_source: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> Iterator[LongTask]:
    """A task from one server to the target whose fixture is the parameter; not started yet."""
    target: DatabaseServer = request.getfixturevalue(request.param)
    found = LongTask(Shards([own_source], target, database_name), tmp_path)
    yield found
    found.end()
