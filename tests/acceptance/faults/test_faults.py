"""Connections, servers and processes that break while rows flow; always equal in the end."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pymysql.err
import pytest

from actors.task.recurrence import SPARK_LOSSES
from replicator.memory import MIB
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import TARGETS, started
from tests.support.tasks.long_task import LongTask
from tests.support.tasks.processes import PATIENCE, TaskProcess, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow

NAME = "faults"
NO_SUCH_THREAD = 1094


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory, target_kind: str) -> Iterator[LongTask]:
    folder = tmp_path_factory.mktemp("f")
    with (
        started(MariaDBServer({"binlog_row_metadata": "NO_LOG"})) as first,
        started(MariaDBServer({"binlog_row_metadata": "FULL"})) as second,
        started(TARGETS[target_kind]()) as target,
    ):
        task = LongTask(Shards([first, second], target, NAME), folder)
        yield task
        task.end()


@pytest.fixture
def running(life: LongTask) -> LongTask:
    """The task, running, with nothing left to do."""
    life.task.until_state(NAME, "running")
    life.assert_equal()
    return life


@contextmanager
def again_and_again(act: Callable[[], object], every: float) -> Iterator[None]:
    """Do something in a thread every so many seconds."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(every):
            act()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def kill_connections(server: DatabaseServer, condition: str) -> int:
    """Kill the connections of others for which a condition on the process list holds."""
    killed = 0
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT ID FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID()"
            f" AND USER <> 'system user' AND {condition}"
        )
        for (number,) in cursor.fetchall():
            try:
                cursor.execute(f"KILL {number}")
                killed += 1
            except pymysql.err.OperationalError as error:
                if error.args[0] != NO_SUCH_THREAD:
                    raise
    return killed


def test_connections_to_the_sources_are_killed_in_mid_transaction(running: LongTask) -> None:
    shards, task = running.shards, running.task
    lost = running.logged("source.lost")
    with shards.changing():
        time.sleep(0.5)
    shards.change_much(rows=16_000)
    for _ in range(4):
        for server in shards.servers:
            kill_connections(server, "COMMAND = 'Binlog Dump'")
        before = running.logged("source.connected")
        task.until_logged("source.connected", before + 1)
    running.assert_equal()
    assert running.logged("source.lost") >= lost + 4
    again = [e["position"] for e in task.events() if e["event"] == "source.lost"]
    assert len(again) > len(set(again)), "no connection was lost inside a transaction"


def test_connections_to_the_target_are_killed(running: LongTask) -> None:
    target = running.shards.target
    killed: list[int] = []
    with (
        running.shards.changing(),
        again_and_again(lambda: killed.append(kill_connections(target, "TRUE")), 0.2),
    ):
        running.task.until(lambda: sum(killed) > 10, "more than ten killed connections")
    running.assert_equal()


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_a_source_goes_away(running: LongTask, how: str) -> None:
    shards = running.shards
    first = shards.servers[0]
    with shards.changing():
        time.sleep(1)
        if how == "kill":
            first.kill()
        else:
            first.stop()
        running.task.until_logged("source.lost", running.logged("source.lost") + 1)
        first.start()
        time.sleep(1)
    running.assert_equal()


def refuse(running: LongTask, seconds: float) -> None:
    """The target is away for so long while the shards change."""
    target = running.shards.target
    with running.shards.changing():
        time.sleep(1)
        target.stop()
        time.sleep(seconds)
        assert running.task.process.poll() is None
        target.start()
        time.sleep(1)
    running.assert_equal()


def test_the_target_is_restarted_and_refuses_for_a_while(running: LongTask) -> None:
    refuse(running, 15)


def test_the_target_refuses_for_a_minute(running: LongTask) -> None:
    refuse(running, 60)


def test_a_task_stops_while_its_target_is_away(running: LongTask) -> None:
    target, task = running.shards.target, running.task
    with running.shards.changing():
        time.sleep(0.5)
        target.stop()
        time.sleep(1)
    try:
        began = time.monotonic()
        answer = task.cli("stop", NAME)
        assert answer.returncode == 0, answer.stderr
        assert time.monotonic() - began < 60
        assert task.process.wait(PATIENCE) == 0
        task.until_alone()
    finally:
        target.start()
    running.assert_equal()


