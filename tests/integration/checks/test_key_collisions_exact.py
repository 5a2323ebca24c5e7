"""All values of keys compared by a Spark job."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from anyio import to_thread
from pyspark import SparkContext

from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName
from replicator.pipeline.compare.compare_rows import CompareServers
from replicator.pipeline.compare.compare_structures import ComparedShard
from replicator.pipeline.duplicate_keys.key_collisions import compare_keys
from replicator.pipeline.duplicate_keys.key_plan import KeyRead, plan_key
from replicator.pipeline.duplicate_keys.key_sample import EXAMPLES, SharedValue, sample_key
from replicator.routing.columns.member_columns import MemberColumns
from replicator.sandbox.server import DatabaseServer
from replicator.schema.structure.inspection import read_table
from replicator.schema.structure.structure import Table, UniqueKey
from tests.support.tasks.checking import address
from tests.support.tasks.key_estate import Estate, numbered


@pytest.fixture
def estate(
    mariadb_source: DatabaseServer, mariadb_target: DatabaseServer, database_name: str
) -> Iterator[Estate]:
    made = Estate(database_name, mariadb_target, mariadb_source)
    yield made
    made.drop()


def shard_of(member: Member, table: Table) -> ComparedShard:
    return ComparedShard(member, replace(table, name=member.name.table), MemberColumns())


async def test_members_that_the_job_can_not_read_do_not_end_it(
    estate: Estate, spark: SparkContext
) -> None:
    estate.shard("a", "t1", "id INT PRIMARY KEY", "(1),(2)")
    estate.shard("a", "t2", "id INT PRIMARY KEY", "(2),(3)")
    where = address(estate.sources["a"])
    with closing(Connection(where)) as connection:
        table = await read_table(connection, TableName(estate.db, "t1"))
    assert table is not None
    members = [Member("a", TableName(estate.db, name)) for name in ("t1", "t2", "gone")]
    reads = [plan_key(5, shard_of(member, table), table, table.keys[0]) for member in members]
    parts = [[read] for read in reads if read is not None]
    servers = CompareServers(where, {"a": where})
    found = await to_thread.run_sync(compare_keys, spark, parts, servers)
    assert found.keys() == {5}
    tally = found[5]
    assert tally.failures.keys() == {members[2]}
    assert "gone" in tally.failures[members[2]]
    assert (tally.looked_at, tally.shared) == (4, 1)
    assert tally.by_member == {members[0]: 1, members[1]: 1}
    assert tally.examples == [SharedValue("2", (members[0], members[1]), 2)]


async def test_the_job_counts_as_a_sample_of_all_values_does(
    estate: Estate, spark: SparkContext
) -> None:
    text = "CONCAT(REPEAT('x', seq % 50), IF(seq % 3, 'A', 'a'))"
    for name, first, last in (("t1", 1, 60), ("t2", 31, 90), ("t3", 51, 100)):
        estate.shard("a", name, "id INT PRIMARY KEY, a VARCHAR(60)")
        estate.sources["a"].execute(
            f"USE {estate.db}",
            f"INSERT INTO {name} SELECT seq, {text} FROM seq_{first}_to_{last}",
        )
    where = address(estate.sources["a"])
    with closing(Connection(where)) as connection:
        table = await read_table(connection, TableName(estate.db, "t1"))
    assert table is not None
    keys = [UniqueKey("PRIMARY", ("id",)), UniqueKey("a", ("a", "id")), UniqueKey("b", ("a",))]
    servers = CompareServers(where, {"a": where})
    reads: list[list[KeyRead]] = [[], [], []]
    for number, key in enumerate(keys):
        for name in ("t1", "t2", "t3"):
            member = Member("a", TableName(estate.db, name))
            read = plan_key(number, shard_of(member, table), table, key)
            assert read is not None
            reads[number].append(read)
    found = await to_thread.run_sync(compare_keys, spark, reads, servers)
    for number, of_key in enumerate(reads):
        tally = found[number]
        expected = await to_thread.run_sync(sample_key, of_key, servers, 1000)
        assert expected.shared > EXAMPLES
        assert (tally.looked_at, tally.shared) == (expected.looked_at, expected.shared)
        assert (tally.looked_at, tally.shared) == (170, (60, 60, 50)[number])
        assert tally.by_member == expected.by_member
        assert len(tally.examples) == EXAMPLES
    by_value = {example.value: example for example in found[0].examples}
    for value, example in by_value.items():
        number = int(value)
        spans = {"t1": (1, 60), "t2": (31, 90), "t3": (51, 100)}
        names = [name for name, (low, high) in spans.items() if low <= number <= high]
        assert [member.name.table for member in example.members] == names
        assert example.rows == len(names)


def checked(estate: Estate, folder: Path, keys: str) -> tuple[int, list[dict[str, Any]]]:
    file = folder / "task.yaml"
    file.write_text(yaml.safe_dump(estate.task()), encoding="utf-8")
    command = [sys.executable, "-m", "cli", "check", str(file), "--keys", keys, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    results = json.loads(done.stdout)["checks"]
    return done.returncode, [result for result in results if result["name"] == "key_collisions"]


@pytest.mark.slow
def test_all_values_of_shards_on_several_servers(
    mariadb_source: DatabaseServer,
    mysql_source: DatabaseServer,
    mariadb_target: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    estate = Estate(database_name, mariadb_target, mariadb_source, mysql_source)
    try:
        numbered(estate, "t1", 1, 30_000)
        numbered(estate, "t2", 30_001, 60_000)
        columns = "id BIGINT PRIMARY KEY, u VARCHAR(20) NOT NULL UNIQUE"
        estate.shard("b", "t1", columns, "(77777,'n45000'),(88888,'N7 ')")
        code, (own, unique) = checked(estate, tmp_path, "exact")
        assert code == 1
        assert own["state"] == "passed"
        assert "all 60,002 values of " in own["finding"]
        db = estate.db
        assert unique["finding"].startswith("2 values are found more than once among the shards")
        assert f"n45000 (a: {db}.t2, b: {db}.t1)" in unique["finding"]
        assert f"n7 (a: {db}.t1, b: {db}.t1)" in unique["finding"].replace("N7 ", "n7")
    finally:
        estate.drop()
