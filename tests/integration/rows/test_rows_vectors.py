"""Vectors arrive bit by bit, on servers that have them and on those that have bytes for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkContext

from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.mariadb11 import MariaDB11Server
from tests.support.tasks.merging import Merging

COLUMNS = "(id INT PRIMARY KEY, a VARCHAR(9), v VECTOR(3), b TEXT)"
KEYLESS = COLUMNS.replace(" PRIMARY KEY", "")


def rows(given: str) -> str:
    return (
        f"(1, 'a', {given}('[1,2,3]'), 'b'), (2, NULL, NULL, NULL),"
        f" (3, 'c', {given}('[-0.1,1e15,3e-30]'), 'z')"
    )


def changes(table: str, given: str) -> list[str]:
    return [
        f"UPDATE {table} SET v = {given}('[9,-8,0]') WHERE id = 2",
        f"UPDATE {table} SET v = NULL WHERE id = 1",
        f"DELETE FROM {table} WHERE id = 3",
        f"INSERT INTO {table} VALUES (4, 'd', {given}('[4,5,6]'), NULL)",
    ]


@pytest.mark.parametrize(
    "kinds", ["mariadb11_source mysql_source", "mysql_source mariadb11_source"]
)
async def test_vectors_go_from_maker_to_maker(
    spark: SparkContext,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    database_name: str,
    kinds: str,
) -> None:
    source, target = map(request.getfixturevalue, kinds.split())
    merging = Merging(spark, tmp_path, {"a": source}, target, database_name)
    given = "STRING_TO_VECTOR" if kinds.startswith("mysql") else "VEC_FromText"
    merging.mode = "all"
    for table, columns in {"x": COLUMNS, "y": KEYLESS}.items():
        merging.create(table, columns, with_target=False)
        merging.do(f"INSERT INTO {table}_1 VALUES {rows(given)}")
    async with merging.running() as generation:
        await merging.copied(generation)
        for table in ("x_1", "y_1"):
            merging.do(
                *changes(table, given),
                f"ALTER TABLE {table} ADD w VECTOR(1)",
                f"UPDATE {table} SET w = {given}('[0.5]') WHERE id = 4",
            )
        await merging.check(generation)


async def test_a_vector_index(
    spark: SparkContext,
    tmp_path: Path,
    mariadb11_source: DatabaseServer,
    start_server: StartServer,
    database_name: str,
) -> None:
    """It is a table of the server's own, which goes with the one that it is for."""
    target = start_server(MariaDB11Server)
    merging = Merging(spark, tmp_path, {"a": mariadb11_source}, target, database_name)
    merging.mode = "all"
    merging.create(
        "x", "(id INT PRIMARY KEY, v VECTOR(2) NOT NULL, VECTOR INDEX (v))", with_target=False
    )
    merging.do("INSERT INTO x_1 VALUES (1, VEC_FromText('[1,2]'))")
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do(
            "INSERT INTO x_1 VALUES (2, VEC_FromText('[1,3]')), (3, VEC_FromText('[0,0]'))",
            "UPDATE x_1 SET v = VEC_FromText('[5,5]') WHERE id = 1",
            "DELETE FROM x_1 WHERE id = 2",
            "ALTER TABLE x_1 DROP INDEX v, ADD n INT DEFAULT 3",
            "ALTER TABLE x_1 ADD VECTOR INDEX w (v) DISTANCE=cosine",
            "INSERT INTO x_1 VALUES (4, VEC_FromText('[1,1]'), 4)",
        )
        await merging.check(generation)


@pytest.mark.also_tidb
async def test_vectors_are_kept_as_bytes(
    merging_from: Callable[..., Merging], mariadb11_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb11_source)
    merging.mode = "all"
    for number, kind in enumerate(("VARBINARY(12)", "BINARY(12)", "BLOB")):
        merging.create(f"x{number}", COLUMNS, target=COLUMNS.replace("VECTOR(3)", kind))
    merging.create("y", KEYLESS, target=KEYLESS.replace("VECTOR(3)", "VARBINARY(20)"))
    tables = ("x0_1", "x1_1", "x2_1", "y_1")
    for table in tables:
        merging.do(f"INSERT INTO {table} VALUES {rows('VEC_FromText')}")
    async with merging.running() as generation:
        await merging.copied(generation)
        for table in tables:
            merging.do(
                *changes(table, "VEC_FromText"),
                f"ALTER TABLE {table} ADD n INT DEFAULT 3",
                f"UPDATE {table} SET n = 4 WHERE id = 4",
            )
        await merging.check(generation)
