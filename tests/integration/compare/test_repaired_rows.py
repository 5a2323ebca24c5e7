"""A repair writes every column as the shard has it, and counts a row only if it is right then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

import config
from actors.comparing import differing_rows
from actors.comparing.comparing import CompareOptions, TargetComparer
from replicator.pipeline.compare.findings import TargetComparison
from replicator.pipeline.compare.repair_now import Repaired, repair_now
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.key_estate import Estate
from tests.support.tasks.saved_copies import save_as_copied

COLUMNS = (
    "id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, v INT, u INT UNIQUE, w INT AS (v*2) STORED,"
    " seen TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,"
    " day DATETIME(3) NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)"
)
NAMES = "(id, v, u, seen, day)"
ROWS = (
    "(0,1,1,'2001-01-01','2001-01-01'),(1,1,2,'2002-01-01','2002-01-01'),"
    "(2,2,3,'2003-01-01',NULL),(3,3,4,'2004-01-01','2004-01-01')"
)
OWN = ", mine TIMESTAMP NOT NULL DEFAULT '2010-01-01' ON UPDATE CURRENT_TIMESTAMP"


@pytest.fixture
def estate(
    mariadb_source: DatabaseServer, mariadb_target: DatabaseServer, database_name: str
) -> Iterator[Estate]:
    made = Estate(database_name, mariadb_target, mariadb_source)
    yield made
    made.drop()


@pytest.fixture
def tidb_estate(
    mariadb_source: DatabaseServer, tidb_target: DatabaseServer, database_name: str
) -> Iterator[Estate]:
    made = Estate(database_name, tidb_target, mariadb_source)
    yield made
    made.drop()


async def compared(
    estate: Estate, spark: SparkContext, options: CompareOptions
) -> TargetComparison:
    async def context() -> SparkContext:
        return spark

    task = config.Task.model_validate(estate.task())
    await save_as_copied(task)
    (result,) = await TargetComparer(task, options, context).run()
    return result


async def repaired(
    estate: Estate, spark: SparkContext, folder: Path, *, at_once: bool
) -> TargetComparison:
    """Spoil rows of the target and repair them: one is changed, one lacks, 0 is one of the keys."""
    estate.shard("a", "t1", COLUMNS)
    estate.sources["a"].execute(
        "SET sql_mode='NO_AUTO_VALUE_ON_ZERO'", f"INSERT INTO {estate.db}.t1 {NAMES} VALUES {ROWS}"
    )
    estate.into(COLUMNS + OWN)
    name = f"{estate.db}_all.t"
    estate.target.execute(
        "SET sql_mode='NO_AUTO_VALUE_ON_ZERO'",
        f"INSERT INTO {name} {NAMES} VALUES {ROWS}",
        f"UPDATE {name} SET v=77, seen=seen, day=day, mine=mine WHERE id=1",
        f"UPDATE {name} SET u=40, seen=seen, day=day, mine=mine WHERE id=2",
        f"DELETE FROM {name} WHERE id IN (0, 3)",
    )
    path = None if at_once else folder / "repair.sql"
    options = CompareOptions(repair=path, repair_now=at_once)
    result = await compared(estate, spark, options)
    if path is not None:
        statements = path.read_text("ascii").split(";\n")
        estate.target.execute(*filter(None, statements))
    again = await compared(estate, spark, CompareOptions())
    assert (again.failure, again.differing, again.rows) == ("", 0, 4), again
    old = estate.target.execute(f"SELECT id FROM {name} WHERE mine='2010-01-01' ORDER BY id")
    assert [int(str(key)) for (key,) in old] == [0, 1, 2, 3]
    return result


@pytest.mark.parametrize("at_once", [True, False], ids=["now", "file"])
async def test_columns_that_the_server_changes_by_itself(
    estate: Estate, spark: SparkContext, tmp_path: Path, at_once: bool
) -> None:
    result = await repaired(estate, spark, tmp_path, at_once=at_once)
    assert (result.missing, result.different, result.failure) == (2, 2, ""), result
    assert result.repaired == (4 if at_once else 0)


async def test_a_differing_row_that_its_shard_deletes_meanwhile_is_left_to_the_task(
    estate: Estate, spark: SparkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task would not find the row of the DELETE, and would warn."""
    estate.shard("a", "t1", "id INT PRIMARY KEY, v INT", "(1,1),(2,2),(3,3)")
    estate.into("id INT PRIMARY KEY, v INT")
    name = f"{estate.db}_all.t"
    estate.target.execute(f"INSERT INTO {name} VALUES (1,9),(2,9),(3,3),(4,4)")

    def later(*arguments: Any) -> Repaired:
        estate.sources["a"].execute(f"DELETE FROM {estate.db}.t1 WHERE id = 1")
        return repair_now(*arguments)

    monkeypatch.setattr(differing_rows, "repair_now", later)
    result = await compared(estate, spark, CompareOptions(repair_now=True))
    assert (result.differing, result.repaired) == (3, 2), result
    assert estate.target.execute(f"SELECT id, v FROM {name} ORDER BY id") == (
        (1, 9),
        (2, 2),
        (3, 3),
    )


