"""The report of a real task's log: a lock, a fault that the operator ends, a crash and a stop."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.many_targets import ManyTargets
from tests.support.tasks.processes import TaskProcess, task_process

pytestmark = pytest.mark.slow

QUICK_HEARTBEAT = (
    "-c",
    "import cli; from actors.task import heartbeat; heartbeat.PROGRESS_SECONDS = 0.5; cli.main()",
)
"""The command line, with a line on progress twice a second."""


def test_a_report_of_what_a_real_task_went_through(
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    mariadb_target: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    estate = ManyTargets(
        {"shop-eu-01": mariadb_source, "shop-eu-02": mariadb_source_full},
        mariadb_target,
        database_name,
        tmp_path,
        tables=("orders", "customers"),
        mode="pessimistic",
    )
    with task_process(estate.file, tmp_path, program=QUICK_HEARTBEAT) as task:
        task.until_state(database_name, "running")
        go_through_a_lock(estate, task)
        go_through_a_fault(estate, task)
        task.process.kill()
        task.process.wait()
    with task_process(estate.file, tmp_path, program=QUICK_HEARTBEAT) as task:
        task.until_state(database_name, "running")
        estate.do("shop-eu-01", "INSERT INTO orders (id, a) VALUES (9, 1)")
        estate.until_equal(task)
        assert task.cli("stop", database_name).returncode == 0
        task.process.wait()
    log, page = tmp_path / "task.log", tmp_path / "page.html"
    told = task.cli("report", str(estate.file), "--log-file", str(log), "--html", str(page))
    assert told.returncode == 0, told.stderr
    assert "starts 2, killed or crashed 1, stopped 1; in the end: stopped" in told.stdout
    for part in ("rows.duplicate", "resumed", "ADD COLUMN delivered_at"):
        assert part in told.stdout
    assert "<polyline" in page.read_text()
    if kept := os.environ.get("REPLICATOR_TEST_LOG"):
        shutil.copy(log, kept)


def go_through_a_lock(estate: ManyTargets, task: TaskProcess) -> None:
    for source, key in (("shop-eu-01", 1), ("shop-eu-02", 2)):
        estate.do(source, f"INSERT INTO orders VALUES ({key}, 1)")
    estate.do("shop-eu-01", "ALTER TABLE orders ADD COLUMN delivered_at DATETIME(6)")
    task.until_logged("lock.item")
    seen = sum(record["event"] == "task.progress" for record in task.events())
    task.until_logged("task.progress", seen + 4)
    estate.do("shop-eu-02", "ALTER TABLE orders ADD COLUMN delivered_at DATETIME(6)")
    estate.until_equal(task)


def go_through_a_fault(estate: ManyTargets, task: TaskProcess) -> None:
    estate.do("shop-eu-01", "INSERT INTO customers VALUES (7, 1)")
    estate.do("shop-eu-02", "INSERT INTO customers VALUES (7, 2)")
    estate.until_blocked(task, estate.shown("customers"))
    estate.do("shop-eu-02", "DELETE FROM customers WHERE id = 7")
    name = estate.name
    assert task.cli("resume", name, "--target", estate.shown("customers")).returncode == 0
    task.until_logged("target.resumed")
