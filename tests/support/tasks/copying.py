"""Task files for copying the tables of `Shards`, and what the target and a source tell of it."""

from __future__ import annotations

from typing import Any

import anyio

from actors.task.generation import Generation
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE
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


def slow_copy(merging: Merging, rows_per_second: int) -> Merging:
    """Give a merge a full copy in small chunks, whose rows replace those in their way."""
    merging.mode = "all"
    merging.more |= {
        "mydumpers": {"small": {"rows": 50, "threads": 1}},
        "loaders": {"moving": {"on-duplicate-logical": "replace"}},
        "copy": {"rows-per-second": rows_per_second},
    }
    merging.instance = {"mydumper-config-name": "small", "loader-config-name": "moving"}
    return merging


async def copied_some(generation: Generation, chunks: int) -> None:
    """Wait until a full copy has copied so many chunks."""
    with anyio.fail_after(PATIENCE):
        while generation.copy is None or generation.copy.progress.chunks < chunks:
            await anyio.sleep(LOOK_SECONDS)
