"""What `replicator run` says while it starts, and leaves behind, where nobody has a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.copying import copy_task
from tests.support.tasks.processes import LOOK_SECONDS, PATIENCE, TaskProcess, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow

STEPS = ["programs", "checks", "lease", "saved state", "spark", "full copy", "sources"]


@contextmanager
def run(
    file: Path, folder: Path, runtime: Path, terminal: int | None = None
) -> Iterator[TaskProcess]:
    """Run a task; its log is what it writes to the standard error output."""
    env = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "TMPDIR": str(folder / "tmp")}
    (folder / "tmp").mkdir(exist_ok=True)
    log = folder / "stderr.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "cli", "run", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=env,
            start_new_session=True,
            preexec_fn=partial(_controlled_by, terminal),
        )
    try:
        yield TaskProcess(process, log, env)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _controlled_by(terminal: int | None) -> None:
    if terminal is not None:
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def events(task: TaskProcess) -> list[dict[str, Any]]:
    """All lines, each of which must be JSON."""
    return [json.loads(line) for line in task.log.read_text().splitlines()]


def spark_folders(folder: Path) -> set[str]:
    return {path.name for path in (folder / "tmp").glob("replicator-spark-*")}


@pytest.fixture
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rt")


@pytest.fixture
def shards(
    mariadb_source: DatabaseServer, target_server: DatabaseServer, database_name: str
) -> Shards:
    return Shards([mariadb_source], target_server, database_name)


def test_a_start_tells_its_steps_as_json_and_tidies_up_behind_one_that_was_killed(
    shards: Shards, tmp_path: Path, runtime: Path
) -> None:
    name = shards.database
    file = write_task(tmp_path, copy_task(shards))
    with run(file, tmp_path, runtime) as task:
        task.until_logged("source.connected")
        left = spark_folders(tmp_path)
        assert len(left) == 1
        os.kill(task.process.pid, signal.SIGKILL)
        task.process.wait()
        task.until_alone()
        assert [e["step"] for e in events(task) if e["event"] == "task.step"] == STEPS
    assert spark_folders(tmp_path) == left
    with run(file, tmp_path, runtime) as task:
        task.until_logged("source.connected")
        assert not spark_folders(tmp_path) & left
        task.process.send_signal(signal.SIGINT)
        assert task.process.wait(PATIENCE) == 0
        task.until_alone()
        assert {"task.running", "task.stopped"} <= {e["event"] for e in events(task)}
    assert spark_folders(tmp_path) == set()
    assert not any(str(e["event"]).startswith("WARNING") for e in events(task)), name


def test_a_start_that_is_interrupted_does_not_wait_for_spark(
    shards: Shards, tmp_path: Path, runtime: Path
) -> None:
    file = write_task(tmp_path, copy_task(shards))
    with run(file, tmp_path, runtime) as task:

        def starts_spark() -> bool:
            return any(e.get("step") == "spark" for e in task.events())

        task.until(lambda: bool(java_of(task)), "Java")
        [java] = java_of(task)
        # So it is not there when it is waited for.
        os.kill(java, signal.SIGSTOP)
        task.until(starts_spark, "the start of Spark")
        begun = time.monotonic()
        task.process.send_signal(signal.SIGINT)
        assert task.process.wait(PATIENCE) == 0
        took = time.monotonic() - begun
        assert "task.running" not in {e["event"] for e in events(task)}
        task.until_alone()
        assert took < 3 + LOOK_SECONDS, took


def worker_daemons(task: TaskProcess) -> list[int]:
    """The process that Python workers are forked from, and those."""
    return [p for p, command in task.descendants().items() if "worker_daemon" in command]


def java_of(task: TaskProcess) -> list[int]:
    """The Java of Spark."""
    return [p for p, command in task.descendants().items() if "/bin/java" in command]


@pytest.mark.parametrize("whom", ["driver", "java"])
def test_a_start_that_is_killed_leaves_no_process_behind(
    whom: str, shards: Shards, tmp_path: Path, runtime: Path
) -> None:
    with run(write_task(tmp_path, shards.task()), tmp_path, runtime) as task:
        task.until(lambda: bool(worker_daemons(task)), "the process for Python workers")
        [java] = java_of(task)
        daemon, *_ = worker_daemons(task)
        if whom == "java":
            os.kill(java, signal.SIGKILL)
            task.until(lambda: daemon not in task.descendants(), "the end of what Java has started")
        task.process.kill()
        task.process.wait()
        task.until_alone()


def test_a_start_goes_on_where_the_process_for_python_workers_is_killed(
    shards: Shards, tmp_path: Path, runtime: Path
) -> None:
    shards.change(rows=60)
    with run(write_task(tmp_path, copy_task(shards)), tmp_path, runtime) as task:
        task.until(lambda: bool(worker_daemons(task)), "the process for Python workers")
        for daemon in worker_daemons(task):
            with suppress(ProcessLookupError):
                os.kill(daemon, signal.SIGKILL)
        task.until_applied(shards.database, shards.sources)
        shards.assert_equal()
        task.process.send_signal(signal.SIGTERM)
        assert task.process.wait(PATIENCE) == 0
        task.until_alone()
        assert [e for e in events(task) if e["level"] == "error"] == []


def test_a_start_that_fails_says_in_its_log_what_to_do(
    shards: Shards, tmp_path: Path, runtime: Path
) -> None:
    values = copy_task(shards)
    values["sources"][0]["from"]["port"] = 1
    with run(write_task(tmp_path, values), tmp_path, runtime) as task:
        assert task.process.wait(PATIENCE) == 1
        task.until_alone()
        *_, checked, failed = events(task)
    assert (checked["event"], checked["check"], checked["where"]) == (
        "check.failed",
        "connection",
        "a",
    )
    assert failed["event"] == "task.failed"
    assert failed["remedies"][:-1] == checked["remedies"]
    assert "replicator check" in failed["remedies"][-1]


def test_a_terminal_that_goes_away_ends_the_task_in_order(
    shards: Shards, tmp_path: Path, runtime: Path
) -> None:
    shards.change(rows=60)
    theirs, ours = pty.openpty()
    with run(write_task(tmp_path, copy_task(shards)), tmp_path, runtime, ours) as task:
        os.close(ours)
        task.until_logged("source.connected")
        # The kernel sends SIGHUP to all processes that the terminal has in front, also to Java.
        os.close(theirs)
        assert task.process.wait(PATIENCE) == 0
        task.until_alone()
        found = events(task)
    assert [e["signal"] for e in found if e["event"] == "task.signal"] == ["SIGHUP"]
    assert found[-1]["event"] == "task.stopped"
    assert [e for e in found if e["level"] == "error" or e["event"] == "task.restart"] == []


def test_a_rotation_of_logs_does_not_end_a_task_without_a_terminal(
    shards: Shards, tmp_path: Path, runtime: Path
) -> None:
    shards.change(rows=60)
    values = copy_task(shards)
    with run(write_task(tmp_path, values), tmp_path, runtime) as task:
        task.until_logged("source.connected")
        os.killpg(task.process.pid, signal.SIGHUP)
        assert task.cli("stop", values["name"]).returncode == 0
        assert task.process.wait(PATIENCE) == 0
        task.until_alone()
        found = events(task)
    assert [e for e in found if e["event"] in ("task.signal", "task.restart")] == []
    assert [e for e in found if e["level"] == "error"] == []


@pytest.mark.remedy("spark.not-started", "resume")
@pytest.mark.slow
def test_a_task_whose_spark_does_not_start_goes_on_once_its_host_has_what_it_needs(
    shards: Shards, tmp_path: Path
) -> None:
    name, values, logs = shards.database, copy_task(shards), tmp_path / "spark-events"
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{logs}"}
    values["spark"] = {"master": "local[2]", "conf": conf}
    with task_process(write_task(tmp_path, values), tmp_path) as task:
        task.until_state(name, "paused")
        assert "spark.not-started" in {event["event"] for event in task.events()}
        logs.mkdir()
        assert task.cli("resume", name).returncode == 0
        task.until_state(name, "running")
        task.until_applied(name, shards.sources)
        shards.assert_equal()


@pytest.mark.remedy("spark.not-started", "run")
def test_a_task_whose_spark_does_not_start_runs_when_its_settings_are_corrected(
    shards: Shards, tmp_path: Path
) -> None:
    name, values = shards.database, copy_task(shards)
    values["spark"] = {"master": "local[2]", "conf": {"spark.serializer": "no.such.Serializer"}}
    with task_process(write_task(tmp_path, values), tmp_path) as task:
        task.until_state(name, "paused")
        assert "spark.not-started" in {event["event"] for event in task.events()}
        assert task.cli("stop", name).returncode == 0
        task.process.wait(PATIENCE)
    del values["spark"]["conf"]
    with task_process(write_task(tmp_path, values), tmp_path) as task:
        task.until_state(name, "running")
        task.until_applied(name, shards.sources)
        shards.assert_equal()
