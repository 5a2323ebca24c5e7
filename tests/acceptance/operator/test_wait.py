"""`replicator wait`: it returns when the target has everything, or says why it will not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.servers.binlog_ends import end_of
from tests.support.tasks.processes import PATIENCE, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow


def test_when_it_returns_the_target_has_the_rows(shards: Shards, tmp_path: Path) -> None:
    name = shards.database
    with task_process(write_task(tmp_path, shards.task()), tmp_path) as task:
        # At once after the start, as a script does.
        done = task.cli("wait", name)
        assert done.returncode == 0, done.stderr
        for _ in range(3):
            shards.change()
            done = task.cli("wait", name, "--json")
            assert done.returncode == 0, done.stderr
            _equal(shards)
        values = json.loads(done.stdout)
        assert values["applied"]
        assert [source["source"] for source in values["sources"]] == ["a", "b"]

        [first, _] = shards.servers
        first.execute(f"INSERT INTO {name}.t1 VALUES (1000001, 'x', 0)")
        [[gtid]] = first.execute("SELECT @@GLOBAL.gtid_binlog_pos")
        done = task.cli("wait", name, "--for", f"a={gtid}", "--timeout", "60s")
        assert done.returncode == 0, done.stderr
        assert "everything is applied" in done.stdout
        assert first.execute(f"SELECT 1 FROM {name}.t1 WHERE id = 1000001")
        assert shards.target.execute(f"SELECT 1 FROM {name}.t WHERE id = 1000001")

        end = end_of(first)
        done = task.cli("wait", name, "--for", f"a={end.file}:{end.offset + 1}", "--timeout", "1s")
        assert done.returncode == 1
        assert "the time is over; a is applied up to" in done.stderr
        assert json.loads(done.stderr)["remedies"]
        assert task.cli("wait", name, "--for", "c=bin.000001:4").returncode == 2
    assert task.cli("wait", name, "--timeout", "1s").returncode == 3


def test_a_lock_and_a_pause_are_reasons(shards: Shards, tmp_path: Path) -> None:
    name = shards.database
    first, second = shards.servers
    alter = "ADD COLUMN more INT"
    values = shards.task(**{"shard-mode": "pessimistic"})
    with task_process(write_task(tmp_path, values), tmp_path) as task:
        task.until_state(name, "running")
        first.execute(
            f"ALTER TABLE {name}.t1 {alter}",
            f"INSERT INTO {name}.t1 VALUES (1000001, 'held', 0, 7)",
        )
        done = task.cli("wait", name)
        assert done.returncode == 1
        assert f"the lock {name}.t:1 is open, 3 shards lack its statement: ALTER" in done.stderr
        ways = json.loads(done.stderr)["remedies"]
        assert any("unlock-ddl-lock" in way for way in ways), ways

        for server, table in ((first, "t2"), (second, "t1"), (second, "t2")):
            server.execute(f"ALTER TABLE {name}.{table} {alter}")
        done = task.cli("wait", name)
        assert done.returncode == 0, done.stderr
        assert shards.target.execute(f"SELECT more FROM {name}.t WHERE id = 1000001") == ((7,),)
        shards.change()
        assert task.cli("wait", name).returncode == 0
        _equal(shards)

        assert task.cli("pause", name, "--target", f"{name}.t").returncode == 0
        first.execute(f"INSERT INTO {name}.t1 VALUES (1000002, 'held', 0, 8)")
        done = task.cli("wait", name)
        assert done.returncode == 1
        assert f"the target {name}.t is blocked by the operator" in done.stderr
        resume = f"replicator resume {name} --target {name}.t"
        assert any(resume in way for way in json.loads(done.stderr)["remedies"])
        assert task.cli("resume", name, "--target", f"{name}.t").returncode == 0
        assert task.cli("wait", name).returncode == 0
        assert shards.target.execute(f"SELECT 1 FROM {name}.t WHERE id = 1000002")

        assert task.cli("pause", name).returncode == 0
        assert task.cli("wait", name).returncode == 0, "a paused task has what it had applied"
        first.execute(f"INSERT INTO {name}.t1 VALUES (1000003, 'later', 0, 9)")
        done = task.cli("wait", name)
        assert done.returncode == 1
        assert "the task is paused" in done.stderr
        assert f"replicator resume {name}" in json.loads(done.stderr)["remedies"][0]


def test_a_watch_waits_for_the_start_and_the_time_counts_from_it(
    shards: Shards, tmp_path: Path
) -> None:
    name = shards.database
    file = write_task(tmp_path, shards.task())
    with task_process(file, tmp_path) as task:
        task.until_state(name, "running")
        assert task.cli("stop", name).returncode == 0
        env = dict(task.env)
    command = [sys.executable, "-m", "cli", "status", name, "--watch"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        assert watch.stdout.readline().startswith(f"waiting for task {name}: ")
        with task_process(file, tmp_path) as task:
            first = task.until_state(name, "running")
            assert task.cli("pause", name).returncode == 0
            assert task.cli("resume", name).returncode == 0
            again = task.until_state(name, "running")
            assert first.started == again.started
            assert first.started is not None
            assert first.started <= first.since <= again.since
            assert task.cli("stop", name).returncode == 0
        assert watch.wait(PATIENCE) == 0


def _equal(shards: Shards) -> None:
    name = shards.database
    tables = [(server, f"{name}.{table}") for server in shards.servers for table in ("t1", "t2")]
    assert rows_of(shards.target, f"{name}.t") == union_of(tables)
    bags = [(server, f"{name}.bag") for server in shards.servers]
    assert rows_of(shards.target, f"{name}.bag") == union_of(bags)
