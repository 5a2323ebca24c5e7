"""Rules that change are applied to the rows that are there, while readers see the target."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.crashes.test_crashes import stop
from tests.support.tasks.processes import task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import write_task

LEFT_OUT = "name = 'new'"
SLOW = pytest.mark.slow
MODES = ["pessimistic", pytest.param("optimistic", marks=SLOW), pytest.param("", marks=SLOW)]


@pytest.mark.remedy("task.rules-changed", "recopy")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("first", [False, True], ids=["added", "removed"])
def test_rows_are_corrected_by_the_new_filter(
    shards: Shards, database_name: str, tmp_path: Path, mode: str, first: bool
) -> None:
    """``first``: the filter is there at first, and removed then."""
    values = shards.task(**{"shard-mode": mode, "task-mode": "all"})
    for instance in values["mysql-instances"]:
        instance.pop("meta", None)
    rule = {"schema": database_name, "insert-value-expr": LEFT_OUT}
    rules = {table: {**rule, "table": table} for table in ("t1", "t2")}

    def write(*, filtered: bool) -> Path:
        more = {"expression-filter": rules} if filtered else {}
        for instance in values["mysql-instances"]:
            instance["expression-filters"] = list(rules) if filtered else []
        return write_task(tmp_path, {**values, **more})

    def is_filtered(filtered: bool) -> bool:
        columns = "id, name, n"
        tables = [(s, f"{database_name}.t{n}") for s in shards.servers for n in (1, 2)]
        wanted = union_of(tables, columns)
        if filtered:
            for row in [row for row in wanted if row[1] == b"new"]:
                del wanted[row]
        return rows_of(shards.target, f"{database_name}.t", columns) == wanted

    shards.change()
    with task_process(write(filtered=first), tmp_path) as task:
        task.until_logged("copy.finished")
        shards.change()
        task.until_applied(database_name, shards.sources)
        task.until(lambda: is_filtered(first), "rows by the former rules")
        stop(task, database_name)
    path = write(filtered=not first)
    with task_process(path, tmp_path) as task:
        task.until_state(database_name, "paused")
        found = [e for e in task.events() if "rules" in str(e.get("error", ""))]
        assert any(f"recopy {database_name} --target" in str(e["remedies"]) for e in found)
        task.cli("stop", database_name)
        task.process.wait()
    with task_process(path, tmp_path, "--on-changed-rules", "keep") as task:
        task.until_state(database_name, "running")
        shards.change()
        answer = task.cli("recopy", database_name, "--target", f"{database_name}.t")
        assert answer.returncode == 0, answer.stderr
        shards.change()
        task.until(lambda: is_filtered(not first), "rows by the new rules")
        shards.change()
        task.until_applied(database_name, shards.sources)
        task.until(lambda: is_filtered(not first), "rows by the new rules")
        stop(task, database_name)
