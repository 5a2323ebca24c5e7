"""Removing a task, and starting it, in orders that a person may try: no row is missing."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from actors.task.operator import removal
from config.loading import load_task
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.copying import copy_task
from tests.support.tasks.processes import PATIENCE, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import start_of, write_task

pytestmark = pytest.mark.slow


def meta_tables(shards: Shards) -> list[str]:
    rows = shards.target.execute(
        "SELECT TABLE_NAME FROM information_schema.TABLES"
        f" WHERE TABLE_SCHEMA = '{shards.database}_meta'"
    )
    return [str(name) for (name,) in rows]


@pytest.fixture
def shards(
    mariadb_source: DatabaseServer, target_server: DatabaseServer, database_name: str
) -> Shards:
    made = Shards([mariadb_source], target_server, database_name)
    made.change(rows=60)
    return made


def empty_targets(shards: Shards) -> None:
    shards.target.execute("TRUNCATE TABLE t", "TRUNCATE TABLE bag", database=shards.database)


def test_a_task_is_removed_only_where_nobody_runs_it(shards: Shards, tmp_path: Path) -> None:
    name = shards.database
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    file = write_task(tmp_path, copy_task(shards))
    # A task of a name that begins like this one's, and lacks nothing.
    shards.target.execute(
        f"CREATE DATABASE IF NOT EXISTS {name}_meta",
        f"CREATE TABLE {name}_meta.{name}_2_lease (id INT)",
    )
    with task_process(file, here) as task:
        task.until_state(name, "running")
        task.until_applied(name, shards.sources)
        refused = task.cli("remove", str(file), "--yes")
        assert (refused.returncode, "already runs" in refused.stderr) == (1, True), refused
        with task_process(file, there) as elsewhere:
            assert elsewhere.process.wait(PATIENCE) == 1
            refused = elsewhere.cli("remove", str(file), "--yes")
            assert (refused.returncode, "is run by" in refused.stderr) == (1, True), refused
        shards.change(rows=60)
        task.until_applied(name, shards.sources)
        os.kill(task.process.pid, signal.SIGKILL)
        task.process.wait()
        unasked = task.cli("remove", str(file))
        assert unasked.returncode == 2
        assert "  a: " in unasked.stdout
        assert f"{name}_checkpoint" in meta_tables(shards)
        removed = task.cli("remove", str(file), "--yes")
        assert removed.returncode == 0, removed
        assert f"`{name}`.`t`" in removed.stdout
        assert meta_tables(shards) == [f"{name}_2_lease"]
        shards.assert_equal()
        again = task.cli("remove", str(file), "--yes")
        assert (again.returncode, "nothing to remove" in again.stdout) == (0, True), again
    with task_process(file, here, "--on-error", "exit") as task:
        # The rows are still there: nothing is lost or doubled, and it says so.
        assert task.process.wait(PATIENCE) == 1
        assert "copy.target-has-rows" in {event["event"] for event in task.events()}
    assert task.cli("remove", str(file), "--yes").returncode == 0
    empty_targets(shards)
    with task_process(file, here) as task:
        task.until_state(name, "running")
        task.until_applied(name, shards.sources)
        shards.assert_equal()


@pytest.mark.remedy("task.removed", "run")
def test_a_start_waits_for_a_removal_and_begins_anew(
    shards: Shards, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long the other one takes to start.
    monkeypatch.setattr(removal, "LOCK_SECONDS", int(PATIENCE))
    name = shards.database
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    file = write_task(tmp_path, copy_task(shards))
    with task_process(file, here) as task:
        task.until_state(name, "running")
        task.until_applied(name, shards.sources)
        assert task.cli("stop", name).returncode == 0
    with (
        shards.target.connect(autocommit=False) as connection,
        ThreadPoolExecutor(1) as thread,
        connection.cursor() as cursor,
    ):
        # Keeps the table from being dropped.
        cursor.execute(f"SELECT * FROM {name}_meta.{name}_watermark")
        removing = thread.submit(anyio.run, removal.remove_task, load_task(file))
        while f"{name}_checkpoint" in meta_tables(shards):
            assert not removing.done(), removing.result()
        empty_targets(shards)
        with task_process(file, there) as other:
            other.until_logged("task.lease-waiting")
            connection.rollback()
            removing.result()
            other.until_state(name, "running")
            other.until_applied(name, shards.sources)
            shards.assert_equal()
            # What is removed by hand while it is used is not made anew.
            tables = ", ".join(f"`{name}_meta`.`{table}`" for table in meta_tables(shards))
            shards.target.execute(f"DROP TABLE {tables}")
            shards.change()
            assert other.process.wait(PATIENCE) == 1
            assert "task.removed" in {event["event"] for event in other.events()}
            assert meta_tables(shards) == []
    empty_targets(shards)
    with task_process(file, here) as task:
        task.until_state(name, "running")
        task.until_applied(name, shards.sources)
        shards.assert_equal()


@pytest.mark.parametrize("waits", ["lock", "keys"])
def test_saved_state_that_is_needed_is_kept_by_each_command(
    shards: Shards, tmp_path: Path, waits: str
) -> None:
    name, (source,) = shards.database, shards.servers
    task_file = copy_task(shards) | {"shard-mode": "pessimistic", "task-mode": "all"}
    # Checks would refuse some of these starts before.
    task_file["ignore-checking-items"] = ["all"]
    file = write_task(tmp_path, task_file)
    with task_process(file, tmp_path) as task:
        task.until_state(name, "running")
        task.until_applied(name, shards.sources)
        if waits == "lock":
            source.execute(
                f"ALTER TABLE {name}.t1 ADD w INT",
                f"INSERT INTO {name}.t1 VALUES (-1, 'waits', 1, 5)",
            )
        else:
            tracked = f"{name}_meta.{name}_tracked_key"
            shards.target.execute(
                f"INSERT INTO {tracked} VALUES ('{name}', 't', REPEAT('d', 32), '[]', '1', 1)"
            )
        task.until_applied(name, shards.sources)
        assert task.cli("stop", name).returncode == 0
        task.process.wait(PATIENCE)
    before = meta_tables(shards)
    for mode in ("all", "incremental"):
        # The next start would begin at the present end of the binlog.
        file = write_task(tmp_path, task_file | {"task-mode": mode} | starts(task_file, source))
        refused = task.cli("remove", str(file), "--yes")
        assert (refused.returncode, "is needed" in refused.stderr) == (1, True), refused
        with task_process(file, tmp_path, "--remove-meta", "--on-error", "exit") as again:
            assert again.process.wait(PATIENCE) == 1
            assert "task.state-needed" in {event["event"] for event in again.events()}
    assert sorted(meta_tables(shards)) == sorted(before)
    file = write_task(tmp_path, task_file)
    with task_process(file, tmp_path) as task:
        task.until_state(name, "running")
        if waits == "lock":
            source.execute(f"ALTER TABLE {name}.t2 ADD w INT")
        else:
            shards.target.execute(f"DELETE FROM {tracked}")
        task.until(lambda: equal(shards), "equal")
        assert task.cli("stop", name).returncode == 0
        task.process.wait(PATIENCE)
    assert task.cli("remove", str(file), "--yes").returncode == 0
    assert equal(shards)


def starts(values: dict[str, Any], source: DatabaseServer) -> dict[str, Any]:
    """The instances of a task that begins at the present end of the binlog."""
    (instance,) = values["mysql-instances"]
    return {"mysql-instances": [instance | {"meta": start_of(source)}]}


def equal(shards: Shards) -> bool:
    with suppress(AssertionError):
        shards.assert_equal()
        return True
    return False
