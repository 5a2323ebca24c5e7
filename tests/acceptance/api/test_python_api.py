"""The Python API: its calls, and the notebook that shows them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from replicator.api.comparison import differences_table
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.column_types import Literal
from replicator.pipeline.compare.doubts import RowDifference
from tests.support.tasks.processes import PATIENCE, TaskProcess, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

NOTEBOOK = Path(__file__).parents[3] / "docs/reference/rows-that-differ.ipynb"

CALLS = """
import json, sys
from replicator.api import Task

by_name, by_file = Task.open(sys.argv[1]), Task.open(sys.argv[2])
assert by_name.name == by_file.name
status = by_name.status()
assert status.state == "running", status
[lock] = by_name.locks()
assert "ADD COLUMN more INT" in lock.ddl, lock
assert {shard.source for shard in by_file.shards()} == {"a", "b"}
waited = by_file.wait(timeout=30)
assert not waited.reached and "the lock" in waited.reasons[0], waited
assert not by_name.wait("2100-01-01 00:00:00", timeout=0.1).reached
try:
    by_name.compare()
except ValueError as error:
    assert "task file" in str(error), error
else:
    raise AssertionError("compared without a task file")
"""

EXECUTE = """
import asyncio, json, sys

async def execute(path):
    names = {}
    for cell in json.load(open(path))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    rows = names["rows"].to_pylist()
    print(json.dumps([rows, names["compared"].equal, names["counts"]], default=repr))

asyncio.run(execute(sys.argv[1]))
"""
"""A notebook's cells run inside an event loop."""


def python(task: TaskProcess, code: str, *arguments: object, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**task.env, **env},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_program_asks_a_task_and_waits_for_it(shards: Shards, tmp_path: Path) -> None:
    name = shards.database
    file = write_task(tmp_path, shards.task(**{"shard-mode": "pessimistic"}))
    with task_process(file, tmp_path) as task:
        task.until_state(name, "running")
        shards.servers[0].execute(f"ALTER TABLE {name}.t1 ADD COLUMN more INT")
        assert task.cli("wait", name).returncode == 1
        python(task, CALLS, name, file)


@pytest.mark.slow
def test_the_notebook_finds_the_rows_that_differ(shards: Shards, tmp_path: Path) -> None:
    name = shards.database
    file = write_task(tmp_path, shards.task())
    with task_process(file, tmp_path) as task:
        task.until_state(name, "running")
        shards.servers[0].execute(f"INSERT INTO {name}.t1 VALUES (1, 'a', 1), (2, 'b', 2)")
        assert task.cli("wait", name).returncode == 0
        shards.target.execute(
            f"DELETE FROM {name}.t WHERE id = 1",
            f"UPDATE {name}.t SET n = 3 WHERE id = 2",
            f"INSERT INTO {name}.t VALUES (3, 'tab\\tand \\\\', NULL)",
        )
        printed = python(task, EXECUTE, NOTEBOOK, TASK_FILE=str(file))
    rows, equal, counts = json.loads(printed)
    assert not equal
    assert {row.pop("in_shard.id") or row["on_target.id"]: row for row in rows} == {
        "1": {
            "kind": "missing",
            "shard": f"a: {name}.t1",
            "times": 1,
            "on_target.id": None,
            "in_shard.name": "a",
            "on_target.name": None,
            "in_shard.n": "1",
            "on_target.n": None,
        },
        "2": {
            "kind": "different",
            "shard": f"a: {name}.t1",
            "times": 1,
            "on_target.id": "2",
            "in_shard.name": "b",
            "on_target.name": "b",
            "in_shard.n": "2",
            "on_target.n": "3",
        },
        "3": {
            "kind": "extra",
            "shard": "",
            "times": 1,
            "on_target.id": "3",
            "in_shard.name": None,
            "on_target.name": "tab\tand \\",
            "in_shard.n": None,
            "on_target.n": None,
        },
    }
    assert sorted((row["kind"], row["times_sum"]) for row in counts) == [
        ("different", 1),
        ("extra", 1),
        ("missing", 1),
    ]


def test_binary_values_are_bytes_and_null_is_null() -> None:
    columns = [TargetColumn("b", Literal.BINARY), TargetColumn("s", Literal.QUOTED)]
    found = RowDifference(b"1", None, b"\xff\\t\t\\N", "a")
    [row] = differences_table(columns, [found]).to_pylist()
    assert (row["in_shard.b"], row["on_target.b"], row["in_shard.s"]) == (b"\xff\t", None, None)
    assert row["kind"] == "missing"
