"""Shards that count up by themselves, with equal keys: each of both rules keeps them apart, also
where the process dies meanwhile."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.processes import killed_at, task_process
from tests.support.tasks.tables import rows_of
from tests.support.tasks.task_files import task_dict, write_task

STEPS = {
    "extracted": (Failpoint.CHUNK_COMMITTED, Failpoint.BUCKET_COMMITTED),
    "mapped": (Failpoint.CHUNK_RECORDED, Failpoint.ROWS_WRITTEN),
}
SHARD = "(id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50), n INT)"
TARGETS = {
    "extracted": "(shard CHAR(1), id INT UNSIGNED, name VARCHAR(50), n INT, source VARCHAR(5),"
    " PRIMARY KEY (shard, id, source))",
    "mapped": "(id BIGINT PRIMARY KEY, name VARCHAR(50), n INT)",
}


class Estate:
    """``t1`` and ``t2`` of two sources, with the same keys."""

    def __init__(
        self, means: str, sources: list[DatabaseServer], target: DatabaseServer, database: str
    ) -> None:
        self.means = means
        self.sources = dict(zip("ab", sources, strict=True))
        self.target = target
        self.database = database
        target.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t {TARGETS[means]}")
        for server in sources:
            server.execute(f"CREATE DATABASE {database}")
            for table in ("t1", "t2"):
                server.execute(f"CREATE TABLE {table} {SHARD}", database=database)
        self.columns = "id, name, n"

    def task(self) -> dict[str, Any]:
        name = self.database
        values = task_dict(
            name, self.sources, self.target, schema=name, target_schema=name, **self._rules()
        )
        values |= {"task-mode": "all", "shard-mode": "pessimistic"}
        values["writer"] = {"batch-bytes": "64KiB"}
        values["mydumpers"] = {"small": {"rows": 150}}
        for source, instance in zip(self.sources, values["mysql-instances"], strict=True):
            del instance["meta"]
            instance["mydumper-config-name"] = "small"
            if self.means == "mapped":
                instance["column-mapping-rules"] = [source]
        if self.means == "extracted":
            values["routes"]["merge"] |= {
                "extract-table": {"table-regexp": "t(.)", "target-column": "shard"},
                "extract-source": {"source-regexp": "(.*)", "target-column": "source"},
            }
        return values

    def _rules(self) -> dict[str, Any]:
        if self.means == "extracted":
            return {}
        rule = {"schema-pattern": self.database, "expression": "partition id"}
        return {
            "column-mappings": {
                source: {**rule, "target-column": "id", "arguments": [number, "", "t"]}
                for number, source in enumerate(self.sources, start=1)
            }
        }

    def change(self) -> None:
        for server in self.sources.values():
            for table in ("t1", "t2"):
                values = ",".join(f"('row',{n})" for n in range(200))
                server.execute(
                    f"INSERT INTO {table} (name, n) VALUES {values}",
                    f"UPDATE {table} SET name='new' WHERE n % 3 = 0",
                    f"UPDATE {table} SET id = id + 1000000 WHERE n % 7 = 0 AND id < 1000000",
                    f"DELETE FROM {table} WHERE n % 5 = 0 ORDER BY id LIMIT 30",
                    database=self.database,
                )

    def alter(self) -> None:
        for server in self.sources.values():
            for table in ("t1", "t2"):
                server.execute(f"ALTER TABLE {table} ADD c INT DEFAULT 5", database=self.database)
        self.columns = "id, name, n, c"

    def wanted(self) -> Counter[tuple[object, ...]]:
        found: Counter[tuple[object, ...]] = Counter()
        for place, (source, server) in enumerate(self.sources.items(), start=1):
            for number in (1, 2):
                rows = rows_of(server, f"{self.database}.t{number}", self.columns)
                for (key, *row), count in rows.items():
                    assert isinstance(key, bytes)
                    if self.means == "mapped":
                        value = int(key) | place << 59 | number << 51
                        found[(b"%d" % value, *row)] += count
                    else:
                        found[(b"%d" % number, source.encode(), key, *row)] += count
        return found

    def there(self) -> Counter[tuple[object, ...]]:
        names = "" if self.means == "mapped" else "shard, source, "
        return rows_of(self.target, f"{self.database}.t", f"{names}{self.columns}")


@pytest.mark.slow
@pytest.mark.parametrize("means", TARGETS)
def test_equal_keys_survive_killed_processes(
    means: str,
    mariadb_source: DatabaseServer,
    mysql_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    estate = Estate(means, [mariadb_source, mysql_source], target_server, database_name)
    path = write_task(tmp_path, estate.task())
    for _ in range(3):
        estate.change()
    for point in STEPS[means]:
        with killed_at(point, path, tmp_path, time=2) as task:
            # One batch may have all rows of a change.
            while task.process.poll() is None:
                estate.change()
        estate.change()
    with task_process(path, tmp_path) as task:
        task.until_applied(estate.database, estate.sources)
        assert estate.there() == estate.wanted()
        estate.alter()
        estate.change()
        task.until(lambda: "c" in columns_of_target(estate), "the new column")
        task.until(lambda: estate.there() == estate.wanted(), "equal rows")


def columns_of_target(estate: Estate) -> set[object]:
    rows = estate.target.execute(f"SHOW COLUMNS FROM {estate.database}.t")
    return {row[0] for row in rows}
