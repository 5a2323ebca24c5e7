"""The main job in one process: shards of several sources into one table."""

from __future__ import annotations

from pathlib import Path

from pyspark import SparkContext

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.running import caught_up, running
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import load, task_dict


async def test_inserts_updates_and_deletes_of_two_sources_arrive(
    spark: SparkContext,
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    db = database_name
    sources = {"a": mariadb_source, "b": mariadb_source_full}
    table = "(id INT PRIMARY KEY, name VARCHAR(20), n INT UNSIGNED)"
    target_server.execute(f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t {table}")
    for server in sources.values():
        server.execute(f"CREATE DATABASE {db}")
        for shard in ("t1", "t2"):
            server.execute(f"CREATE TABLE {db}.{shard} {table}")
    task = load(tmp_path, task_dict(db, sources, target_server, schema=db, target_schema=db))
    async with running(task, spark) as generation:
        for number, (server, shard) in enumerate(
            (s, t) for s in sources.values() for t in ("t1", "t2")
        ):
            first = 1000 * number
            server.execute(
                f"INSERT INTO {db}.{shard} VALUES "
                + ",".join(f"({first + i}, 'row {i}', 4294967295)" for i in range(100)),
                f"UPDATE {db}.{shard} SET name = 'changed' WHERE id % 3 = 0",
                f"DELETE FROM {db}.{shard} WHERE id % 5 = 0",
                f"UPDATE {db}.{shard} SET id = id + 500 WHERE id % 7 = 0",
            )
        await caught_up(generation, sources)
        shards = [(s, f"{db}.{t}") for s in sources.values() for t in ("t1", "t2")]
        assert rows_of(target_server, f"{db}.t") == union_of(shards)
        assert len(rows_of(target_server, f"{db}.t")) == 4 * 80
