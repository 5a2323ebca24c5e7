"""What of a task file the checks look at."""

from __future__ import annotations

from typing import Any

import pytest

import config
from actors.task.startup.check_scope import task_to_check

TASK: dict[str, Any] = {
    "name": "merge",
    "target-database": {"host": "127.0.0.1", "port": 1, "user": "u"},
    "sources": [{"source-id": "a", "from": {"host": "127.0.0.1", "port": 1, "user": "u"}}],
    "mysql-instances": [{"source-id": "a", "meta": {"binlog-name": "b.000007"}}],
}


@pytest.mark.parametrize(
    ("mode", "start", "reads", "copies"),
    [
        ("incremental", "b.000007", True, False),
        ("all", None, True, True),
        ("full", None, False, True),
    ],
)
async def test_the_start_in_the_task_file_counts_only_without_a_copy(
    mode: str, start: str | None, reads: bool, copies: bool
) -> None:
    found = await task_to_check(config.Task.model_validate({**TASK, "task-mode": mode}))
    (source,) = found.sources
    assert (source.start.binlog.file if source.start else None) == start
    assert (source.reads_binlog, source.copies_rows) == (reads, copies)
    assert not found.resuming
