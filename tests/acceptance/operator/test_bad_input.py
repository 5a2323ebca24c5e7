"""What goes wrong before a task runs: clear errors, exit codes, no traceback."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import cli
from actors.task.resources.spark import TaskSpark
from replicator.pipeline.spark import direct_launch
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.tasks.checking import purge
from tests.support.tasks.shards import KEYED
from tests.support.tasks.task_files import start_of, task_dict, write_task

WRONG_FILES = {
    "not yaml": ("name: x\n\tbroken", ":2"),
    "no mapping": ("- a\n- b\n", "section"),
    "empty": ("", "empty"),
    "unknown key": ("task-mood: all", "task-mode"),
    "missing key": ("name: {}", "name"),
    "wrong value": ("task-mode: sometimes", "incremental"),
    "wrong type": ("mysql-instances: 7", "mysql-instances"),
    "not supported yet": (
        "task-mode: all\nmydumpers: {global: {where: id}}",
        "not supported",
    ),
    "no such route": ("routes: {}", "merge"),
    "not used": ("syncers: {unused: {}}", "sync"),
}
"""By kind: what the file holds instead, or, for one key, what is put over a good file; a word of
the error."""


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # Not tmp_path: the path of a socket in it must be short.
    with tempfile.TemporaryDirectory(prefix="rt-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        monkeypatch.setenv("COLUMNS", "250")
        yield


@pytest.fixture(autouse=True)
def no_spark_before_the_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    # A process has one Spark. What is refused here would end that of the tests which follow.
    monkeypatch.setattr(TaskSpark, "begin", lambda _: None)
    monkeypatch.setattr(direct_launch, "begin_java", lambda *_: None)


def run(path: Path, *options: str) -> tuple[int, str]:
    """`replicator run` in this process: its exit code, and what it wrote."""
    result = CliRunner().invoke(cli.app, ["run", str(path), *options])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "Traceback" not in result.output
    return result.exit_code, result.output


def good_values() -> dict[str, Any]:
    server = {"host": "127.0.0.1", "port": 1, "user": "root"}
    return {
        "name": "orders",
        "task-mode": "incremental",
        "target-database": server,
        "sources": [{"source-id": "a", "from": server}],
        "mysql-instances": [
            {
                "source-id": "a",
                "meta": {"binlog-name": "bin.000001", "binlog-pos": 4},
                "route-rules": ["merge"],
            }
        ],
        "routes": {"merge": {"schema-pattern": "s*", "target-schema": "d"}},
    }


@pytest.mark.parametrize("kind", list(WRONG_FILES))
def test_a_wrong_task_file(kind: str, runtime: None, tmp_path: Path) -> None:
    text, word = WRONG_FILES[kind]
    path = tmp_path / "orders.yaml"
    path.write_text(text)
    if ": " in text and "\n" not in text:
        path.write_text(yaml.safe_dump({**good_values(), **yaml.safe_load(text)}))
    code, output = run(path)
    assert code == 2
    assert word in output
    assert "orders.yaml" in output


def test_a_task_file_that_is_not_there(runtime: None, tmp_path: Path) -> None:
    code, output = run(tmp_path / "none.yaml")
    assert code == 2
    assert "none.yaml" in output


class Estate:
    """One shard and its target, on servers that tests share."""

    def __init__(self, source: DatabaseServer, target: DatabaseServer, name: str) -> None:
        self.source, self.target, self.name = source, target, name
        for server, table in ((source, "t1"), (target, "t")):
            server.execute(f"CREATE DATABASE {name}", f"CREATE TABLE {name}.{table} {KEYED}")
        self.values = task_dict(
            name, {"a": source}, target, schema=name, target_schema=name, table_pattern="t1"
        )

    def refused(self, folder: Path) -> str:
        """Run the task, which must be refused before it writes anything; the output."""
        code, output = run(write_task(folder, self.values))
        assert code == 1, output
        assert "can't run" in output
        found = self.target.execute(f"SHOW DATABASES LIKE '{self.name}_meta'")
        assert found == ()
        return " ".join(output.split())

    def log_in(self, place: dict[str, Any], server: DatabaseServer, *grants: str) -> str:
        """Let the task log in as a new user that has these privileges; the user's name."""
        user = f"u{self.name[2:14]}"
        server.execute(
            f"CREATE USER {user}@'%' IDENTIFIED BY 'right'",
            *(f"GRANT {grant} TO {user}@'%'" for grant in grants),
        )
        place |= {"user": user, "password": "right"}
        return user

    @property
    def source_login(self) -> dict[str, Any]:
        login: dict[str, Any] = self.values["sources"][0]["from"]
        return login

    @property
    def target_login(self) -> dict[str, Any]:
        login: dict[str, Any] = self.values["target-database"]
        return login


