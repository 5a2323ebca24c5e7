"""A target that takes nothing just now: the task waits for it, and nobody has to do anything."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.mysql import MySQLServer
from tests.support.servers.tidb import TiDBServer
from tests.support.tasks.processes import TaskProcess, task_process
from tests.support.tasks.tables import rows_of
from tests.support.tasks.task_files import endpoint, task_dict, write_task

pytestmark = pytest.mark.slow

TIDB = ("tidb_restricted_read_only",)
RIGHTS = (
    "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES, RELOAD, PROCESS,"
    " CREATE TEMPORARY TABLES, LOCK TABLES, CREATE VIEW"
)
"""None that lets an account write on a server that is read-only."""


@dataclass(frozen=True)
class Trouble:
    """A server, and the variable that lets it take nothing."""

    server: DatabaseServer
    variable: str

    @property
    def galera(self) -> bool:
        """A node of a Galera cluster that takes no queries, as one that has lost the others."""
        return self.variable.startswith("wsrep")

    @property
    def says(self) -> str:
        """What the server answers."""
        return "WSREP has not yet prepared node" if self.galera else "read-only"

    def begin(self) -> None:
        self.server.execute(f"SET GLOBAL {self.variable} = {'ALL' if self.galera else 'ON'}")

    def end(self) -> None:
        if self.galera:
            self.server.execute(f"SET GLOBAL {self.variable} = NONE")
            return
        # The stronger one has turned on the other.
        other = "tidb_super_read_only" if self.variable in TIDB else "read_only"
        self.server.execute(f"SET GLOBAL {self.variable} = OFF", f"SET GLOBAL {other} = OFF")


KINDS: dict[str, type[DatabaseServer]] = {
    "read_only": MariaDBServer,
    "super_read_only": MySQLServer,
    "tidb_restricted_read_only": TiDBServer,
    "wsrep_reject_queries": MariaDBServer,
}
PROVIDER = Path("/usr/lib/galera/libgalera_smm.so")
GALERA = {
    "wsrep_on": "ON",
    "wsrep_provider": str(PROVIDER),
    "wsrep_cluster_address": "gcomm://",
    "wsrep_node_address": "127.0.0.1",
    "innodb_autoinc_lock_mode": "2",
}


@pytest.fixture(params=KINDS)
def trouble(request: pytest.FixtureRequest, start_server: Callable[..., DatabaseServer]) -> Trouble:
    options = {}
    if request.param == "wsrep_reject_queries":
        if not PROVIDER.exists():
            pytest.skip("this machine has no Galera (galera-4)")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = {**GALERA, "wsrep_provider_options": f"gmcast.listen_addr=tcp://127.0.0.1:{port}"}
    return Trouble(start_server(KINDS[request.param], options), request.param)


RETRIES = ("batch.retry", "copy.retry", "ddl.retry", "task.restart")


def told(task: TaskProcess, says: str) -> int:
    """How often the task has said that something is tried again for this reason."""
    return len(
        [
            entry
            for entry in task.events()
            if entry["event"] in RETRIES and says in str(entry["reason"])
        ]
    )


@pytest.mark.not_on_tidb("it is about other servers")
def test_rows_and_schema_changes_wait_until_the_target_takes_them(
    mariadb_source: DatabaseServer, trouble: Trouble, database_name: str, tmp_path: Path
) -> None:
    db, sources, target = database_name, {"a": mariadb_source}, trouble.server
    target.execute(
        f"CREATE DATABASE {db}",
        f"CREATE TABLE {db}.t (id INT PRIMARY KEY, v LONGTEXT)",
        f"CREATE USER '{db}'@'%' IDENTIFIED BY ''",
        f"GRANT {RIGHTS} ON *.* TO '{db}'@'%'",
    )
    mariadb_source.execute(
        f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t1 (id INT PRIMARY KEY, v LONGTEXT)"
    )
    values = task_dict(db, sources, target, schema=db, target_schema=db)
    values["target-database"] = {**endpoint(target), "user": db, "password": ""}

    path = write_task(tmp_path, values)
    changes = (
        (f"INSERT INTO {db}.t1 (id, v) VALUES (1, REPEAT('b', {1 << 20}))",),
        (
            f"ALTER TABLE {db}.t1 ADD COLUMN c LONGTEXT, ADD INDEX by_v (v(20))",
            f"INSERT INTO {db}.t1 (id, c) VALUES (2, REPEAT('c', {1 << 20}))",
        ),
    )
    with task_process(path, tmp_path) as task:
        task.until_logged("task.running")
        for statements in changes:
            before = told(task, trouble.says)
            trouble.begin()
            mariadb_source.execute(*statements)
            task.until(lambda before=before: told(task, trouble.says) > before, trouble.says)  # type: ignore[misc]
            trouble.end()
            task.until_applied(db, sources)
        assert rows_of(target, f"{db}.t", "*") == rows_of(mariadb_source, f"{db}.t1", "*")
        assert not [e for e in task.events() if e["event"] == "task.paused"]
        answer = task.cli("stop", db)
        assert answer.returncode == 0, answer.stderr


@pytest.mark.not_on_tidb("it is about other servers")
def test_a_copy_waits_until_the_target_takes_its_rows(
    mariadb_source: DatabaseServer, trouble: Trouble, database_name: str, tmp_path: Path
) -> None:
    db, target = database_name, trouble.server
    target.execute(
        f"CREATE USER '{db}'@'%' IDENTIFIED BY ''", f"GRANT {RIGHTS} ON *.* TO '{db}'@'%'"
    )
    mariadb_source.execute(
        f"CREATE DATABASE {db}",
        f"CREATE TABLE {db}.t1 (id INT PRIMARY KEY, v INT)",
        f"INSERT INTO {db}.t1 SELECT seq, seq FROM {db}.seq_1_to_2000",
    )
    values = task_dict(db, {"a": mariadb_source}, target, schema=db, target_schema=db)
    values["target-database"] = {**endpoint(target), "user": db, "password": ""}
    values |= {
        "task-mode": "all",
        "mydumpers": {"small": {"rows": 50, "threads": 1}},
        "copy": {"rows-per-second": 200},
    }
    for instance in values["mysql-instances"]:
        del instance["meta"]
        instance["mydumper-config-name"] = "small"
    with task_process(write_task(tmp_path, values), tmp_path) as task:

        def seen() -> str:
            status = task.status(db)
            copy = status.copy if status else None
            fault = status.error if status else None
            return f"{copy.waiting if copy else ''} {fault or ''}"

        task.until_logged("copy.started")
        trouble.begin()
        task.until(lambda: trouble.says in seen(), trouble.says)
        told = seen()
        assert f"127.0.0.1:{target.port}" in told
        assert "next attempt at" in told
        trouble.end()
        task.until_applied(db, {"a": mariadb_source})
        assert rows_of(target, f"{db}.t", "*") == rows_of(mariadb_source, f"{db}.t1", "*")
        assert not [e for e in task.events() if e["event"] == "task.paused"]
        answer = task.cli("stop", db)
        assert answer.returncode == 0, answer.stderr
