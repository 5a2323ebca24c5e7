"""A target that takes statements and does not end them: the task tells what it waits for."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer, give_to_server
from replicator.status import condition
from tests.support.tasks.processes import PATIENCE, TaskProcess, task_process
from tests.support.tasks.tables import rows_of
from tests.support.tasks.task_files import task_dict, write_task

Stalling = Callable[[DatabaseServer], Any]

pytestmark = pytest.mark.slow


@contextmanager
def full_disk(disk: Path) -> Iterator[None]:
    """The file system of the target's binlog has no room left."""
    filling = disk / "filling"
    with filling.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError:
            pass
    try:
        yield
    finally:
        filling.unlink()


@contextmanager
def no_replica(target: DatabaseServer) -> Iterator[None]:
    """The target waits for a replica that has each commit, and there is none."""
    target.execute("SET GLOBAL rpl_semi_sync_master_enabled = ON")
    try:
        yield
    finally:
        target.execute("SET GLOBAL rpl_semi_sync_master_enabled = OFF")


@contextmanager
def read_lock(target: DatabaseServer) -> Iterator[None]:
    """A backup holds up all that writes."""
    with closing(target.connect()) as backup, backup.cursor() as cursor:
        cursor.execute("FLUSH TABLES WITH READ LOCK")
        yield


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(folder)]
    made = subprocess.run(mount, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"this test can't make a file system of its own: {made.stderr.strip()}")
    for parent in (folder, *folder.parents[:3]):
        parent.chmod(parent.stat().st_mode | 0o011)
    give_to_server(folder)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def told(task: TaskProcess) -> list[str]:
    """What the log says that the target waits for."""
    return [str(e["reason"]) for e in task.events() if e["event"] == "target.stalled"]


def check_stall(
    task: TaskProcess, db: str, server: DatabaseServer, target: DatabaseServer, says: str
) -> None:
    """The log and the status tell of it, while it lasts."""
    task.until(lambda: any(says in reason for reason in told(task)), says)
    status = task.status(db)
    assert status is not None
    state = status.writer.state
    assert state.startswith(f"retrying: target root@127.0.0.1:{target.port}: "), state
    assert "since 20" in state
    assert "next attempt at" in state
    shown = task.cli("status", db)
    assert says in " ".join(shown.stdout.split()), shown.stdout
    assert condition(status) == "retrying"


def stalled_task(folder: Path, source: DatabaseServer, target: DatabaseServer) -> tuple[str, Path]:
    """A task of one shard: its name, which its databases have too, and its file."""
    db = "stalled"
    source.execute(
        f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t1 (id INT PRIMARY KEY, v LONGTEXT)"
    )
    target.execute(f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t (id INT PRIMARY KEY, v LONGTEXT)")
    task = task_dict(db, {"a": source}, target, schema=db, target_schema=db)
    return db, write_task(folder, task)


def run_stalled(
    folder: Path, source: DatabaseServer, target: DatabaseServer, stall: Any, says: str
) -> None:
    """Rows and a schema change wait, and arrive once the target goes on."""
    db, path = stalled_task(folder, source, target)
    with task_process(path, folder) as task:
        task.until_logged("task.running")
        with stall:
            source.execute(
                f"INSERT INTO {db}.t1 SELECT seq, REPEAT('b', 200000) FROM {db}.seq_1_to_20"
            )
            check_stall(task, db, source, target, says)
        source.execute(f"ALTER TABLE {db}.t1 ADD COLUMN c INT", f"UPDATE {db}.t1 SET c = id")
        task.until_logged("target.goes-on")
        task.until_applied(db, {"a": source})
        assert rows_of(target, f"{db}.t", "*") == rows_of(source, f"{db}.t1", "*")
        assert not [e for e in task.events() if e["event"] == "task.paused"]
        status = task.status(db)
        assert status is not None
        assert status.writer.state in ("idle", "applying")
        answer = task.cli("stop", db)
        assert answer.returncode == 0, answer.stderr


@pytest.mark.not_on_tidb("it is about other servers")
def test_a_full_disk_that_stops_a_commit_is_told(
    start_server: Callable[..., DatabaseServer], disk: Path, tmp_path: Path
) -> None:
    target = start_server(MariaDBServer, {"log_bin": str(disk / "binlog")})
    source = start_server(MariaDBServer)
    run_stalled(tmp_path, source, target, full_disk(disk), "waits for free disk space")


@pytest.mark.not_on_tidb("it is about other servers")
@pytest.mark.parametrize(
    ("stalling", "says"),
    [(no_replica, "semi-sync ACK"), (read_lock, "Waiting for backup lock")],
    ids=["no replica", "read lock"],
)
def test_a_commit_that_does_not_end_is_told(
    start_server: Callable[..., DatabaseServer], tmp_path: Path, stalling: Stalling, says: str
) -> None:
    options = {
        "rpl_semi_sync_master_timeout": "4294967295",
        "rpl_semi_sync_master_wait_no_slave": "ON",
    }
    target = start_server(MariaDBServer, options)
    run_stalled(tmp_path, start_server(MariaDBServer), target, stalling(target), says)


@pytest.mark.not_on_tidb("it is about other servers")
def test_a_stop_does_not_wait_for_a_target_that_does_not_get_on(
    start_server: Callable[..., DatabaseServer], tmp_path: Path
) -> None:
    source, target = start_server(MariaDBServer), start_server(MariaDBServer)
    db, path = stalled_task(tmp_path, source, target)
    with task_process(path, tmp_path) as task:
        task.until_logged("task.running")
        with read_lock(target):
            source.execute(f"INSERT INTO {db}.t1 SELECT seq, seq FROM {db}.seq_1_to_20")
            task.until_logged("target.stalled")
            # The command waits no longer than a batch may take to end.
            answer = task.cli("stop", db)
            assert answer.returncode == 0, answer.stderr
            assert task.process.wait(PATIENCE) == 0
            assert "task.stopped-unsaved" in {e["event"] for e in task.events()}
    with task_process(path, tmp_path) as task:
        task.until_applied(db, {"a": source})
        assert rows_of(target, f"{db}.t", "*") == rows_of(source, f"{db}.t1", "*")
