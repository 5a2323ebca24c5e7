"""The page "Leave sharding behind", step by step: rehearse, switch, verify, go back, retire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.servers.mysql import MySQLServer
from tests.support.servers.tidb import TiDBServer
from tests.support.tasks.processes import PATIENCE, TaskProcess, task_process
from tests.support.tasks.switching import Application, is_writable, make_writable
from tests.support.tasks.task_files import task_dict, write_task

pytestmark = pytest.mark.slow

TABLES = ("t1", "t2")
FIRST = ((1, "t1"), (2, "t2"))


class Estate:
    """Shards ``t1`` and ``t2`` of each source; the target has columns for source and table."""

    def __init__(self, sources: list[DatabaseServer], target: DatabaseServer, name: str) -> None:
        self.sources, self.target, self.name = sources, target, name
        columns = "id BIGINT AUTO_INCREMENT, name VARCHAR(40), n INT"
        target.execute(
            f"CREATE DATABASE {name}",
            f"CREATE TABLE {name}.t ({columns}, src VARCHAR(8), tab VARCHAR(8),"
            " PRIMARY KEY (id, src, tab))",
        )
        for source in sources:
            source.execute(
                f"CREATE DATABASE {name}",
                *(f"CREATE TABLE {name}.{t} ({columns}, PRIMARY KEY (id))" for t in TABLES),
                *(f"INSERT INTO {name}.{t} VALUES ({id}, 'first', 1)" for id, t in FIRST),
            )

    def values(self, *, but: str = "", **more: object) -> dict[str, object]:
        """The task file, with a copy of what is there; ``but``: a source that it lacks."""
        named = {s: server for s, server in zip("ab", self.sources, strict=False) if s != but}
        name = self.name
        values = task_dict(name, named, self.target, schema=name, target_schema=name)
        values["task-mode"] = "all"
        for instance in values["mysql-instances"]:
            instance.pop("meta")
        values["routes"]["merge"] |= {
            "extract-table": {"table-regexp": "(.*)", "target-column": "tab"},
            "extract-source": {"source-regexp": "(.*)", "target-column": "src"},
        }
        return {**values, **more}

    def of_shards(self) -> list[tuple[object, ...]]:
        """The rows of all shards, as the target has them."""
        return sorted(
            (*row, source, table)
            for source, server in zip("ab", self.sources, strict=False)
            for table in TABLES
            for row in server.execute(f"SELECT id, name, n FROM {self.name}.{table}")
        )

    def of_target(self) -> list[tuple[object, ...]]:
        """The rows of the target."""
        query = f"SELECT id, name, n, src, tab FROM {self.name}.t"
        return sorted((*row,) for row in self.target.execute(query))

    def write_on_target(self) -> None:
        """Change the target as the application does after the switch."""
        t = f"{self.name}.t"
        self.target.execute(
            f"INSERT INTO {t} (name, n, src, tab) VALUES ('new', 5, 'a', 't1')",
            f"INSERT INTO {t} (name, n, src, tab) VALUES ('''', 6, 'a', 't2')",
            f"UPDATE {t} SET n = 7 WHERE id = 1 AND src = 'a'",
            f"DELETE FROM {t} WHERE id = 2 AND src = 'a' AND tab = 't2'",
        )

    def execute_all(self, folder: Path) -> int:
        """Execute the files of the shards; how many there are."""
        for server in self.sources:
            if isinstance(server, MySQLServer):
                server.execute("SET GLOBAL super_read_only = OFF")
        files = sorted(folder.glob("?.*.sql"))
        for file in files:
            text = file.read_bytes().decode("ascii")
            server = self.sources["ab".index(file.name[0])]
            with server.connect() as connection:
                for statement in filter(str.strip, text.split(";\n")):
                    connection.cursor().execute(statement)
                connection.commit()
        return len(files)


MARIADB, MYSQL = ("mariadb_source", "mariadb_source_full"), ("mysql_source", "mysql_target")


@pytest.fixture(
    params=[
        (MARIADB, "mariadb_target"),
        (MARIADB, "tidb_target"),
        (MYSQL, "mariadb_target"),
        (MYSQL, "tidb_target"),
    ],
    ids=lambda pair: f"{pair[0][0]}-{pair[1]}",
)
def estate(request: pytest.FixtureRequest, database_name: str) -> Iterator[Estate]:
    sources, target = request.param
    servers: list[DatabaseServer] = [request.getfixturevalue(name) for name in sources]
    yield Estate(servers, request.getfixturevalue(target), database_name)
    make_writable(servers)


def succeed(task: TaskProcess, *command: str) -> str:
    done = task.cli(*command, patience=400)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_step_of_the_page(estate: Estate, tmp_path: Path) -> None:
    name, file = estate.name, write_task(tmp_path, estate.values())
    application = Application(estate.sources, name, TABLES, rate=500)
    with task_process(file, tmp_path) as task:
        task.until_state(name, "running")
        with application.writing():
            succeed(task, "switch", str(file), "--dry-run")
            assert all(map(is_writable, estate.sources))
            answer = json.loads(succeed(task, "switch", str(file), "--freeze", "--json"))
        assert task.process.wait(PATIENCE) == 0
        assert application.refused
        assert answer["frozen_seconds"] > 0
        assert estate.of_target() == estate.of_shards()
        certificate = json.loads((tmp_path / f"{name}.certificate.json").read_text())
        [target] = certificate["targets"]
        assert sum(s["rows"] for s in target["shards"]) <= len(estate.of_target())

        estate.write_on_target()
        assert estate.of_target() != estate.of_shards()
        folder = tmp_path / "back"
        back = task.cli("changes", str(file), "--since-switch", "--output", str(folder))
        if isinstance(estate.target, TiDBServer):
            assert back.returncode == 1
            assert "TiDB writes no binlog" in back.stderr
            return
        assert back.returncode == 0, back.stdout + back.stderr
        assert estate.execute_all(folder) == 2
        assert estate.of_shards() == estate.of_target()

    # The binlogs of the shards have the changes that the target has already.
    syncers = {"sync": {"safe-mode": True}}
    file = write_task(tmp_path, estate.values(syncers=syncers))
    with task_process(file, tmp_path, "--reopen") as task:
        task.until_state(name, "running")
        succeed(task, "switch", str(file), "--abort")
        assert all(map(is_writable, estate.sources))
        with application.writing():
            succeed(task, "wait", name)
        succeed(task, "wait", name)
        assert estate.of_target() == estate.of_shards()
        told = succeed(task, "retire", name, "--source", "b")
        assert f"task {name} no longer follows b; the target keeps the rows" in told
        listed = json.loads(succeed(task, "shards", name, "--json"))
        assert {(one["source"], one["retired"] is not None) for one in listed} == {
            ("a", False),
            ("b", True),
        }
        kept = [row for row in estate.of_target() if row[3] == "b"]
        estate.sources[1].execute(f"DELETE FROM {name}.t1", f"DROP TABLE {name}.t2")
        estate.sources[0].execute(f"INSERT INTO {name}.t1 VALUES (77, 'later', 1)")
        succeed(task, "wait", name)
        assert [row for row in estate.of_target() if row[3] == "b"] == kept
        assert (77, "later", 1, "a", "t1") in estate.of_target()
        succeed(task, "compare", str(file))

        again = task.cli("retire", name, "--source", "a")
        assert again.returncode == 1
        assert "no shard would be left: stop the task instead" in again.stderr
        write_task(tmp_path, estate.values(but="b"))
        succeed(task, "reload", str(file))
        task.until_state(name, "running")
        estate.sources[0].execute(f"INSERT INTO {name}.t1 VALUES (78, 'last', 1)")
        succeed(task, "wait", name)
        assert (78, "last", 1, "a", "t1") in estate.of_target()
        found = json.loads(succeed(task, "compare", str(file), "--json"))
        assert sum(one["retired"] for one in found["targets"]) == len(kept)