@pytest.fixture
def estate(
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    runtime: None,
) -> Estate:
    return Estate(mariadb_source, target_server, database_name)


def test_a_wrong_password_at_the_source(estate: Estate, tmp_path: Path) -> None:
    estate.log_in(estate.source_login, estate.source, "ALL ON *.*")
    estate.source_login["password"] = "no-such-secret"
    output = estate.refused(tmp_path)
    assert "refuses the login" in output
    assert "no-such-secret" not in output


def test_a_wrong_password_at_the_target(estate: Estate, tmp_path: Path) -> None:
    estate.log_in(estate.target_login, estate.target, "ALL ON *.*")
    estate.target_login["password"] = "wrong"
    output = estate.refused(tmp_path)
    assert "refuses the login" in output


def test_no_privilege_to_read_the_binlog(estate: Estate, tmp_path: Path) -> None:
    user = estate.log_in(estate.source_login, estate.source, f"SELECT ON {estate.name}.*")
    output = estate.refused(tmp_path)
    assert "GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.*" in output
    assert user in output


def test_no_privilege_to_read_a_table(estate: Estate, tmp_path: Path) -> None:
    grants = ("REPLICATION SLAVE, REPLICATION CLIENT, SHOW DATABASES ON *.*",)
    insert = f"INSERT ON {estate.name}.*"
    estate.log_in(estate.source_login, estate.source, *grants, insert)
    assert "GRANT SELECT" in estate.refused(tmp_path)


def test_no_privilege_to_write(estate: Estate, tmp_path: Path) -> None:
    user = estate.log_in(estate.target_login, estate.target, f"SELECT ON {estate.name}.*")
    output = estate.refused(tmp_path)
    assert "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE" in output
    assert user in output


@pytest.mark.parametrize(
    ("variable", "value"),
    [("binlog_format", "STATEMENT"), ("binlog_row_image", "MINIMAL")],
)
def test_a_binlog_that_lacks_rows(
    variable: str,
    value: str,
    start_server: StartServer,
    target_server: DatabaseServer,
    database_name: str,
    runtime: None,
    tmp_path: Path,
) -> None:
    source = start_server(MariaDBServer, {variable: value})
    output = Estate(source, target_server, database_name).refused(tmp_path)
    assert variable in output
    assert value in output
    assert f"SET GLOBAL {variable}" in output


def test_a_position_that_was_purged(
    start_server: StartServer,
    target_server: DatabaseServer,
    database_name: str,
    runtime: None,
    tmp_path: Path,
) -> None:
    source = start_server(MariaDBServer)
    estate = Estate(source, target_server, database_name)
    source.execute("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    now = purge(source)
    output = estate.refused(tmp_path)
    assert "binlog.000001" in output
    assert now in output


def test_a_source_that_is_away_from_a_new_task(estate: Estate, tmp_path: Path) -> None:
    estate.source_login["port"] = 1
    assert "nothing listens at" in estate.refused(tmp_path)


@pytest.mark.slow
def test_no_start_position(estate: Estate, tmp_path: Path) -> None:
    del estate.values["mysql-instances"][0]["meta"]
    code, output = run(write_task(tmp_path, estate.values), "--on-error", "exit")
    assert code == 1
    assert "source.no-start" in output
    assert f"binlog-name: {start_of(estate.source)['binlog-name']}" in output
