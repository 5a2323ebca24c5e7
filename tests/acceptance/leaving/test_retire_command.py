"""`replicator retire`: the command, its refusals, and kills at each step."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from replicator.failpoints import Failpoint
from tests.support.tasks.processes import TaskProcess, killed_at, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.tables import rows_of
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.also_tidb(slow=True)

STEPS = (Failpoint.SHARDS_LEFT, Failpoint.SHARDS_RETIRED)


def applied(task: TaskProcess, name: str) -> None:
    done = task.cli("wait", name)
    assert done.returncode == 0, done.stderr


def target_rows(shards: Shards) -> Counter[tuple[object, ...]]:
    return rows_of(shards.target, f"{shards.database}.t")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["", "optimistic", "pessimistic"])
def test_a_source_is_retired_after_kills_at_each_step(
    shards: Shards, tmp_path: Path, mode: str
) -> None:
    name = shards.database
    first, second = shards.servers
    values = shards.task(**{"shard-mode": mode})
    path = write_task(tmp_path, values)
    assert_refused(path, tmp_path, shards)
    for step in STEPS:
        with killed_at(step, path, tmp_path) as task:
            task.until_state(name, "running")
            shards.change()
            assert task.cli("retire", name, "--source", "b").returncode != 0
    with task_process(path, tmp_path) as task:
        task.until_state(name, "running")
        done = task.cli("retire", name, "--source", "b", "--timeout", "90s")
        assert done.returncode == 0, done.stderr
        applied(task, name)
        before = target_rows(shards)
        second.execute(f"INSERT INTO {name}.t1 VALUES (9000001, 'x', 0)")
        first.execute(f"INSERT INTO {name}.t1 VALUES (9000002, 'x', 0)")
        applied(task, name)
        assert sum((target_rows(shards) - before).values()) == 1
        found = json.loads(task.cli("shards", name, "--json").stdout)
        assert {s["source"] for s in found if s["retired"]} == {"b"}
        assert {s["source"] for s in found if not s["retired"]} == {"a"}
        assert "3 retired" in task.cli("shards", name).stdout
        status = json.loads(task.cli("status", name, "--json").stdout)
        assert [source["source"] for source in status["sources"]] == ["a"]
        assert len(status["retired"]) == 3
        done = task.cli("recopy", name, "--target", f"{name}.t", "--truncate")
        assert "task-mode" in done.stderr or "retired" in done.stderr
        assert task.cli("stop", name).returncode == 0
    left: dict[str, Any] = dict(values)
    for key in ("sources", "mysql-instances"):
        left[key] = [one for one in left[key] if one["source-id"] == "a"]
    path = write_task(tmp_path, left)
    with task_process(path, tmp_path) as task:
        task.until_state(name, "running")
        first.execute(f"INSERT INTO {name}.t1 VALUES (9000003, 'x', 0)")
        applied(task, name)
        done = task.cli("compare", str(path), "--repair-now")
        assert "it is retired" in done.stdout + done.stderr
        assert shards.target.execute(f"SELECT 1 FROM {name}.t WHERE id = 9000003")
        assert sum(target_rows(shards).values()) == sum(before.values()) + 2


@pytest.mark.slow
def test_changed_rules_do_not_empty_a_target_with_retired_rows(
    shards: Shards, tmp_path: Path
) -> None:
    name = shards.database
    values = shards.task(**{"task-mode": "all"})
    for instance in values["mysql-instances"]:
        instance.pop("meta", None)
    shards.change()
    path = write_task(tmp_path, values)
    with task_process(path, tmp_path) as task:
        task.until_state(name, "running")
        applied(task, name)
        done = task.cli("retire", name, "--source", "b")
        assert done.returncode == 0, done.stderr
        assert task.cli("stop", name).returncode == 0
    before = target_rows(shards)
    values["expression-filter"] = {
        "few": {"schema": name, "table": "t1", "insert-value-expr": "id < 5"}
    }
    for instance in values["mysql-instances"]:
        instance["expression-filters"] = ["few"]
    path = write_task(tmp_path, values)
    for options, way in (([], "--on-changed-rules keep"), (["--on-changed-rules", "recopy"], "")):
        with task_process(path, tmp_path, *options) as task:
            task.until_state(name, "paused")
            [fault] = [e for e in task.events() if e["event"] == "task.rules-changed"][-1:]
            ways = " ".join(fault["remedies"])
            assert way in ways
            assert "--on-changed-rules recopy" not in ways
            assert f"recopy {name} --target {name}.t" in ways
            assert target_rows(shards) == before
            task.cli("stop", name)
            task.process.wait()
    assert "retired shards" in fault["error"]


def assert_refused(path: Path, folder: Path, shards: Shards) -> None:
    name = shards.database
    with task_process(path, folder) as task:
        task.until_state(name, "running")
        unknown = task.cli("retire", name, "--shard", f"b:{name}.none")
        assert f"does not follow b: {name}.none" in unknown.stderr
        assert task.cli("retire", name, "--shard", "none").returncode == 2
        assert task.cli("retire", name).returncode == 2
        every = task.cli("retire", name, "--source", "a", "--source", "b")
        assert "no shard would be left: stop the task instead" in every.stderr
        assert task.cli("pause", name, "--target", f"{name}.t").returncode == 0
        shards.servers[1].execute(f"INSERT INTO {name}.t1 VALUES (9000000, 'x', 0)")
        held = task.cli("retire", name, "--shard", f"b:{name}.t1")
        assert held.returncode == 1
        [way] = json.loads(held.stderr)["remedies"]
        assert f"replicator resume {name} --target {name}.t" in way
        assert task.cli("resume", name, "--target", f"{name}.t").returncode == 0
    gone = task.cli("retire", name, "--source", "b")
    assert gone.returncode == 3
    assert "replicator run" in gone.stderr
