"""A source's binlog loses its end while no process of the task runs: what the target has of it is
ahead of the saved position, which still stands in the binlog."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.binlog_ends import end_of
from tests.support.servers.mysql56 import MySQL56Server
from tests.support.tasks.processes import TaskProcess, task_process
from tests.support.tasks.task_files import task_dict, write_task

pytestmark = pytest.mark.slow


def place(source: DatabaseServer) -> tuple[str, int]:
    end = end_of(source)
    return end.file, end.offset


def cut_off(source: DatabaseServer, backup: Path, end: tuple[str, int]) -> None:
    """The last file of the binlog ends where it did at the time of the backup, as by a crash."""
    source.kill()
    with Path(source.folder, "data", end[0]).open("r+b") as file:
        file.truncate(end[1])
    source.start()


def restored(source: DatabaseServer, backup: Path, end: tuple[str, int]) -> None:
    """All is as it was at the time of the backup, and what follows comes into a file of the same
    name as what was lost, until that is as long."""
    lost = place(source)
    source.stop()
    folder = Path(source.folder, "data")
    for file in folder.glob("binlog.*"):
        file.unlink()
    for file in backup.glob("binlog.*"):
        shutil.copy2(file, folder)
        shutil.chown(folder / file.name, folder.owner(), folder.group())
    source.start()
    assert place(source)[0] == lost[0] == end[0]
    while place(source) <= lost:
        source.execute("UPDATE d.t1 SET n = n + 1")


@pytest.mark.parametrize("loss", [cut_off, restored])
def test_what_the_target_has_of_the_lost_end_is_noticed(
    loss: Callable[[DatabaseServer, Path, tuple[str, int]], None],
    start_server: StartServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    source, name = start_server(MySQL56Server), database_name
    source.execute("CREATE DATABASE d", "CREATE TABLE d.t1 (id INT PRIMARY KEY, n INT)")
    target_server.execute(
        f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY, n INT)"
    )
    values = task_dict(name, {"a": source}, target_server, schema="d", target_schema=name)
    values["syncers"] = {"s": {"checkpoint-flush-interval": 3600}}
    values["mysql-instances"][0]["syncer-config-name"] = "s"
    task_file = write_task(tmp_path, values)

    def arrives(task: TaskProcess, row: int) -> None:
        source.execute(f"INSERT INTO d.t1 VALUES ({row}, 0)")
        task.until(lambda: (row, 0) in numbers(), f"row {row}")

    def numbers() -> set[tuple[int, int]]:
        found = target_server.execute(f"SELECT id, n FROM {name}.t")
        return {(row[0], row[1]) for row in found}

    backup = tmp_path / "backup"
    with task_process(task_file, tmp_path) as task:
        task.until_logged("task.running")
        arrives(task, 1)
        assert task.cli("stop", name).returncode == 0
    with task_process(task_file, tmp_path) as task:
        task.until_logged("task.running", count=2)
        source.stop()
        shutil.copytree(source.folder / "data", backup)
        source.start()
        end = place(source)
        arrives(task, 2)
    loss(source, backup, end)
    with task_process(task_file, tmp_path) as task:
        status = task.until_state(name, "paused")
    assert status.error is not None
    assert status.error.event == "source.reset"
    assert numbers() == {(1, 0), (2, 0)}
