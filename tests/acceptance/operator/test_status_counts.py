"""What `status` counts goes on over a pause, as the process does."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from replicator.sandbox.server import DatabaseServer
from replicator.status import TaskStatus
from tests.support.tasks.processes import TaskProcess, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

COPIED = 40


def status_of(task: TaskProcess, name: str) -> TaskStatus:
    status = task.status(name)
    assert status is not None
    return status


def metrics_of(task: TaskProcess, name: str) -> dict[str, float]:
    """What the task tells Prometheus, by the names of the metrics; of several series the last."""
    [listening] = [e for e in task.events() if e["event"] == "metrics.listening"]
    host, _, port = listening["address"].rpartition(":")
    with closing(HTTPConnection(host, int(port), timeout=30)) as connection:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    assert f'task="{name}"' in text
    families = text_string_to_metric_families(text)
    return {sample.name: sample.value for family in families for sample in family.samples}


def insert(source: DatabaseServer, name: str, first: int, number: int) -> None:
    values = ", ".join(f"({first + i}, 'row', {i})" for i in range(number))
    source.execute(f"INSERT INTO {name}.t1 VALUES {values}")


def test_counts_go_on_over_a_pause(
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    name = database_name
    shards = Shards([mariadb_source], target_server, name)
    insert(mariadb_source, name, 0, COPIED)
    values = shards.task(**{"task-mode": "all", "metrics": {"listen": "127.0.0.1:0"}})
    for instance in values["mysql-instances"]:
        del instance["meta"]
    with task_process(write_task(tmp_path, values), tmp_path) as task:
        task.until_state(name, "running")
        task.until_applied(name, shards.sources)
        insert(mariadb_source, name, 1000, 7)
        mariadb_source.execute(f"DELETE FROM {name}.t1 WHERE id = 1000")
        task.until_applied(name, shards.sources)
        assert task.cli("pause", name).returncode == 0
        before = task.until_state(name, "paused")
        task.until(
            lambda: (status_of(task, name).sources[0].lag_seconds or 0) > 0, "falling behind"
        )
        assert task.cli("resume", name).returncode == 0
        seen: list[TaskStatus] = []

        def follows() -> bool:
            seen.append(status_of(task, name))
            # A run that has only begun knows of no source yet.
            states = [source.state for source in seen[-1].sources]
            return seen[-1].state == "running" and states == ["reading"]

        task.until(follows, "following the source again")
        insert(mariadb_source, name, 2000, 5)
        task.until_applied(name, shards.sources)
        after = status_of(task, name)
        metrics = metrics_of(task, name)
    # The insertion and the deletion of a row may meet in one batch, which then writes neither.
    [done] = [t for t in before.targets if t.target == f"{name}.t"]
    assert done.inserted in (6, 7)
    assert done.inserted - done.deleted == 6
    [again] = [t for t in after.targets if t.target == f"{name}.t"]
    assert (again.inserted, again.deleted, again.missing) == (done.inserted + 5, done.deleted, 0)
    assert after.writer.rows == before.writer.rows + 5
    assert after.writer.batches > before.writer.batches > 0
    assert after.sources[0].rows > before.sources[0].rows > 0
    assert after.sources[0].bytes > before.sources[0].bytes > 0
    assert after.sources[0].transactions == again.transactions == 3
    assert again.bytes > 0
    assert metrics["replicator_source_transactions_total"] == 3
    assert metrics["replicator_batches_total"] == metrics["replicator_batch_seconds_count"]
    assert metrics["replicator_commit_to_visible_seconds_count"] >= 2
    assert metrics["replicator_needs_operator"] == 0
    for status in (before, *seen, after):
        if status.copy is None and status.state == "starting":
            continue  # What is saved has not been read yet.
        assert status.copy is not None
        assert status.copy.state == "finished"
        assert (status.copy.tables_done, status.copy.tables, status.copy.rows) == (3, 3, COPIED)
