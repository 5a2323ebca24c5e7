"""`replicator reload`: a running task takes its changed task file, or says why it can't."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.copying import copy_task
from tests.support.tasks.processes import TaskProcess, killed_at, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.also_tidb(slow=True)

SLOW = pytest.mark.slow
MODES = ["pessimistic", pytest.param("optimistic", marks=SLOW), pytest.param("", marks=SLOW)]
USER = "'reloads'@'127.0.0.1'"


def estate(shards: Shards, mode: str) -> dict[str, Any]:
    """A task that follows the first source, without its table `more_1`, which has rows."""
    name = shards.database
    for number, server in enumerate(shards.servers, 1):
        server.execute(
            f"CREATE TABLE {name}.more_1 (id INT PRIMARY KEY, v INT)",
            f"INSERT INTO {name}.more_1 SELECT seq + 1000 * {number}, 1 FROM {name}.seq_1_to_500",
        )
    values = {**copy_task(shards), "shard-mode": mode}
    more = {"db-name": name, "tbl-name": "more_*"}
    values["block-allow-list"] = {"only": {"do-dbs": [name], "ignore-tables": [more]}}
    for instance in values["mysql-instances"]:
        instance["block-allow-list"] = "only"
    return values


def of_first(values: dict[str, Any]) -> dict[str, Any]:
    """The same task with the first source alone."""
    return {
        **values,
        "sources": values["sources"][:1],
        "mysql-instances": values["mysql-instances"][:1],
    }


def with_more(values: dict[str, Any]) -> dict[str, Any]:
    """The same task with the other tables, too."""
    changed = copy.deepcopy(values)
    del changed["block-allow-list"]["only"]["ignore-tables"]
    changed["routes"]["more"] = {
        **changed["routes"]["merge"],
        "table-pattern": "more_*",
        "target-table": "more",
    }
    for instance in changed["mysql-instances"]:
        instance["route-rules"].append("more")
    return changed


def follows(task: TaskProcess, shards: Shards, *servers: DatabaseServer) -> None:
    """Change rows of these servers; the target must get them."""
    name = shards.database
    tables = [(server, f"{name}.t{n}") for server in servers for n in (1, 2)]
    shards.change(rows=60)
    task.until(lambda: rows_of(shards.target, f"{name}.t") == union_of(tables), "equal rows of t")


def has_more(task: TaskProcess, shards: Shards, *servers: DatabaseServer) -> None:
    name = shards.database
    tables = [(server, f"{name}.more_1") for server in servers]
    wanted = union_of(tables)

    def equal() -> bool:
        there = shards.target.execute(f"SHOW TABLES IN {name} LIKE 'more'")
        return bool(there) and rows_of(shards.target, f"{name}.more") == wanted

    task.until(equal, "equal rows of more")


@pytest.mark.parametrize("mode", MODES)
def test_a_running_task_takes_its_changed_file(shards: Shards, tmp_path: Path, mode: str) -> None:
    name, (first, second) = shards.database, shards.servers
    values = estate(shards, mode)
    file = write_task(tmp_path, of_first(values))
    with task_process(file, tmp_path) as task:
        task.until_state(name, "running")
        follows(task, shards, first)

        write_task(tmp_path, {**of_first(values), "rotes": {}})
        refused = task.cli("reload", str(file))
        assert refused.returncode == 1, refused
        assert "did you mean `routes`" in refused.stderr
        follows(task, shards, first)

        write_task(tmp_path, {**of_first(values), "shard-mode": "optimistic" if mode == "" else ""})
        refused = task.cli("reload", str(file))
        assert "a running task can't change shard-mode" in refused.stderr, refused
        assert f"replicator stop {name}" in refused.stderr

        # A table that existed and was not followed.
        write_task(tmp_path, with_more(of_first(values)))
        done = task.cli("reload", str(file))
        assert done.returncode == 0, done
        follows(task, shards, first)
        has_more(task, shards, first)
        first.execute(f"UPDATE {name}.more_1 SET v = 2 WHERE id < 1100")
        has_more(task, shards, first)

        # Another source.
        write_task(tmp_path, with_more(values))
        done = task.cli("reload", str(file))
        assert done.returncode == 0, done
        follows(task, shards, first, second)
        has_more(task, shards, first, second)
        found = [e for e in task.events() if e["event"] == "copy.in-background"]
        assert {f"{name}.t", f"{name}.bag", f"{name}.more"} <= set(found[-1]["targets"])

        # Rows that are on the target would belong elsewhere.
        moved = with_more(values)
        moved["routes"]["more"]["target-table"] = "elsewhere"
        write_task(tmp_path, moved)
        refused = task.cli("reload", str(file))
        assert refused.returncode == 1, refused
        assert "the rules of the task file have changed" in refused.stderr
        assert "replicator run" not in refused.stderr, "the task runs"
        assert "replicator reload TASK.yaml --on-changed-rules keep" in refused.stderr
        follows(task, shards, first, second)
        first.execute(f"UPDATE {name}.more_1 SET v = 3 WHERE id < 1050")
        has_more(task, shards, first, second)
        write_task(tmp_path, with_more(values))
        assert task.cli("reload", str(file)).returncode == 0
        assert task.cli("stop", name).returncode == 0
    events = task.events()
    faults = [e for e in events if e["event"] == "task.rules-changed"]
    assert not faults, "the answer to the command is enough"
    warnings = [e for e in events if e["event"] == "check.warning" and e["check"] == "server_id"]
    assert not warnings, "the connections are the task's own"


def test_a_table_that_can_not_be_copied_is_named_in_the_answer(
    shards: Shards, tmp_path: Path
) -> None:
    name, (first, _) = shards.database, shards.servers
    values = of_first(estate(shards, "pessimistic"))
    given = shards.task()
    values["task-mode"] = "incremental"
    values["mysql-instances"][0]["meta"] = given["mysql-instances"][0]["meta"]
    file = write_task(tmp_path, values)
    with task_process(file, tmp_path) as task:
        task.until_state(name, "running")
        write_task(tmp_path, with_more(values))
        done = task.cli("reload", str(file))
        assert done.returncode == 0, done
        assert f"target {name}.more is blocked" in done.stderr
        assert "schema set" in done.stderr
        assert "--repair-now" in done.stderr
        follows(task, shards, first)
        done = task.cli("reload", str(file))
        assert "is blocked" in done.stderr, "it was tried again"


@SLOW
def test_rules_that_block_a_task_are_answered_without_a_restart(
    shards: Shards, tmp_path: Path
) -> None:
    name, (first, _) = shards.database, shards.servers
    values = with_more(of_first(estate(shards, "pessimistic")))
    file = write_task(tmp_path, values)
    with task_process(file, tmp_path) as task:
        task.until_state(name, "running")
        has_more(task, shards, first)
        assert task.cli("stop", name).returncode == 0
        task.process.wait()
    moved = copy.deepcopy(values)
    moved["routes"]["more"]["target-table"] = "elsewhere"
    write_task(tmp_path, moved)
    with task_process(file, tmp_path) as task:
        task.until_state(name, "paused")
        write_task(tmp_path, values)
        assert task.cli("reload", str(file)).returncode == 0
        follows(task, shards, first)
        write_task(tmp_path, moved)
        done = task.cli("reload", str(file), "--on-changed-rules", "keep")
        assert done.returncode == 0, done
        follows(task, shards, first)


@pytest.mark.remedy("server.refused", "reload")
@SLOW
def test_a_new_password_is_taken(
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    """The source refuses the former one: that blocks the task until the file is read again."""
    shards = Shards([mariadb_source], target_server, database_name)
    mariadb_source.execute(
        f"CREATE OR REPLACE USER {USER} IDENTIFIED BY 'first'",
        f"GRANT SELECT, RELOAD, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {USER}",
    )
    values = copy_task(shards)
    login = {"host": "127.0.0.1", "user": "reloads", "password": "${RELOADED}"}
    values["sources"][0]["from"] |= login
    file = write_task(tmp_path, values)
    with task_process(file, tmp_path, env={"RELOADED": "first"}) as task:
        task.until_state(database_name, "running")
        follows(task, shards, mariadb_source)
        mariadb_source.execute(f"ALTER USER {USER} IDENTIFIED BY 'second'")
        mariadb_source.execute(f"KILL USER {USER}")
        task.until_state(database_name, "paused")
        refused = task.cli("reload", str(file))
        assert refused.returncode == 1, refused
        task.env = {**task.env, "RELOADED": "second"}
        done = task.cli("reload", str(file))
        assert done.returncode == 0, done
        task.until_state(database_name, "running")
        follows(task, shards, mariadb_source)


@pytest.mark.parametrize(
    "point",
    [Failpoint.TABLES_ADDED, pytest.param(Failpoint.COPY_BEGUN_AGAIN, marks=SLOW)],
    ids=str,
)
def test_a_reload_that_is_killed_is_finished_by_the_next_start(
    shards: Shards, tmp_path: Path, point: Failpoint
) -> None:
    name, (first, _) = shards.database, shards.servers
    values = of_first(estate(shards, "pessimistic"))
    file = write_task(tmp_path, values)
    with killed_at(point, file, tmp_path) as task:
        task.until_state(name, "running")
        follows(task, shards, first)
        write_task(tmp_path, with_more(values))
        task.cli("reload", str(file))
    with task_process(file, tmp_path) as task:
        follows(task, shards, first)
        has_more(task, shards, first)
