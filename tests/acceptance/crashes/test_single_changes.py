"""The process killed between the single changes that a coordinated statement comes to on TiDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.many_targets import ManyTargets
from tests.support.tasks.processes import killed_at, task_process
from tests.support.tasks.tables import rows_of, union_of

pytestmark = pytest.mark.slow

CHANGES = (
    "RENAME COLUMN a TO x, DROP INDEX i, ADD INDEX i (x, c), ADD c INT DEFAULT 3 AFTER x,"
    " MODIFY b BIGINT",
    "DROP gone, ADD gone VARCHAR(9) DEFAULT 'n' AFTER id, ALTER b SET DEFAULT 8,"
    " RENAME INDEX i TO j, ADD INDEX i (gone)",
    "CHANGE x a BIGINT AFTER gone, ADD x INT DEFAULT 2, DROP INDEX j, ADD INDEX j (a, x)",
)
DEATHS = (
    (Failpoint.DDL_RECORDED, 3),
    (Failpoint.DDL_EXECUTED, 2),
    (Failpoint.DDL_FINISHED, 1),
)
"""Where the process dies in each of them: the whole was tried, and how many singles are done."""


def test_killed_between_the_single_changes_of_a_shard_ddl(
    mysql_source: DatabaseServer,
    mariadb11_source: DatabaseServer,
    tidb_target: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    sources = {"a": mysql_source, "b": mariadb11_source}
    estate = ManyTargets(
        sources,
        tidb_target,
        database_name,
        tmp_path,
        tables=("t",),
        mode="pessimistic",
        columns="(id INT PRIMARY KEY, a INT DEFAULT 1, b INT, gone INT, KEY i (a))",
    )
    number = 0

    def rows() -> None:
        nonlocal number
        for source in sources:
            number += 10
            keys = ", ".join(f"({number + k}, {k})" for k in range(5))
            estate.do(
                source,
                f"INSERT INTO t (id, b) VALUES {keys}",
                f"UPDATE t SET b = id WHERE id % 3 = 0 OR id = {number}",
                f"DELETE FROM t WHERE id = {number + 2}",
            )

    for step, (change, (point, time)) in enumerate(zip(CHANGES, DEATHS, strict=True)):
        with killed_at(point, estate.file, tmp_path, time=time, alone=False) as task:
            if step == 0:
                task.until_state(estate.name, "running")
            for source in sources:
                rows()
                estate.do(source, f"ALTER TABLE t {change}")
            rows()

    def columns(server: DatabaseServer) -> list[str]:
        return [row[0] for row in server.execute("SHOW COLUMNS FROM t", database=estate.name)]

    def equal() -> bool:
        wanted = columns(mysql_source)
        if columns(tidb_target) != wanted:
            return False
        selected, name = ", ".join(wanted), estate.full("t")
        shards = [(server, name) for server in sources.values()]
        return rows_of(tidb_target, name, selected) == union_of(shards, selected)

    with task_process(estate.file, tmp_path) as task:
        task.until(equal, "equality")
        status = task.status(estate.name)
        assert status is not None
        assert (status.blocked, status.locks) == ((), ())
    keys = "SELECT INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA"
    found, wanted = (
        sorted(map(tuple, server.execute(f"{keys} = '{estate.name}' AND TABLE_NAME = 't'")))
        for server in (tidb_target, mysql_source)
    )
    assert found == wanted
