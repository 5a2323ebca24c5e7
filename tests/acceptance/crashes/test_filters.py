"""A task with expression filters, killed in its full copy and in batches with filtered rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.acceptance.crashes.test_crashes import stop
from tests.support.tasks.copying import copy_task
from tests.support.tasks.processes import killed_at, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import write_task

LEFT_OUT = {"t": "n % 4 = 1 OR (name = 'NEW' AND n % 2 = 0)", "bag": "b = 'Y' OR a < 5"}
"""By target, which rows are left out. Changes of the shards move rows across the border, both ways:
as updates that are inserts or deletes to the target."""

# Both targets are written in each life, perhaps in one batch: no step is sure to come three times.
LIVES = (
    (Failpoint.CHUNK_WRITTEN, 2),
    (Failpoint.CHUNK_COMMITTED, 2),
    (Failpoint.ROWS_WRITTEN, 2),
    (Failpoint.BUCKET_COMMITTED, 2),
)


def filtered_task(shards: Shards) -> dict[str, Any]:
    values = copy_task(shards)
    rules = {
        table: {
            "schema": shards.database,
            "table": table,
            "insert-value-expr": LEFT_OUT[table.rstrip("12")],
        }
        for table in ("t1", "t2", "bag")
    }
    values["expression-filter"] = rules
    for instance in values["mysql-instances"]:
        instance["expression-filters"] = list(rules)
    return values


def assert_filtered(shards: Shards) -> None:
    """The target holds the rows of the shards for which the expressions are not true."""
    db, servers = shards.database, shards.servers
    for target, tables in (("t", ("t1", "t2")), ("bag", ("bag",))):
        kept = f"WHERE ({LEFT_OUT[target]}) IS NOT TRUE"
        names = [(server, f"{db}.{table} {kept}") for server in servers for table in tables]
        expected = union_of(names)
        assert expected
        assert rows_of(shards.target, f"{db}.{target}") == expected, target


@pytest.mark.slow
@pytest.mark.also_tidb(slow=True)
def test_killed_at_any_step_a_task_leaves_out_what_it_must(
    mariadb_source: DatabaseServer,
    mysql_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    shards = Shards([mariadb_source, mysql_source], target_server, database_name)
    shards.change()
    path = write_task(tmp_path, filtered_task(shards))
    for point, count in LIVES:
        with killed_at(point, path, tmp_path, time=count):
            shards.change()
    shards.change()
    with task_process(path, tmp_path) as task:
        task.until_applied(shards.database, shards.sources)
        assert_filtered(shards)
        status = task.status(shards.database)
        assert status is not None
        assert all(target.filtered for target in status.targets)
        stop(task, shards.database)
