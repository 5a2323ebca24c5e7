"""Removing a task, and starting it, in orders that a person may try: no row is missing."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import pytest

from actors.task.operator import removal
from config.loading import load_task
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.copying import copy_task
from tests.support.tasks.processes import PATIENCE, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

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
