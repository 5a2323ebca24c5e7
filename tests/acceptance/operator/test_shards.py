"""`replicator shards`: every shard with its rows, and what it lacks."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.tasks.processes import task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task


@pytest.mark.slow
def test_every_shard_is_listed_with_what_it_lacks(shards: Shards, tmp_path: Path) -> None:
    name = shards.database
    first, _ = shards.servers
    values = shards.task(**{"shard-mode": "pessimistic"})
    with task_process(write_task(tmp_path, values), tmp_path) as task:
        task.until_state(name, "running")
        first.execute(
            f"INSERT INTO {name}.t1 VALUES (1, 'a', 0)",
            f"INSERT INTO {name}.t1 VALUES (2, 'b', 0)",
            f"INSERT INTO {name}.bag VALUES (1, 'b')",
            f"ALTER TABLE {name}.t1 ADD COLUMN more INT",
        )
        assert task.cli("wait", name).returncode == 1
        done = task.cli("shards", name, "--json")
        assert done.returncode == 0, done.stderr
        found = {(s["source"], s["table"]): s for s in json.loads(done.stdout)}
        tables = (f"{name}.bag", f"{name}.t1", f"{name}.t2")
        assert set(found) == {("a", table) for table in tables} | {("b", t) for t in tables}
        altered = found["a", f"{name}.t1"]
        assert (altered["rows"], altered["target"]) == (2, f"{name}.t")
        assert altered["lacks"] == []
        age = datetime.now(UTC) - datetime.fromisoformat(altered["last_change"])
        assert timedelta(seconds=-2) < age < timedelta(minutes=5)
        assert found["a", f"{name}.bag"]["rows"] == 1
        other = found["b", f"{name}.t2"]
        assert (other["rows"], other["last_change"]) == (0, None)
        [lacking] = other["lacks"]
        assert "ADD COLUMN more INT" in lacking
        assert other["unreadable"] == ""
        shown = task.cli("shards", name).stdout
        assert "6 shards of 2 targets, 3 not as their target" in shown
        assert f"more INT: a: {name}.t2, b: {name}.t1, b: {name}.t2" in shown
    assert task.cli("shards", name).returncode == 3
