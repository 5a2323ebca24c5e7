"""A task on a Spark cluster, whose executors have nothing of this process but what it sends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from replicator.sandbox.server import DatabaseServer
from replicator.status import CopyStatus
from tests.support.spark.cluster import SparkCluster
from tests.support.spark.event_log import event_log, jobs
from tests.support.spark.executor_python import executor_python
from tests.support.tasks.copying import copy_task
from tests.support.tasks.processes import PATIENCE, TaskProcess, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task


@pytest.fixture
def shards(
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    mariadb_target: DatabaseServer,
    database_name: str,
) -> Shards:
    return Shards([mariadb_source, mariadb_source_full], mariadb_target, database_name)


@pytest.fixture
def fragile_cluster() -> Iterator[SparkCluster]:
    """A cluster of its own for a test that kills workers."""
    with SparkCluster() as cluster:
        yield cluster


@pytest.mark.slow
def test_batches_are_applied_by_the_executors(
    spark_cluster: SparkCluster, shards: Shards, tmp_path: Path
) -> None:
    log = tmp_path / "spark-events"
    log.mkdir()
    settings = spark_cluster.settings(event_log(log))
    path = write_task(tmp_path, shards.task(spark=settings))
    with task_process(path, tmp_path) as task:
        task.until_logged("task.running")
        shards.change(rows=20)
        task.until_applied(shards.database, shards.sources)
        shards.change_much(rows=400)
        shards.change()
        task.until_applied(shards.database, shards.sources)
        shards.assert_equal()
        commands = task.descendants().values()
        assert not [
            command for command in commands if "-m replicator.pipeline.worker_daemon" in command
        ]
        secret = settings["conf"]["spark.authenticate.secret"]
        assert not [command for command in commands if secret in command]
        stop(task, shards.database)
    living = [job for job in jobs(log) if job.lives]
    assert len(living) == 1, "batches begin jobs"
    assert len(set(living[0].executors) - {"driver"}) == 2
    assert "driver" not in living[0].executors


@pytest.mark.slow
def test_a_copy_and_what_follows_it(
    spark_cluster: SparkCluster, shards: Shards, tmp_path: Path
) -> None:
    shards.change()
    values = shards.task(spark=spark_cluster.settings())
    values["task-mode"] = "all"
    for instance in values["mysql-instances"]:
        del instance["meta"]
    path = write_task(tmp_path, values)
    with task_process(path, tmp_path) as task:
        task.until_state(shards.database, "running")
        shards.change()
        task.until_applied(shards.database, shards.sources)
        shards.assert_equal()
        stop(task, shards.database)


@pytest.mark.slow
def test_workers_are_killed(fragile_cluster: SparkCluster, shards: Shards, tmp_path: Path) -> None:
    cluster, name = fragile_cluster, shards.database
    path = write_task(tmp_path, shards.task(spark=cluster.settings()))
    with task_process(path, tmp_path) as task:
        task.until_logged("task.running")
        with shards.changing():
            until_batches(task, name, 5)
            cluster.kill_worker(0)
            until_batches(task, name, 10)
        task.until_applied(name, shards.sources)
        shards.assert_equal()

        cluster.kill_worker(1)
        shards.change()
        task.until_logged("batch.no-executors")
        status = task.status(name)
        assert status is not None
        assert status.writer is not None
        assert "no executor" in status.writer.state
        cluster.start_worker(0)
        shards.alter()
        shards.change()
        task.until_applied(name, shards.sources)
        shards.assert_equal()

        cluster.kill_worker(0)
        shards.change()
        task.until_logged("batch.no-executors", 2)
        stop(task, name)
    cluster.start_worker(1)
    with task_process(path, tmp_path) as task:
        task.until_applied(name, shards.sources)
        shards.assert_equal()


@pytest.mark.slow
def test_all_workers_are_killed_during_a_copy(
    fragile_cluster: SparkCluster, shards: Shards, tmp_path: Path
) -> None:
    cluster, name = fragile_cluster, shards.database
    for number, server in enumerate(shards.servers):
        rows = f"SELECT {number * 50_000_000} + seq, 'x', 0 FROM seq_1_to_2500"
        server.execute(f"INSERT INTO t1 {rows}", database=name)
    values = copy_task(shards, rows=50)
    values |= {"spark": cluster.settings(), "copy": {"rows-per-second": 100}}
    path = write_task(tmp_path, values)
    with task_process(path, tmp_path) as task:

        def copied() -> CopyStatus:
            status = task.status(name)
            return (status.copy if status is not None else None) or CopyStatus("copying")

        task.until_logged("copy.started")
        task.until(lambda: copied().rows > 0, "rows")
        cluster.kill_worker(0)
        cluster.kill_worker(1)
        task.until(lambda: "no executor" in copied().waiting, "word that there are no executors")
        lost = [event for event in task.events() if event["event"] == "spark.executor-lost"]
        assert {event["left"] for event in lost} <= {0, 1}
        assert len({event["executor"] for event in lost}) == len(lost) == 2
        before = copied().rows
        cluster.start_worker(0)
        task.until(lambda: copied().rows > before + 200, "more rows")
        assert copied().waiting == ""

        cluster.kill_worker(0)
        task.until(lambda: "no executor" in copied().waiting, "word that there are no executors")
        stop(task, name)
        assert [event for event in task.events() if event["event"] == "copy.no-executors"]
    cluster.start_worker(1)
    values["copy"] = {"rows-per-second": 0}
    with task_process(write_task(tmp_path, values), tmp_path) as task:
        task.until_applied(name, shards.sources)
        shards.assert_equal()
        stop(task, name)


@pytest.mark.slow
@pytest.mark.parametrize("workers_too", [False, True])
def test_a_master_that_was_restarted_gets_the_application_again(
    workers_too: bool, fragile_cluster: SparkCluster, shards: Shards, tmp_path: Path
) -> None:
    cluster, name = fragile_cluster, shards.database
    path = write_task(tmp_path, shards.task(spark=cluster.settings()))
    with task_process(path, tmp_path) as task:
        task.until_logged("task.running")
        with shards.changing():
            until_batches(task, name, 5)
            cluster.kill_master()
            until_batches(task, name, 5)
            if workers_too:
                cluster.kill_worker(0)
                cluster.kill_worker(1)
                task.until_logged("batch.no-executors")
                assert "no master answers" in waiting_for(task, name)
            cluster.start_master()
            if workers_too:
                cluster.start_worker(0)
            task.until_logged("task.restart")
            task.until_logged("task.running", 2)
            until_batches(task, name, 5)
        task.until_applied(name, shards.sources)
        shards.assert_equal()
        [restart] = [event for event in task.events() if event["event"] == "task.restart"]
        assert "does not know the task's application" in restart["reason"]
        stop(task, name)


@pytest.mark.slow
def test_a_master_that_knows_its_applications_gives_new_executors_after_a_restart(
    shards: Shards, tmp_path: Path
) -> None:
    name = shards.database
    with SparkCluster(recovery="FILESYSTEM") as cluster:
        path = write_task(tmp_path, shards.task(spark=cluster.settings()))
        with task_process(path, tmp_path) as task:
            task.until_logged("task.running")
            with shards.changing():
                until_batches(task, name, 5)
                cluster.kill_master()
                cluster.kill_worker(0)
                cluster.start_master()
                until_batches(task, name, 5)
                cluster.kill_worker(1)
                task.until_logged("batch.no-executors")
                cluster.start_worker(0)
                until_batches(task, name, 5)
            task.until_applied(name, shards.sources)
            shards.assert_equal()
            assert not [event for event in task.events() if event["event"] == "task.restart"]
            stop(task, name)


@pytest.mark.slow
def test_a_master_is_restarted_during_a_copy(
    fragile_cluster: SparkCluster, shards: Shards, tmp_path: Path
) -> None:
    cluster, name = fragile_cluster, shards.database
    for number, server in enumerate(shards.servers):
        rows = f"SELECT {number * 50_000_000} + seq, 'x', 0 FROM seq_1_to_5000"
        server.execute(f"INSERT INTO t1 {rows}", database=name)
    values = copy_task(shards, rows=50)
    values |= {"spark": cluster.settings(), "copy": {"rows-per-second": 100}}
    path = write_task(tmp_path, values)
    with task_process(path, tmp_path) as task:

        def copied() -> CopyStatus:
            status = task.status(name)
            return (status.copy if status is not None else None) or CopyStatus("copying")

        task.until(lambda: copied().rows > 0, "rows")
        cluster.kill_master()
        cluster.start_master()
        task.until_logged("task.restart")
        before = copied().rows
        assert before < 10_000
        task.until(lambda: copied().rows > before + 200, "more rows")
        lost = [event for event in task.events() if event["event"] == "spark.executor-lost"]
        assert len(lost) == 2
        [restart] = [event for event in task.events() if event["event"] == "task.restart"]
        assert "does not know the task's application" in restart["reason"]
        stop(task, name)
    values["copy"] = {"rows-per-second": 0}
    with task_process(write_task(tmp_path, values), tmp_path) as task:
        task.until_applied(name, shards.sources)
        shards.assert_equal()
        stop(task, name)


def waiting_for(task: TaskProcess, name: str) -> str:
    """Return the state of the writer, which says what it waits for."""
    status = task.status(name)
    assert status is not None
    assert status.writer is not None
    return status.writer.state


def without_packages(folder: Path) -> dict[str, str]:
    return {"spark.pyspark.python": str(executor_python(folder, without=("pyarrow", "numba")))}


def without_client(folder: Path) -> dict[str, str]:
    return {"spark.pyspark.python": str(executor_python(folder, without=("PyMySQL",)))}


def of_another_version(folder: Path) -> dict[str, str]:
    return {"spark.pyspark.python": str(executor_python(folder, version=(3, 10)))}


def without_python(folder: Path) -> dict[str, str]:
    return {"spark.pyspark.python": str(folder / "bin" / "python")}


def of_another_secret(_: Path) -> dict[str, str]:
    return {"spark.authenticate.secret": "not the cluster's"}


def too_much(_: Path) -> dict[str, str]:
    waiting = "spark.scheduler.maxRegisteredResourcesWaitingTime"
    return {"spark.executor.memory": "1t", waiting: "3s"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("conf", "told", "way"),
    [
        (without_packages, "No module named 'pyarrow'", "spark.archives"),
        (without_client, "No module named 'pymysql'", "spark.archives"),
        (of_another_version, "different version: 3.10", "spark.pyspark.python"),
        (without_python, "no Python at", "spark.pyspark.python"),
        (of_another_secret, "not accepted the application", "spark.authenticate.secret"),
        (too_much, "gave no executor within 3 s", "spark.executor.memory"),
    ],
)
def test_executors_that_cannot_do_it_are_told_at_the_start(
    conf: Callable[[Path], dict[str, str]],
    told: str,
    way: str,
    spark_cluster: SparkCluster,
    shards: Shards,
    tmp_path: Path,
) -> None:
    settings = spark_cluster.settings(conf(tmp_path / "python"))
    path = write_task(tmp_path, shards.task(spark=settings))
    with task_process(path, tmp_path) as task:
        error = task.until_state(shards.database, "paused").error
        assert error is not None
        assert error.event == "spark.executors"
        assert told in error.message
        assert spark_cluster.master in error.where
        assert any(way in text for text in error.remedies)
        assert "Traceback" not in task.console()
        assert "\tat " not in task.console(), "a stack of Java"
        stop(task, shards.database, code=1)


@pytest.mark.slow
@pytest.mark.remedy("spark.executors", "run")
def test_a_cluster_whose_secret_is_not_given_is_told_at_the_start(
    spark_cluster: SparkCluster, shards: Shards, tmp_path: Path
) -> None:
    settings = spark_cluster.settings()
    for name in ("spark.authenticate", "spark.authenticate.secret"):
        del settings["conf"][name]
    values = shards.task(spark=settings)
    path = write_task(tmp_path, values)
    shards.change()
    with task_process(path, tmp_path) as task:
        error = task.until_state(shards.database, "paused").error
        assert error is not None
        assert error.event == "spark.executors"
        assert "has no secret of this cluster" in error.message
        assert any("spark.authenticate.secret" in text for text in error.remedies)
        assert any("`replicator run " in text for text in error.remedies)
        stop(task, shards.database, code=1)
    path = write_task(tmp_path, values | {"spark": spark_cluster.settings()})
    with task_process(path, tmp_path) as task:
        task.until_applied(shards.database, shards.sources)
        shards.assert_equal()
        stop(task, shards.database)


def test_a_master_that_is_away_is_told_before_the_start(shards: Shards, tmp_path: Path) -> None:
    nowhere: dict[str, Any] = {"master": "spark://127.0.0.1:1"}
    path = write_task(tmp_path, shards.task(spark=nowhere))
    with task_process(path, tmp_path) as task:
        assert task.process.wait(PATIENCE) == 1
        assert "127.0.0.1:1" in task.console()
        assert "correct spark.master" in task.console()


def until_batches(task: TaskProcess, name: str, more: int) -> None:
    """Wait until so many further batches are applied."""

    def applied() -> int:
        status = task.status(name)
        return status.writer.batches if status is not None and status.writer is not None else 0

    wanted = applied() + more
    task.until(lambda: applied() >= wanted, f"{wanted} batches")


def stop(task: TaskProcess, name: str, *, code: int = 0) -> None:
    answer = task.cli("stop", name)
    assert answer.returncode == 0, answer.stderr
    assert task.process.wait(PATIENCE) == code
    task.until_alone()
