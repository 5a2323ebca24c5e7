"""Task files for copying the tables of `Shards`, and what the target and a source tell of it."""

from __future__ import annotations

from typing import Any

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.shards import Shards


def copy_task(shards: Shards, *, mode: str = "all", rows: int = 100, **more: Any) -> dict[str, Any]:
    """The task of `Shards`, with a full copy in chunks of so many rows."""
    values = shards.task(**more)
    values["task-mode"] = mode
    values["mydumpers"] = {"small": {"rows": rows, "threads": 2}}
    for instance in values["mysql-instances"]:
        del instance["meta"]
        instance["mydumper-config-name"] = "small"
    return values


def copied_rows(shards: Shards) -> int:
    """Rows of the chunks that are recorded as done."""
    name = shards.database
    ((rows,),) = shards.target.execute(
        f"SELECT IFNULL(SUM(row_count), 0) FROM {name}_meta.{name}_chunk WHERE state = 1"
    )
    return int(str(rows))


def rows_sent(server: DatabaseServer) -> int:
    """How many rows a server has sent to all its clients since it was started."""
    ((_, count),) = server.execute("SHOW GLOBAL STATUS LIKE 'Rows_sent'")
    return int(str(count))