def test_the_target_is_killed(running: LongTask) -> None:
    target = running.shards.target
    with running.shards.changing():
        time.sleep(1)
        target.kill()
        time.sleep(1)
        target.start()
    running.assert_equal()


def workers(task: TaskProcess) -> list[int]:
    """Python workers of Spark: what the daemon of our own has forked."""
    daemons = {p for p, command in task.descendants().items() if "worker_daemon" in command}
    return [p for p in daemons if parent(p) in daemons]


def parent(process: int) -> int:
    with suppress(FileNotFoundError, ProcessLookupError):
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def test_a_spark_job_fails(running: LongTask) -> None:
    task = running.task
    failed = running.logged("batch.spark-failed")

    def kill_workers() -> None:
        # Spark tries a task twice by itself.
        if running.logged("batch.spark-failed") == failed:
            for process in workers(task):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

    with running.shards.changing(), again_and_again(kill_workers, 0.02):
        task.until_logged("batch.spark-failed", failed + 1)
    running.assert_equal()


def take_memory(running: LongTask) -> None:
    """Leave the workers what a small batch needs."""
    for process in workers(running.task):
        with suppress(ProcessLookupError, FileNotFoundError):
            if resource.prlimit(process, resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
                pages = int(Path(f"/proc/{process}/statm").read_text().split()[0])
                size = pages * resource.getpagesize() + 48 * MIB
                resource.prlimit(process, resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))


@pytest.mark.remedy("spark.failing", "resume", "reload")
@pytest.mark.parametrize("remedy", ["resume", "reload"])
def test_workers_without_memory_get_some_or_smaller_batches(running: LongTask, remedy: str) -> None:
    usual = running.values["writer"]
    running.values["writer"] = {"batch-bytes": "64MiB"}
    stop(running)
    with ExitStack() as lacking:
        lacking.enter_context(again_and_again(lambda: take_memory(running), 0.005))
        running.shards.change_much(rows=16_000)
        running.task.until_logged("task.restart", running.logged("task.restart") + SPARK_LOSSES - 1)
        found = running.task.until_state(NAME, "paused").error
        assert found is not None
        assert found.event == "spark.failing"
        assert any(f"replicator {remedy}" in way for way in found.remedies)
        running.values["writer"] = usual
        if remedy == "resume":
            lacking.close()
            running.resume()
        else:
            running.reload()
        running.assert_equal()


def stop(running: LongTask) -> None:
    task = running.task
    assert task.cli("stop", NAME).returncode == 0
    assert task.process.wait(PATIENCE) == 0


DAMAGED = """
import os
from pathlib import Path
from pymysql.connections import Connection

usual = Connection.query

def query(*given, **more):
    if os.path.exists({flag!r}) and b"worker_daemon" in Path("/proc/self/cmdline").read_bytes():
        raise ValueError("a damaged file")
    return usual(*given, **more)

Connection.query = query
"""


