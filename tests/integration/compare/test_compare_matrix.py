"""Every way to differ, in tables of every shape, on every server: found, named, mended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

import config
from actors.comparing.comparing import CompareOptions, TargetComparer
from replicator.pipeline.compare.findings import TargetComparison
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.matrix import SOURCES, TARGETS, USUAL
from tests.support.tasks.merging import Merging
from tests.support.tasks.saved_copies import save_as_copied
from tests.support.tasks.task_files import task_dict

PAIRS = [
    pytest.param(source, target, marks=[] if (source, target) == USUAL else pytest.mark.slow)
    for source in SOURCES
    for target in TARGETS
]
ROWS = 30
"""Rows of a target; each way to differ has one of its own, by the column r."""

VALUES = (
    "r INT, n BIGINT, s VARCHAR(20) CHARACTER SET utf8mb4, c CHAR(9) CHARACTER SET utf8mb4,"
    " p DECIMAL(20,5), d DATETIME, t TIMESTAMP NULL, b BLOB, e ENUM('x','y'),"
    " z BIT(9), y YEAR, m SET('p','q'), i TIME, u BIGINT UNSIGNED"
)
MORE = "f FLOAT, g DOUBLE, j"
"""Types that servers write in several ways, so that their own checksums do not serve."""
TEXT = "TEXT CHARACTER SET utf8mb4"
OF_A_ROW = (
    "{r}, {r}*1000, IF({r}=5,NULL,IF({r}=6,'',CONCAT('abc',{r}))), 'cd', {r}+0.12345,"
    " '2024-01-31 10:00:00', '2024-01-31 10:00:00', x'00FF5C0A', 'x',"
    " b'100000001', 2024, 'p,q', '-10:11:12', IF({r}=7,NULL,18446744073709551615)"
)
MORE_OF_A_ROW = ', {r}*0.1, {r}*0.1, \'{{"a": [1, 2.5], "b": {r}}}\''


@dataclass(frozen=True)
class Shape:
    """``columns`` of the key, ``keys`` the definition behind the columns, ``key`` the literals of a
    row's key; ``more``: it has the columns of `MORE`, too; ``source`` and ``target``: what one of
    the sides has otherwise."""

    columns: str
    keys: str
    key: str
    keyed: bool = True
    more: bool = False
    source: tuple[str, str] = ("", "")
    target: tuple[str, str] = ("", "")


SHAPES = {
    "number": Shape("k INT", "PRIMARY KEY (k)", "{r}"),
    "floats": Shape("k INT", "PRIMARY KEY (k)", "{r}", more=True),
    "unsigned": Shape("k BIGINT UNSIGNED", "PRIMARY KEY (k)", "18446744073709551615-{r}"),
    "composite": Shape("k INT, l VARCHAR(9)", "PRIMARY KEY (k, l)", "{r}%3, CONCAT('l',{r})"),
    "string": Shape(
        "k VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "PRIMARY KEY (k)",
        "CONCAT('K',{r})",
    ),
    "collated": Shape(
        "k VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        "PRIMARY KEY (k)",
        "CONCAT('é',{r})",
    ),
    "latin1": Shape("k CHAR(9) CHARACTER SET latin1", "PRIMARY KEY (k)", "CONCAT('ü',{r})"),
    "binary": Shape("k VARBINARY(9)", "PRIMARY KEY (k)", "CONCAT(x'5C0900', {r})"),
    "padded": Shape("k BINARY(4)", "PRIMARY KEY (k)", "CONCAT(x'FF', {r})"),
    "decimal": Shape("k DECIMAL(20,5)", "PRIMARY KEY (k)", "{r}*-0.5"),
    "moment": Shape(
        "k DATETIME(3)", "PRIMARY KEY (k)", "'2024-01-01' + INTERVAL {r}*1000 MICROSECOND"
    ),
    "unique": Shape("k INT NOT NULL", "UNIQUE KEY (k), KEY (s)", "{r}"),
    "no key": Shape("k INT", "KEY (k)", "{r}%5", keyed=False),
    "no key, floats": Shape("k INT", "KEY (k)", "{r}%5", keyed=False, more=True),
    "other charset": Shape(
        "k INT",
        "PRIMARY KEY (k)",
        "{r}",
        source=("s VARCHAR(20) CHARACTER SET utf8mb4", "s VARCHAR(20) CHARACTER SET latin1"),
    ),
    "wider": Shape(
        "k INT",
        "PRIMARY KEY (k)",
        "{r}",
        source=("p DECIMAL(20,5)", "p DECIMAL(18,5)"),
        target=("n BIGINT", "n DECIMAL(30,2)"),
    ),
}
DIFFERENT = {
    "one bit": "u = u ^ 1",
    "one more": "n = n + 1",
    "NULL for ''": "s = '' WHERE r=5",
    "'' for NULL": "s = NULL WHERE r=6",
    "0 for NULL": "n = NULL",
    "case": "s = UPPER(s)",
    "trailing blank": "s = CONCAT(s, ' ')",
    "accent": "s = REPLACE(s, 'a', 'á')",
    "fifth digit": "p = p + 0.00001",
    "one second": "d = d + INTERVAL 1 SECOND",
    "time zone": "t = t + INTERVAL 1 HOUR",
    "last byte": "b = x'00FF5C0B'",
    "label": "e = 'y'",
    "bits": "z = b'100000011'",
    "set": "m = 'p'",
    "time": "i = '-10:11:13'",
}
MORE_DIFFERENT = {
    "JSON": "j = REPLACE(j, '2.5', '2.50001')",
    "double": "g = g + 0.0000001",
    "float": "f = f + 0.001",
}
FIRST = 8
"""The first row of those that have a way to differ each, from among the rest."""


def ways(shape: Shape) -> list[str]:
    return [*DIFFERENT.values(), *(MORE_DIFFERENT.values() if shape.more else ())]


def created(shape: Shape, json: str, changed: tuple[str, str], name: str) -> str:
    values = f"{VALUES}, {MORE} {json}" if shape.more else VALUES
    if changed[0]:
        assert changed[0] in values
        values = values.replace(*changed)
    return f"CREATE TABLE {name} ({shape.columns}, {values}, {shape.keys})"


def inserted(shape: Shape, name: str, numbers: list[int]) -> list[str]:
    row = f"({shape.key}, {OF_A_ROW}{MORE_OF_A_ROW if shape.more else ''})"
    rows = (row.format(r=r) for r in numbers)
    return [f"INSERT INTO {name} VALUES {row}" for row in rows]


def spoiled(shape: Shape, name: str) -> tuple[list[str], int]:
    """The statements that make the target differ, and how many rows differ in values."""
    statements = [f"DELETE FROM {name} WHERE r=1", *inserted(shape, name, [99])]
    numbers = iter(range(FIRST, ROWS))
    for change in ways(shape):
        where = "" if "WHERE" in change else f" WHERE r={next(numbers)}"
        statements.append(f"UPDATE {name} SET {change}{where}")
    statements.append(f"UPDATE {name} SET s=IF(r=2,'abc3','abc2') WHERE r IN (2,3)")
    if not shape.keyed:
        statements.append(f"INSERT INTO {name} SELECT * FROM {name} WHERE r=4")
    return statements, len(ways(shape)) + 2


@pytest.mark.parametrize(("source_kind", "target_kind"), PAIRS)
async def test_every_way_to_differ_in_every_shape(
    request: pytest.FixtureRequest,
    spark: SparkContext,
    database_name: str,
    tmp_path: Path,
    source_kind: str,
    target_kind: str,
) -> None:
    source: DatabaseServer = request.getfixturevalue(source_kind)
    target: DatabaseServer = request.getfixturevalue(f"{target_kind}_target")
    db, into = database_name, f"{database_name}_all"
    lenient = "SET sql_mode='', time_zone='+00:00'"
    # A JSON takes no text of another server: whether it is one nobody knows.
    own = "JSON" if source_kind == "mysql_source" else TEXT
    json = "JSON" if own == "JSON" and target_kind in ("mysql", "tidb") else TEXT
    source.execute(f"CREATE DATABASE {db} CHARACTER SET utf8mb4")
    target.execute(f"CREATE DATABASE {into} CHARACTER SET utf8mb4")
    routes: dict[str, Any] = {}
    spoils: list[str] = []
    expected = {}
    for number, (title, shape) in enumerate(SHAPES.items()):
        for half in (0, 1):
            name = f"{db}.s{number}x{half}"
            rows = inserted(shape, name, list(range(1 + half, ROWS, 2)))
            source.execute(lenient, created(shape, own, shape.source, name), *rows)
        name = f"{into}.s{number}"
        rows = inserted(shape, name, list(range(1, ROWS)))
        target.execute(lenient, created(shape, json, shape.target, name), *rows)
        statements, count = spoiled(shape, name)
        spoils += statements
        expected[title] = (1, 1, count) if shape.keyed else (1 + count, 2 + count, 0)
        routes[f"r{number}"] = {
            "schema-pattern": db,
            "table-pattern": f"s{number}x*",
            "target-schema": into,
            "target-table": f"s{number}",
        }
    task = task_of(db, into, source, target, routes)
    repair = tmp_path / "repair.sql"
    equal = await compared(task, spark, repair)
    assert not wrong(equal, dict.fromkeys(SHAPES, (0, 0, 0)))
    target.execute(lenient, *spoils)
    found = await compared(task, spark, repair)
    assert not wrong(found, expected)
    keys = {example.key for example in found["number"].examples if example.kind == "different"}
    last = FIRST + len(DIFFERENT) - 2
    assert keys == {"2", "3", "5", "6", *map(str, range(FIRST, last))}
    text = repair.read_text("ascii")
    target.execute(*[statement for statement in text.split(";\n") if statement])
    assert not wrong(await compared(task, spark, repair), dict.fromkeys(SHAPES, (0, 0, 0)))


UTF8 = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
VALUES_OF = {
    "latin1": ("VARCHAR(20) CHARACTER SET latin1", f"TEXT {UTF8}", ["'é ü'", "''", "'€ '"]),
    "gbk": ("VARCHAR(20) CHARACTER SET gbk", f"VARCHAR(20) {UTF8}", ["'中文'", "'a\\\\b'"]),
    "utf16": ("VARCHAR(20) CHARACTER SET utf16", f"VARCHAR(20) {UTF8}", ["'ü😀'", "'\\t'"]),
    "chars": ("CHAR(9) CHARACTER SET latin1", f"VARCHAR(20) {UTF8}", ["'a '", "' a'", "''"]),
    "scale": ("DECIMAL(10,2)", "DECIMAL(20,5)", ["1.10", "-0.01", "0", "99999999.99"]),
    "whole": ("BIGINT UNSIGNED", "DECIMAL(30,2)", ["18446744073709551615", "0"]),
    "enum": ("ENUM('b','a','ü')", "ENUM('a','ü','b')", ["'b'", "'a'", "'ü'"]),
    "label": ("ENUM('b','a')", f"VARCHAR(9) {UTF8}", ["'b'", "'a'"]),
    "set": ("SET('q','p')", "SET('q','p','r')", ["'p,q'", "''", "'q'"]),
    "single": ("FLOAT", "FLOAT", ["-0e0", "1e-45", "1.17549e-38", "3.4028234e38", "16777217"]),
    "widened": ("FLOAT", "DOUBLE", ["0.1", "-0e0", "1e-45", "3.4028234e38"]),
    "doubled": ("DOUBLE", "DOUBLE", ["-0e0", "5e-324", "1.7976931348623157e308", "0.1"]),
    "bits": ("BIT(5)", "BIT(9)", ["b'0'", "b'10101'"]),
    "day": ("DATE", "DATETIME(3)", ["'2024-02-29'", "'0000-00-00'", "'2024-00-00'"]),
    "moment": ("TIMESTAMP NULL", "TIMESTAMP(6) NULL", ["'2024-03-31 01:30:00'", "0"]),
    "clock": ("TIME", "TIME(3)", ["'-838:59:59'", "'00:00:00'"]),
    "bytes": ("BINARY(4)", "VARBINARY(9)", ["x'0100'", "''", "x'20202020'"]),
}
"""Of columns: the types of shards and target, and values."""
OF_MYSQL = {
    "document": (
        "JSON",
        "JSON",
        ["'[1.0, -0.0, 1e2]'", "'18446744073709551616'", '\'{"b": 1, "a": "ü"}\'', "'null'"],
    ),
}
OF_MARIADB = {
    "address": ("INET6", f"VARCHAR(50) {UTF8}", ["'2001:db8::ff'", "'::'", "'::ffff:1.2.3.4'"]),
    "unique": ("UUID", f"CHAR(36) {UTF8}", ["'123e4567-e89b-12d3-a456-426655440000'"]),
}


@pytest.mark.parametrize(("source_kind", "target_kind"), PAIRS)
async def test_values_of_shards_whose_columns_are_others_than_the_target_s(
    request: pytest.FixtureRequest,
    spark: SparkContext,
    database_name: str,
    tmp_path: Path,
    source_kind: str,
    target_kind: str,
) -> None:
    """What the full copy has made of them is equal; without each of them it is not."""
    source: DatabaseServer = request.getfixturevalue(source_kind)
    target: DatabaseServer = request.getfixturevalue(f"{target_kind}_target")
    columns = dict(VALUES_OF)
    if source_kind == "mysql_source" and target_kind in ("mysql", "tidb"):
        columns |= OF_MYSQL
    if source_kind.startswith("mariadb"):
        columns |= OF_MARIADB
    merging = Merging(spark, tmp_path, {"a": source}, target, database_name)
    merging.mode, merging.show_values = "full", True
    ours = ", ".join(f"`{name}` {of[0]}" for name, of in columns.items())
    theirs = ", ".join(f"`{name}` {of[1]}" for name, of in columns.items())
    key = "(id INT PRIMARY KEY, "
    charset = "SET NAMES utf8mb4"
    merging.create("x", f"{key}{ours}) {UTF8}", shards=2, target=f"{key}{theirs}) {UTF8}")
    for n in range(1, len(columns) + 5):
        values = ", ".join(of[2][n % len(of[2])] for of in columns.values())
        merging.do(charset, "SET sql_mode=''", f"INSERT INTO x_{1 + n % 2} VALUES ({n}, {values})")
    nothing = ", ".join(["NULL"] * len(columns))
    merging.do(f"INSERT INTO x_1 VALUES (100, {nothing})")
    await merging.copy()

    async def found(**more: Any) -> TargetComparison:
        async def context() -> SparkContext:
            return spark

        options = CompareOptions(chunk_rows=10, repair=tmp_path / "repair.sql", **more)
        (result,) = await TargetComparer(merging.task, options, context).run()
        assert not result.failure
        assert not result.left_out
        return result

    rows = len(columns) + 5
    for checksums in (True, False):
        result = await found(checksums=checksums)
        assert (result.differing, result.rows) == (0, rows), result
    for n, name in enumerate(columns, 1):
        merging.on(target, f"UPDATE x SET `{name}`=NULL WHERE id={n}")
    result = await found()
    spoiled = {example.key: [c.column for c in example.columns] for example in result.examples}
    assert spoiled == {str(n): [name] for n, name in enumerate(columns, 1)}
    text = (tmp_path / "repair.sql").read_text("ascii")
    target.execute(*[s for s in text.split(";\n") if s], database=database_name)
    result = await found()
    assert (result.differing, result.rows) == (0, rows), result


def task_of(
    db: str, into: str, source: DatabaseServer, target: DatabaseServer, routes: dict[str, Any]
) -> config.Task:
    values = task_dict(db, {"a": source}, target, schema=db, target_schema=into)
    values |= {"task-mode": "all", "meta-schema": f"{db}_meta", "routes": routes}
    values["show-row-values"] = True
    for instance in values["mysql-instances"]:
        instance.pop("meta", None)
        instance["route-rules"] = list(routes)
    return config.Task.model_validate(values)


async def compared(
    task: config.Task, spark: SparkContext, repair: Path
) -> dict[str, TargetComparison]:
    async def context() -> SparkContext:
        return spark

    options = CompareOptions(chunk_rows=10, repair=repair)
    await save_as_copied(task)
    results = await TargetComparer(task, options, context).run()
    by_table = {result.target.table: result for result in results}
    return {shape: by_table[f"s{number}"] for number, shape in enumerate(SHAPES)}


def wrong(
    results: dict[str, TargetComparison], expected: dict[str, tuple[int, int, int]]
) -> dict[str, Any]:
    return {
        shape: (result.missing, result.extra, result.different, result.unsettled, result)
        for shape, result in results.items()
        if (result.missing, result.extra, result.different) != expected[shape]
        or result.failure
        or result.incomplete
    }
