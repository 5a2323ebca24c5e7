"""Checks of shards that compare a key by the different default collations of their servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from replicator.checks.checked_task import TaskToCheck
from replicator.checks.result import CheckResult
from replicator.checks.schema.structures import check_structures
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.checking import address, failures, one, routed, statements_of, task
from tests.support.tasks.merging import Merging

Servers = dict[str, DatabaseServer]
MODES: dict[str, dict[str, bool]] = {
    "pessimistic": {"equal_structures": True},
    "optimistic": {"equal_structures": False, "joins_structures": True},
    "no shard mode": {"equal_structures": False},
}


@pytest.fixture(scope="module", params=["of MariaDB 10", "of MariaDB 11"])
def both(
    request: pytest.FixtureRequest,
    mariadb_source: DatabaseServer,
    mariadb11_source: DatabaseServer,
    mysql_source: DatabaseServer,
) -> Servers:
    first = mariadb_source if request.param == "of MariaDB 10" else mariadb11_source
    return {"a": first, "b": mysql_source}


@pytest.fixture
def texts(both: Servers, database_name: str) -> Iterator[str]:
    """A schema with a shard on each server, whose key has the server's default collation."""
    create = f"CREATE TABLE {database_name}.t1 (k VARCHAR(20) PRIMARY KEY, v INT) CHARSET utf8mb4"
    for server in both.values():
        server.execute(f"CREATE DATABASE {database_name}", create)
    yield database_name
    for server in both.values():
        server.execute(f"DROP DATABASE {database_name}")


@pytest.fixture
def merged(mariadb_target: DatabaseServer) -> Iterator[DatabaseServer]:
    yield mariadb_target
    mariadb_target.execute("DROP DATABASE IF EXISTS merged")


def checked(both: Servers, schema: str, target: DatabaseServer, **mode: Any) -> TaskToCheck:
    sources = [
        routed(address(server), schema=schema, source_id=name) for name, server in both.items()
    ]
    return task(*sources, target=target, task_mode="all", **mode)


def remedy(result: CheckResult, words: str) -> list[str]:
    (text,) = [text for text in result.remedies if words in text]
    return statements_of(CheckResult(result.name, result.where, result.state, "", (text,)))


@pytest.mark.cures("schema_of_shard_tables")
@pytest.mark.parametrize("mode", ["pessimistic", "no shard mode"])
@pytest.mark.parametrize("made", [False, True], ids=["target missing", "target made like a shard"])
async def test_a_target_that_distinguishes_all_texts_suits_all_shards(
    both: Servers, texts: str, merged: DatabaseServer, mode: str, made: bool
) -> None:
    if made:
        merged.execute(
            "CREATE DATABASE merged",
            "CREATE TABLE merged.t (k VARCHAR(20) PRIMARY KEY, v INT)"
            " CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
        )
    wanted = checked(both, texts, merged, **MODES[mode])
    state = "failed" if mode == "pessimistic" else "warning"
    found = one(await check_structures(wanted), "schema_of_shard_tables", state)
    assert f"utf8mb4_0900_ai_ci (b: {texts}.t1)" in found.finding
    assert "two rows have one key there" in found.finding
    for statement in remedy(found, "Let the target"):
        merged.execute(statement)
    assert {r.state for r in await check_structures(wanted)} == {"passed"}


@pytest.mark.cures("schema_of_shard_tables")
@pytest.mark.parametrize("mode", MODES)
async def test_shards_get_one_collation(
    both: Servers, texts: str, merged: DatabaseServer, mode: str
) -> None:
    wanted = checked(both, texts, merged, **MODES[mode])
    state = "warning" if mode == "no shard mode" else "failed"
    found = one(await check_structures(wanted), "schema_of_shard_tables", state)
    (text,) = [text for text in found.remedies if "give the shards one collation" in text]
    for part in text.split(" on ")[1:]:
        source, _, statement = part.partition(": ")
        both[source].execute(statement.rstrip("; "))
    results = await check_structures(wanted)
    assert failures(results) == set()
    one(results, "schema_of_shard_tables", "passed")


async def test_rows_whose_keys_only_one_shard_distinguishes_are_merged(
    spark: SparkContext,
    tmp_path: Path,
    both: Servers,
    mariadb_target: DatabaseServer,
    database_name: str,
) -> None:
    merging = Merging(spark, tmp_path, both, mariadb_target, database_name)
    columns = "(k VARCHAR(20) PRIMARY KEY, v INT) CHARSET utf8mb4"
    merging.create("x", columns, with_target=False)
    merging.on(both["a"], "INSERT INTO x_1 VALUES ('a', 1), ('e', 1)")
    merging.on(both["b"], "INSERT INTO x_1 VALUES ('A', 2), ('a ', 2)")
    sources = [
        routed(address(server), schema=database_name, table="x_*", source_id=name)
        for name, server in both.items()
    ]
    found = one(
        await check_structures(task(*sources, target=mariadb_target)),
        "schema_of_shard_tables",
        "failed",
    )
    for statement in remedy(found, "Let the target"):
        mariadb_target.execute(statement.replace("`merged`.`t`", f"{database_name}.x"))
    mariadb_target.execute("DROP DATABASE merged")
    merging.more["shard-mode"] = "pessimistic"
    merging.changed(mode="all")
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.on(
            both["b"], "UPDATE x_1 SET v = 3 WHERE k = 'A'", "INSERT INTO x_1 VALUES ('f', 3)"
        )
        merging.on(both["a"], "DELETE FROM x_1 WHERE k = 'e'")
        await merging.check(generation)