async def test_a_unique_value_that_a_row_gets_meanwhile_is_left_to_the_task(
    estate: Estate, spark: SparkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the binlog, another row may have had the value in between."""
    columns = "id INT PRIMARY KEY, u INT UNIQUE, v INT"
    estate.shard("a", "t1", columns, "(1,1,1),(2,2,2),(3,3,3)")
    estate.into(columns)
    name = f"{estate.db}_all.t"
    estate.target.execute(f"INSERT INTO {name} VALUES (1,1,9),(2,2,9),(3,8,3)")

    def later(*arguments: Any) -> Repaired:
        estate.sources["a"].execute(f"UPDATE {estate.db}.t1 SET u = 5 WHERE id = 1")
        return repair_now(*arguments)

    monkeypatch.setattr(differing_rows, "repair_now", later)
    result = await compared(estate, spark, CompareOptions(repair_now=True))
    assert (result.differing, result.repaired) == (3, 2), result
    there = estate.target.execute(f"SELECT id, u, v FROM {name} ORDER BY id")
    assert there == ((1, 1, 9), (2, 2, 2), (3, 3, 3))


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [True, False], ids=["now", "file"])
async def test_columns_that_a_tidb_changes_by_itself(
    tidb_estate: Estate, spark: SparkContext, tmp_path: Path, at_once: bool
) -> None:
    result = await repaired(tidb_estate, spark, tmp_path, at_once=at_once)
    assert (result.missing, result.different, result.failure) == (2, 2, ""), result
    assert result.repaired == (4 if at_once else 0)


async def test_a_row_that_the_server_stores_otherwise_is_not_repaired(
    estate: Estate, spark: SparkContext
) -> None:
    columns = "id INT PRIMARY KEY, v INT"
    estate.shard("a", "t1", columns, "(1,1),(2,2),(3,3)")
    estate.into(columns)
    name = f"{estate.db}_all.t"
    estate.target.execute(
        f"INSERT INTO {name} VALUES (1,1),(2,9),(3,9)",
        f"CREATE TRIGGER {estate.db}_all.bad BEFORE UPDATE ON {name} FOR EACH ROW"
        " SET NEW.v = IF(NEW.id = 2, -1, NEW.v)",
    )
    result = await compared(estate, spark, CompareOptions(repair_now=True))
    assert (result.different, result.repaired) == (2, 1), result
    assert any("trigger" in remark for remark in result.remarks)
    assert estate.target.execute(f"SELECT v FROM {name} ORDER BY id") == ((1,), (9,), (3,))


TARGETS = ["mariadb_target", "mariadb11_target", "mysql_target", "tidb_target"]
SHARD = (
    "id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, v INT, seen TIMESTAMP NOT NULL,"
    " day DATE, d DOUBLE, j LONGTEXT"
)
SHARD_ROWS = [
    "(1,1,'2001-01-01 01:02:03','2001-01-01',1e100,'a')",
    "(2,2,'2002-01-01 01:02:03',NULL,-0e0,'b')",
    "(3,3,'2003-01-01 01:02:03','2003-01-01',0.1,NULL)",
]
OF_KIND = {
    "mariadb": (
        "seen TIMESTAMP NOT NULL, w INT AS (v*2) VIRTUAL, s INT AS (v*3) STORED,"
        " mine INT INVISIBLE DEFAULT 7, hit INT NOT NULL DEFAULT 0",
        " WITH SYSTEM VERSIONING",
    ),
    "mysql": (
        "seen TIMESTAMP NOT NULL, w INT AS (v*2) VIRTUAL, s INT AS (v*3) STORED,"
        " mine INT DEFAULT 7 INVISIBLE, hit INT NOT NULL DEFAULT 0",
        "",
    ),
    "tidb": (
        "seen TIMESTAMP NOT NULL, w INT AS (v*2) VIRTUAL, s INT AS (v*3) STORED,"
        " mine INT DEFAULT 7, hit INT NOT NULL DEFAULT 0",
        "",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
async def test_columns_of_each_kind(
    request: pytest.FixtureRequest,
    mariadb_source: DatabaseServer,
    database_name: str,
    spark: SparkContext,
    target: str,
) -> None:
    """Generated, invisible and versioned columns, a trigger, 0 as a key, a bare TIMESTAMP."""
    server: DatabaseServer = request.getfixturevalue(target)
    kind = target.removesuffix("_target").removesuffix("11")
    more, options = OF_KIND[kind]
    estate = Estate(database_name, server, mariadb_source)
    try:
        estate.shard("a", "t1", SHARD, *SHARD_ROWS)
        zero = "SET sql_mode='NO_AUTO_VALUE_ON_ZERO'"
        names = "(id, v, seen, day, d, j)"
        row = "(0,9,'2009-01-01 01:02:03',NULL,NULL,'z')"
        estate.sources["a"].execute(zero, f"INSERT INTO {estate.db}.t1 VALUES {row}")
        name = f"{estate.db}_all.t"
        server.execute(
            zero,
            f"CREATE TABLE {name} (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, v INT, {more},"
            f" day DATE, d DOUBLE, j LONGTEXT){options}",
            f"INSERT INTO {name} {names} VALUES {SHARD_ROWS[0]},{SHARD_ROWS[1]},{row}",
            f"UPDATE {name} SET mine=8, hit=1, seen=seen",
            f"UPDATE {name} SET v=77, seen='2000-02-03' WHERE id=1",
            f"UPDATE {name} SET day='1999-09-09', seen=seen WHERE id=2",
            f"UPDATE {name} SET j='y', seen=seen WHERE id=0",
        )
        if kind != "tidb":
            server.execute(
                f"CREATE TRIGGER {estate.db}_all.hits BEFORE UPDATE ON {name} FOR EACH ROW"
                " SET NEW.hit = NEW.hit + 1"
            )
        result = await compared(estate, spark, CompareOptions(repair_now=True))
        assert (result.failure, result.missing, result.different) == ("", 1, 3), result
        assert result.repaired == 4, result
        again = await compared(estate, spark, CompareOptions())
        assert (again.failure, again.differing, again.rows) == ("", 0, 4), again
        found = server.execute(f"SELECT id, v, w, s, mine, seen FROM {name} ORDER BY id")
        assert [tuple(map(str, one)) for one in found] == [
            ("0", "9", "18", "27", "8", "2009-01-01 01:02:03"),
            ("1", "1", "2", "3", "8", "2001-01-01 01:02:03"),
            ("2", "2", "4", "6", "8", "2002-01-01 01:02:03"),
            ("3", "3", "6", "9", "7", "2003-01-01 01:02:03"),
        ]
    finally:
        estate.drop()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["mariadb_target", "mysql_target", "tidb_target"])
async def test_rows_without_a_key_whose_values_are_written_in_several_ways(
    request: pytest.FixtureRequest,
    mariadb_source: DatabaseServer,
    database_name: str,
    spark: SparkContext,
    target: str,
) -> None:
    """The rows are counted by their values: -0 is 0, and a JSON may be written otherwise."""
    server: DatabaseServer = request.getfixturevalue(target)
    estate = Estate(database_name, server, mariadb_source)
    try:
        estate.shard(
            "a",
            "t1",
            "id INT, d DOUBLE, f FLOAT, n DECIMAL(10,2)",
            "(1,-0e0,0.1,1.50)",
            "(1,0e0,0.1,1.5)",
            "(1,0e0,0.1,1.5)",
            "(2,1e300,3e38,2)",
            "(3,1,2,NULL)",
        )
        name = f"{estate.db}_all.t"
        server.execute(
            f"CREATE TABLE {name} (id BIGINT, d DOUBLE, f FLOAT, n DECIMAL(12,4))",
            f"INSERT INTO {name} VALUES (1,0e0,0.1,1.5),(3,1,2,NULL),(3,1,2,NULL),(4,1,0.1,1.5)",
        )
        result = await compared(estate, spark, CompareOptions(repair_now=True))
        assert (result.failure, result.missing, result.extra) == ("", 3, 2), result
        assert result.repaired == 5, result
        again = await compared(estate, spark, CompareOptions())
        assert (again.failure, again.differing, again.rows) == ("", 0, 5), again
    finally:
        estate.drop()


async def test_a_row_without_a_key_that_the_server_stores_otherwise_is_not_repaired(
    estate: Estate, spark: SparkContext
) -> None:
    columns = "id INT, d DOUBLE"
    estate.shard("a", "t1", columns, "(1,0.1)", "(2,0.2)")
    estate.into(columns)
    name = f"{estate.db}_all.t"
    estate.target.execute(
        f"CREATE TRIGGER {estate.db}_all.bad BEFORE INSERT ON {name} FOR EACH ROW"
        " SET NEW.d = IF(NEW.id = 2, -1, NEW.d)",
    )
    result = await compared(estate, spark, CompareOptions(repair_now=True))
    assert (result.missing, result.repaired) == (2, 1), result
    assert any("trigger" in remark for remark in result.remarks)
    assert estate.target.execute(f"SELECT id FROM {name}") == ((1,),)
