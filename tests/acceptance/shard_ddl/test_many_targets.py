"""A backlog of many targets: segments that grow, plans that are shared, and a crash in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from replicator.mysql.names import quote
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.many_targets import ManyTargets
from tests.support.tasks.processes import killed_at, task_process

TARGETS = 40
ALIKE = "(id INT PRIMARY KEY, a INT)"
SHAPES = (
    *[ALIKE] * 5,
    "(id INT PRIMARY KEY, a BIGINT)",
    "(id INT PRIMARY KEY, a INT, s VARCHAR(3000) CHARACTER SET utf8mb4, UNIQUE u (id, a))",
    "(id INT, a INT, s TEXT)",
    "(id INT PRIMARY KEY, a INT, d DECIMAL(12,3), e ENUM('x','y') NOT NULL DEFAULT 'y')",
    "(id INT PRIMARY KEY, a INT, b BLOB NOT NULL DEFAULT 'ab')",
)
ROWS = (
    "INSERT INTO {t} (id, a) SELECT seq + {first}, NULLIF(seq % 5, 0) FROM seq_1_to_200",
    "INSERT INTO {t} (id, a) SELECT seq + {first} + 500, seq FROM seq_1_to_100",
    "UPDATE {t} SET a = a + 1 WHERE id % 3 = 0",
    "DELETE FROM {t} WHERE id % 7 = 0",
    "UPDATE {t} SET id = id + 5000 WHERE id % 11 = 0",
)
LARGE = "UPDATE {t} SET s = REPEAT('é\\t', 700) WHERE id % 4 = 0"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["", "pessimistic"], ids=["uncoordinated", "pessimistic"])
def test_a_backlog_of_many_targets(
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
    mode: str,
) -> None:
    sources = {"a": mariadb_source, "b": mariadb_source_full}
    names = [f"t{number}" for number in range(TARGETS - 2)] + ["odd `name", "größe"]
    tables = {name: quote(name) for name in names}
    shapes = {name: SHAPES[number % len(SHAPES)] for number, name in enumerate(names)}
    estate = ManyTargets(
        sources, target_server, database_name, tmp_path, tables=names, mode=mode, columns=shapes
    )
    wide = [name for name, shape in shapes.items() if " s " in shape]
    with task_process(estate.file, tmp_path) as task:
        task.until_state(estate.name, "running")
        for first, source in enumerate(sources):
            estate.do(source, f"INSERT INTO t0 (id, a) VALUES ({first}, NULL)")
        estate.until_equal(task, "t0")
    for step, sql in enumerate(ROWS):
        for number, source in enumerate(sources):
            first = 100_000 * (1 + number)
            estate.do(source, *(sql.format(t=tables[name], first=first) for name in names))
            estate.do(source, *(LARGE.format(t=tables[name]) for name in wide))
        if step == 2:
            for source in sources:
                estate.do(
                    source, *(f"ALTER TABLE {tables[name]} ADD more INT" for name in names[::7])
                )
                estate.do(source, *(f"UPDATE {tables[name]} SET more = id" for name in names[::7]))
    with killed_at(Failpoint.BUCKET_COMMITTED, estate.file, tmp_path, time=10):
        pass
    with task_process(estate.file, tmp_path) as task:
        estate.until_equal(task)
