"""`replicator switch`: the task ends for good, nothing is lost, and it can be aborted before."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from replicator.switch.certificate import SwitchCertificate
from tests.support.tasks.processes import PATIENCE, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.switching import Application, is_writable, make_writable
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow


@pytest.fixture
def writable(shards: Shards) -> Iterator[Shards]:
    yield shards
    make_writable(shards.servers)


def test_a_switch_under_writes_loses_nothing(writable: Shards, tmp_path: Path) -> None:
    shards, name = writable, writable.database
    file = write_task(tmp_path, shards.task())
    shards.change()
    application = Application(shards.servers, name, ("t1", "t2"), rate=500)
    with task_process(file, tmp_path) as task:
        task.until_state(name, "running")
        with application.writing():
            looked = task.cli("switch", str(file), "--dry-run")
            assert looked.returncode == 0, looked.stdout + looked.stderr
            assert all(map(is_writable, shards.servers))
            done = task.cli("switch", str(file), "--freeze", "--json", patience=400)
        assert done.returncode == 0, done.stderr
        assert task.process.wait(PATIENCE) == 0
        values = json.loads(done.stdout)
        rate = application.transactions / application.seconds
        sys.stdout.write(f"{rate:,.0f} transactions/s, frozen for {values['frozen_seconds']} s\n")
        sys.stdout.write(done.stderr)
        assert application.refused
        shards.assert_equal()
        there = {row for (row,) in shards.target.execute(f"SELECT id FROM {name}.t")}
        assert there >= {row for ids in application.saved.values() for row in ids}
        certificate = SwitchCertificate.from_json(
            (tmp_path / f"{name}.certificate.json").read_text()
        )
        assert {t.table: t.frozen for t in certificate.targets}["bag"]
        assert not any(map(is_writable, shards.servers))
        assert task.cli("run", str(file)).returncode == 2
        refused = task.cli("compare", str(file), "--repair-now")
        assert refused.returncode == 2
        assert "was finished by `replicator switch`" in refused.stderr
        again = task.cli("switch", str(file))
        assert again.returncode == 0
        assert f"task {name} is finished" in again.stdout
        assert task.cli("switch", str(file), "--abort").returncode == 1


def test_an_aborted_switch_changes_nothing(writable: Shards, tmp_path: Path) -> None:
    shards, name = writable, writable.database
    file = write_task(tmp_path, shards.task())
    shards.change()
    with task_process(file, tmp_path) as task:
        task.until_state(name, "running")
        task.until_applied(name, shards.sources)
        shards.target.execute(f"DELETE FROM {name}.t LIMIT 1")
        done = task.cli("switch", str(file), "--freeze", patience=400)
        assert done.returncode == 1
        assert "1 rows missing" in done.stderr
        assert all(map(is_writable, shards.servers))
        assert task.cli("reconcile", name).returncode == 0
        shards.change()
        task.until_applied(name, shards.sources)
