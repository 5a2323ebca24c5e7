"""A server takes the task's rights away and gives them back: the task goes on by itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pymysql.err
import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.processes import TaskProcess, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task


class Account:
    """The account of the task at a server, which has all rights at first."""

    def __init__(self, server: DatabaseServer, name: str) -> None:
        self._server = server
        self._name = f"'{name}'@'127.0.0.1'"
        server.execute(f"CREATE USER {self._name}", f"GRANT ALL ON *.* TO {self._name}")

    def take_rights(self) -> None:
        """Take all rights away, and end the sessions, which may know the former ones."""
        self._server.execute(f"REVOKE ALL PRIVILEGES, GRANT OPTION FROM {self._name}")
        user = self._name.split("'")[1]
        for row in self._server.execute("SHOW PROCESSLIST"):
            if row[1] == user:
                with contextlib.suppress(pymysql.err.OperationalError, pymysql.err.InternalError):
                    self._server.execute(f"KILL {int(row[0])}")

    def give_rights(self) -> None:
        self._server.execute(f"GRANT ALL ON *.* TO {self._name}")


@pytest.fixture
def shards(
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    mariadb_target: DatabaseServer,
    database_name: str,
) -> Shards:
    return Shards([mariadb_source, mariadb_source_full], mariadb_target, database_name)


@pytest.fixture(params=["source", "target"])
def account(request: pytest.FixtureRequest, shards: Shards) -> Account:
    server = shards.servers[0] if request.param == "source" else shards.target
    return Account(server, shards.database)


@pytest.fixture
def task(
    request: pytest.FixtureRequest, account: Account, shards: Shards, tmp_path: Path
) -> Iterator[TaskProcess]:
    values = shards.task()
    at_source = request.node.callspec.params["account"] == "source"
    login = values["sources"][0]["from"] if at_source else values["target-database"]
    login["user"] = shards.database
    with task_process(write_task(tmp_path, values), tmp_path) as task:
        task.until_state(shards.database, "running")
        yield task


def test_a_task_goes_on_when_it_has_its_rights_again(
    task: TaskProcess, account: Account, shards: Shards
) -> None:
    shards.change(rows=60)
    task.until_applied(shards.database, shards.sources)
    account.take_rights()
    shards.change(rows=60)

    def stopped() -> bool:
        faults = {e["event"] for e in task.events() if e["level"] == "error"}
        return bool(faults & {"server.refused", "source.unreadable"})

    task.until(stopped, "the fault")
    account.give_rights()

    def goes_on() -> bool:
        status = task.status(shards.database)
        return status is not None and status.state == "running" and not status.blocked

    task.until(goes_on, "going on")
    shards.change(rows=60)
    task.until_applied(shards.database, shards.sources)
    shards.assert_equal()