def damaged(folder: Path, flag: Path) -> dict[str, str]:
    """An environment in which workers fail at each query while there is this file."""
    (folder / "sitecustomize.py").write_text(DAMAGED.format(flag=str(flag)))
    return {"PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}


@pytest.mark.remedy("task.unexpected", "resume")
def test_an_installation_is_damaged_and_put_right(shards: Shards, tmp_path: Path) -> None:
    flag = tmp_path / "damaged"
    path = write_task(tmp_path, shards.task())
    with task_process(path, tmp_path, env=damaged(tmp_path, flag)) as task:
        task.until_state(shards.database, "running")
        flag.touch()
        shards.change()
        found = task.until_state(shards.database, "paused").error
        assert found is not None
        assert found.event == "task.unexpected"
        assert "ValueError: a damaged file" in found.message
        assert any("replicator resume" in way for way in found.remedies)
        flag.unlink()
        assert task.cli("resume", shards.database).returncode == 0
        task.until_applied(shards.database, shards.sources)
        shards.assert_equal()


@pytest.mark.remedy("task.unexpected", "run")
@pytest.mark.parametrize("mode", ["", "pessimistic"])
def test_a_table_is_left_out_after_an_unexpected_error(
    shards: Shards, tmp_path: Path, mode: str
) -> None:
    name, flag = shards.database, tmp_path / "damaged"
    searched = damaged(tmp_path, flag)
    values = shards.task() | {"shard-mode": mode}
    path = write_task(tmp_path, values)
    with task_process(path, tmp_path, env=searched) as task:
        task.until_state(name, "running")
        shards.change()
        task.until_applied(name, shards.sources)
        flag.touch()
        left = rows_of(shards.target, f"{name}.bag")
        shards.change()
        found = task.until_state(name, "paused").error
        assert found is not None
        assert found.event == "task.unexpected"
        (way,) = (way for way in found.remedies if "leave it out" in way)
        assert task.cli("stop", name).returncode == 0
        assert task.process.wait(PATIENCE) == 1
    flag.unlink()  # Without the table, what failed is not reached.
    for rules in values["block-allow-list"].values():
        rules["ignore-tables"] = [{"db-name": name, "tbl-name": "bag"}]
    path = write_task(tmp_path, values)
    options = way.partition("`replicator run ")[2].partition("`")[0].split()[1:]
    with task_process(path, tmp_path, *options, env=searched) as task:
        task.until_state(name, "running")
        shards.change()
        task.until_applied(name, shards.sources)
        keyed = [(server, f"{name}.{shard}") for server in shards.servers for shard in ("t1", "t2")]
        assert rows_of(shards.target, f"{name}.t") == union_of(keyed)
        assert rows_of(shards.target, f"{name}.bag") == left


def test_the_jvm_of_spark_is_killed(running: LongTask) -> None:
    task = running.task
    restarts = running.logged("task.restart")
    (jvm,) = [p for p, command in task.descendants().items() if "/bin/java" in command]
    with running.shards.changing():
        time.sleep(0.5)
        os.kill(jvm, signal.SIGKILL)
        task.until_logged("task.restart", restarts + 1)
        task.until_state(NAME, "running")
    running.assert_equal()
    assert jvm not in task.descendants()


def test_pause_and_resume_in_the_middle_of_load(running: LongTask) -> None:
    task = running.task
    with running.shards.changing():
        for _ in range(2):
            time.sleep(0.5)
            answer = task.cli("pause", NAME)
            assert answer.returncode == 0, answer.stderr
            task.until_state(NAME, "paused")
            assert task.cli("resume", NAME).returncode == 0
            task.until_state(NAME, "running")
    running.assert_equal()


def test_to_resume_what_runs_changes_nothing(running: LongTask) -> None:
    connected = running.logged("source.connected")
    assert running.task.cli("resume", NAME).returncode == 0
    running.shards.change()
    running.assert_equal()
    assert running.logged("source.connected") == connected


def test_stop_and_run_in_the_middle_of_load(running: LongTask) -> None:
    task = running.task
    with running.shards.changing():
        time.sleep(0.5)
        answer = task.cli("stop", NAME)
        assert answer.returncode == 0, answer.stderr
        assert task.process.wait(PATIENCE) == 0
        task.until_alone()
    running.assert_equal()


def test_a_second_process_of_the_task_is_refused(running: LongTask) -> None:
    answer = running.task.cli("run", str(running.file))
    assert answer.returncode == 1
    assert "already runs" in answer.stderr
    assert str(running.task.process.pid) in answer.stderr
    assert "Traceback" not in answer.stderr
    running.shards.change()
    running.assert_equal()


def test_there_is_no_lag_when_all_is_read(running: LongTask) -> None:
    task = running.task

    def idle() -> bool:
        status = task.status(NAME)
        return status is not None and {s.lag_seconds for s in status.sources} == {0.0}

    task.until(idle, "no lag")
    running.shards.change()
    running.assert_equal()
    task.until(idle, "no lag again")
