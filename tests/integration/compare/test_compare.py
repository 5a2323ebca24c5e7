"""Targets compared with their shards: each way to differ is found, and mended by the file."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark import SparkContext
from rich.console import Console

import config
from actors.comparing.comparing import CompareOptions, TargetComparer
from actors.comparing.comparison_page import comparison_page
from replicator.api.comparison import findings_as_json
from replicator.pipeline.compare.findings import ColumnExample, TargetComparison
from replicator.sandbox.server import DatabaseServer
from replicator.terminal.comparison import remarks, render_comparison
from tests.support.tasks.key_estate import Estate
from tests.support.tasks.saved_copies import save_as_copied

DEFAULT = CompareOptions()
VALUES = "id INT PRIMARY KEY, n BIGINT, s VARCHAR(40) CHARACTER SET utf8mb4, d DATETIME(3), b BLOB"


@pytest.fixture
def estate(
    mariadb_source: DatabaseServer, mariadb_target: DatabaseServer, database_name: str
) -> Iterator[Estate]:
    made = Estate(database_name, mariadb_target, mariadb_source)
    yield made
    made.drop()


Compare = Callable[..., Awaitable[tuple[TargetComparison, bytes]]]


@pytest.fixture
def compare(estate: Estate, spark: SparkContext, tmp_path: Path) -> Compare:
    async def context() -> SparkContext:
        return spark

    async def compared(
        options: CompareOptions = DEFAULT, **more: Any
    ) -> tuple[TargetComparison, bytes]:
        task = config.Task.model_validate(estate.task(**more))
        repair = tmp_path / "repair.sql"
        await save_as_copied(task)
        (result,) = await TargetComparer(task, replace(options, repair=repair), context).run()
        return result, repair.read_bytes()

    return compared


def mend(estate: Estate, repair: bytes) -> None:
    """Execute the file of a repair."""
    estate.target.execute(*[s for s in repair.decode("ascii").split(";\n") if s])


def merged(estate: Estate, columns: str, *rows: str) -> None:
    """Make the target with these rows."""
    estate.into(columns)
    name = f"{estate.db}_all.t"
    estate.target.execute("SET sql_mode=''", *(f"INSERT INTO {name} VALUES {row}" for row in rows))


WAYS = {
    "lost": ("DELETE FROM t WHERE id=2", (1, 0, 0)),
    "added": ("INSERT INTO t SELECT 99, n, s, d, b FROM t WHERE id=1", (0, 1, 0)),
    "one bit": ("UPDATE t SET n=n^1 WHERE id=1", (0, 0, 1)),
    "NULL for ''": ("UPDATE t SET s=NULL WHERE id=3", (0, 0, 1)),
    "'' for NULL": ("UPDATE t SET s='' WHERE id=4", (0, 0, 1)),
    "0 for NULL": ("UPDATE t SET n=0 WHERE id=4", (0, 0, 1)),
    "case": ("UPDATE t SET s='ABC' WHERE id=1", (0, 0, 1)),
    "trailing blank": ("UPDATE t SET s='abc ' WHERE id=1", (0, 0, 1)),
    "accent": ("UPDATE t SET s='ábc' WHERE id=1", (0, 0, 1)),
    "one millisecond": ("UPDATE t SET d='2024-01-01 00:00:00.001' WHERE id=1", (0, 0, 1)),
    "last byte": ("UPDATE t SET b=x'00FE' WHERE id=1", (0, 0, 1)),
    "exchanged": ("UPDATE t SET s=IF(id=1,'def','abc') WHERE id IN (1,2)", (0, 0, 2)),
}
ROWS = (
    "(1,1,'abc','2024-01-01',x'00FF'),(2,-5,'def',NULL,x''),(3,0,'','2024-01-01 00:00:00.5',NULL)",
    "(4,NULL,NULL,NULL,'a\tb\n\\\\'),(5,9223372036854775807,'ü€','0000-00-00',x'5C4E')",
)


@pytest.mark.parametrize(
    ("names", "checksums"),
    [
        pytest.param(WAYS, True, id="each way", marks=pytest.mark.slow),
        pytest.param(("case", "exchanged", "lost"), True, id="checksum"),
        pytest.param(("case", "exchanged", "lost"), False, id="rows"),
    ],
)
async def test_each_way_to_differ_is_found_and_mended(
    estate: Estate, compare: Compare, names: Iterable[str], checksums: bool
) -> None:
    """`test_compare_matrix` finds them in every run, all at the same time."""
    estate.shard("a", "t1", VALUES, ROWS[0])
    estate.shard("a", "t2", VALUES, ROWS[1])
    options = CompareOptions(checksums=checksums, chunk_rows=2)
    merged(estate, VALUES, *ROWS)
    result, repair = await compare(options)
    assert not result.failure
    assert (result.differing, result.incomplete, result.rows) == (0, False, 5)
    assert list(result.by_shard.values()) == [3, 2]
    assert b"BEGIN" not in repair
    wrong = {}
    for name in names:
        statement, counts = WAYS[name]
        estate.target.execute("SET sql_mode=''", f"USE {estate.db}_all", statement)
        found, repair = await compare(options)
        if (found.missing, found.extra, found.different) != counts:
            wrong[name] = found
        mend(estate, repair)
        again, _ = await compare(options)
        if again.differing or again.incomplete:
            wrong[name + ", mended"] = again
    assert not wrong


SHAPES = {
    "composite": (
        "a INT, b VARCHAR(9), v INT, PRIMARY KEY (a, b)",
        "(1,'x',1),(1,'y',2),(2,'x',3)",
    ),
    "string": ("k VARCHAR(9) COLLATE utf8mb4_bin PRIMARY KEY, v INT", "('a',1),('B',2),('é',3)"),
    "collated": ("k CHAR(9) CHARACTER SET latin1 PRIMARY KEY, v INT", "('a',1),('B',2),('é',3)"),
    "binary": ("k VARBINARY(9) PRIMARY KEY, v INT", "(x'00',1),(x'5C09',2),(x'FF',3)"),
    "unsigned": ("k BIGINT UNSIGNED PRIMARY KEY, v INT", "(0,1),(18446744073709551615,2),(7,3)"),
    "decimal": ("k DECIMAL(20,5) PRIMARY KEY, v INT", "(-1.5,1),(0.00001,2),(7,3)"),
    "date": (
        "k DATETIME(6) PRIMARY KEY, v INT",
        "('2024-01-01',1),('2024-01-01 00:00:00.000001',2)",
    ),
    "unique": ("k INT NOT NULL, v INT, UNIQUE (k)", "(1,1),(2,2),(3,3)"),
    "nullable": ("k INT, v INT, UNIQUE (k)", "(NULL,1),(NULL,1),(3,3)"),
    "keyless": ("k INT, v INT", "(1,1),(1,1),(1,1),(2,2),(NULL,3)"),
    "enum": ("k ENUM('b','a') PRIMARY KEY, v INT", "('a',1),('b',2)"),
    "floats": ("k INT PRIMARY KEY, v FLOAT, w DOUBLE", "(1,0.1,0.1),(2,1e20,-0.0),(3,NULL,1e300)"),
    "json": ("k INT PRIMARY KEY, v JSON", """(1,'{"a": 1.5, "b": [1,2]}'),(2,NULL)"""),
    "point": ("k INT PRIMARY KEY, v POINT", "(1,ST_PointFromText('POINT(1 2)')),(2,NULL)"),
    "wide": (
        "k INT PRIMARY KEY, v BIT(9), w YEAR, x SET('a','b'), y TIME(2)",
        "(1,b'100000001',2024,'a,b','-10:00:00.25'),(2,NULL,NULL,'',NULL)",
    ),
}


NOT_OF_THE_MATRIX = {"nullable", "enum", "json", "point"}
"""`test_compare_matrix` has the others in every run."""


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(shape, marks=[] if shape in NOT_OF_THE_MATRIX else pytest.mark.slow)
        for shape in SHAPES
    ],
)
async def test_tables_of_every_shape(estate: Estate, compare: Compare, shape: str) -> None:
    columns, rows = SHAPES[shape]
    estate.shard("a", "t1", columns, rows)
    estate.shard("a", "t2", columns)
    merged(estate, columns, rows)
    options = CompareOptions(chunk_rows=1)
    result, _ = await compare(options)
    assert not result.failure
    assert not result.left_out
    total = result.rows
    assert (result.differing, result.incomplete) == (0, False)
    estate.target.execute(f"USE {estate.db}_all", "DELETE FROM t LIMIT 1")
    result, repair = await compare(options)
    assert (result.missing, result.extra, result.different) == (1, 0, 0)
    assert result.rows == total - 1
    mend(estate, repair)
    result, _ = await compare(options)
    assert (result.differing, result.rows) == (0, total)
    estate.sources["a"].execute(f"USE {estate.db}", "DELETE FROM t1 LIMIT 1")
    result, repair = await compare(options)
    assert (result.missing, result.extra, result.different) == (0, 1, 0)
    mend(estate, repair)
    result, _ = await compare(options)
    assert (result.differing, result.rows) == (0, total - 1)


SHAPED = (
    "k INT PRIMARY KEY, l LINESTRING, p POLYGON, g GEOMETRY NOT NULL, hidden INT INVISIBLE"
    " DEFAULT 3, v INT AS (k*2) VIRTUAL, s VARCHAR(9) AS (CONCAT('a', k)) STORED"
)


async def test_spatial_generated_and_invisible_columns(estate: Estate, compare: Compare) -> None:
    row = (
        "({k}, ST_GeomFromText('LINESTRING(0 0, 1 {k})'),"
        " ST_GeomFromText('POLYGON((0 0, 0 {k}, 1 1, 0 0))', 4326),"
        " ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 {k}), LINESTRING(0 0, 1 1))'),"
        " DEFAULT, DEFAULT)"
    )
    estate.shard("a", "t1", SHAPED, row.format(k=1), row.format(k=2))
    estate.shard("a", "t2", SHAPED, row.format(k=3))
    merged(estate, SHAPED, *(row.format(k=k) for k in (1, 2, 3)))
    estate.sources["a"].execute(f"UPDATE {estate.db}.t1 SET hidden=7 WHERE k=1")
    result, repair = await compare()
    assert (result.different, result.left_out, result.failure) == (1, (), "")
    assert result.examples[0].columns == (ColumnExample("hidden", "'7'", "'3'"),)
    mend(estate, repair)
    estate.target.execute(
        f"USE {estate.db}_all",
        "UPDATE t SET hidden=NULL, l=ST_GeomFromText('LINESTRING(0 0, 1 1.0000001)') WHERE k=1",
        "UPDATE t SET p=ST_GeomFromText('POLYGON((0 0, 0 2, 1 1, 0 0))', 0) WHERE k=2",
        "DELETE FROM t WHERE k=3",
    )
    result, repair = await compare()
    assert (result.missing, result.extra, result.different) == (1, 0, 2)
    columns = {e.key: [c.column for c in e.columns] for e in result.examples}
    assert columns == {"1": ["l", "hidden"], "2": ["p"], "3": []}
    mend(estate, repair)
    result, _ = await compare()
    assert (result.differing, result.incomplete, result.rows) == (0, False, 3)
    # What the target computes otherwise is found, and is for its structure to put right.
    estate.target.execute(
        f"ALTER TABLE {estate.db}_all.t MODIFY s VARCHAR(9) AS (CONCAT('b', k)) STORED"
    )
    result, repair = await compare()
    assert (result.different, b"UPDATE" in repair) == (3, False)


async def test_rules_of_the_task_file_are_applied(estate: Estate, compare: Compare) -> None:
    for table in ("t1", "t2"):
        estate.shard(
            "a", table, "id BIGINT PRIMARY KEY, gone INT, v VARCHAR(9)", "(1,0,'a'),(2,1,'b')"
        )
    estate.into("id BIGINT PRIMARY KEY, gone INT, v VARCHAR(9), c VARCHAR(9)")
    route = {"schema-pattern": estate.db, "target-schema": f"{estate.db}_all"}
    extract = {"table-regexp": "t(.*)", "target-column": "c"}
    merge = {**route, "table-pattern": "t*", "target-table": "t", "extract-table": extract}
    mapping = {
        "schema-pattern": estate.db,
        "table-pattern": "t*",
        "expression": "partition id",
        "source-column": "id",
        "target-column": "id",
        "arguments": ["1", "", "t", ""],
    }
    rule = {"schema": estate.db, "table": "t2", "insert-value-expr": "gone = 1"}
    named: dict[str, Any] = {
        "routes": {"merge": merge, "schema": route},
        "column_mappings": {"m": mapping},
        "expression_filter": {"left": rule},
    }
    task = estate.task(**named)
    instance = task["mysql-instances"][0]
    instance |= {"expression-filters": ["left"], "column-mapping-rules": ["m"]}
    named["mysql_instances"] = task["mysql-instances"]
    result, repair = await compare(CompareOptions(chunk_rows=1), **named)
    assert not result.failure
    assert (result.missing, result.extra, result.different) == (3, 0, 0)
    mend(estate, repair)
    for chunk_rows in (1, 100):
        result, _ = await compare(CompareOptions(chunk_rows=chunk_rows), **named)
        assert (result.differing, result.incomplete, result.rows) == (0, False, 3)


@pytest.mark.slow
async def test_the_command_tells_and_mends(estate: Estate, tmp_path: Path) -> None:
    columns = "id INT PRIMARY KEY, v VARCHAR(9)"
    estate.shard("a", "t1", columns, "(1,'a'),(2,'b')")
    estate.shard("a", "t2", columns, "(3,'c')")
    merged(estate, columns, "(1,'a'),(2,'x'),(4,'d')")
    file, repair = tmp_path / "task.yaml", tmp_path / "repair.sql"
    file.write_text(yaml.safe_dump(estate.task()))
    await save_as_copied(config.Task.model_validate(estate.task()))

    def run(*options: str) -> tuple[int, str]:
        # In a process of its own: Spark has one application in each.
        command = [sys.executable, "-c", "import cli; cli.app()", "compare", str(file), *options]
        ran = subprocess.run(command, check=False, capture_output=True, text=True)
        return ran.returncode, ran.stdout + ran.stderr

    code, output = run("--repair", str(repair))
    assert code == 1, output
    name = f"{estate.db}_all.t"
    assert f"{name}: different: 2 (a: {estate.db}.t1): v: 'b' in the shard, 'x'" in output
    mend(estate, repair.read_bytes())
    code, output = run("--tables", f"{estate.db}_all.*", "--json")
    assert code == 0, output
    [target] = json.loads(output)["targets"]
    assert (target["rows"], target["missing"], target["target"]) == (3, 0, name)
    assert run("--tables", "nobody.*")[0] == 2
    estate.target.execute(f"TRUNCATE {name}", f"ALTER TABLE {name} MODIFY v INT")
    code, output = run()
    assert code == 1, output
    assert "v was not compared: the target's type does not hold all values of a: " in output
    assert "column v is int" in output


async def test_structures_that_differ_are_named(estate: Estate, compare: Compare) -> None:
    columns = "id INT PRIMARY KEY, v VARCHAR(9) NOT NULL DEFAULT 'x', w INT, KEY w (w), UNIQUE (v)"
    estate.shard("a", "t1", columns)
    estate.shard("a", "t2", columns)
    estate.into(columns)
    result, _ = await compare()
    assert result.structure == []
    name = f"{estate.db}_all.t"
    for statement, told in {
        "MODIFY w BIGINT": "note: column w is bigint",
        "DROP KEY w": "note: the target has no index KEY (`w`)",
        "MODIFY v VARCHAR(9) NOT NULL DEFAULT 'y'": "DEFAULT 'y'",
        "DROP KEY v": "note: the target has no index UNIQUE KEY (`v`)",
        "MODIFY v VARCHAR(9) DEFAULT 'x'": "note: column v is varchar(9)",
        "MODIFY w SMALLINT": "column w is smallint",
        "ADD UNIQUE (w)": "the target has the UNIQUE KEY (`w`)",
    }.items():
        estate.target.execute(f"CREATE TABLE {estate.db}_all.kept LIKE {name}")
        estate.target.execute(f"ALTER TABLE {name} {statement}")
        result, _ = await compare()
        [found] = [text for text in remarks(result) if "t1" in text and "column w was" not in text]
        assert told in found
        assert f"a: {estate.db}.t1" in found
        assert result.differing == 0
        assert result.unequal == (not told.startswith("note") and "DEFAULT" not in told)
        result, _ = await compare(replace(DEFAULT, exact_structure=True))
        assert result.structure
        estate.target.execute(f"DROP TABLE {name}", f"RENAME TABLE {estate.db}_all.kept TO {name}")


@pytest.mark.parametrize("shape", ["extracted key", "collated", "unordered"])
async def test_keys_that_tables_order_in_their_own_ways(
    estate: Estate, compare: Compare, shape: str
) -> None:
    more: dict[str, Any] = {}
    own = "k VARCHAR(9) CHARACTER SET latin1 PRIMARY KEY, v INT"
    into = "k VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_german2_ci PRIMARY KEY, v INT"
    if shape == "extracted key":
        into = f"c VARCHAR(9), {own.replace(' PRIMARY KEY', '')}, PRIMARY KEY (c, k)"
        route = {"schema-pattern": estate.db, "target-schema": f"{estate.db}_all"}
        extract = {"table-regexp": "t(.*)", "target-column": "c"}
        merge = {**route, "table-pattern": "t*", "target-table": "t", "extract-table": extract}
        more["routes"] = {"merge": merge, "schema": route}
    if shape == "unordered":
        into = "k VARCHAR(9) CHARACTER SET utf8mb4, v INT, UNIQUE (k)"
    estate.shard("a", "t1", own, "('a', 1), ('\u00fc', 2), ('B', 3), ('z', 4)")
    estate.shard("a", "t2", own, "('b2', 1), ('\u00f6', 2), ('y', 3), ('C', 4)")
    estate.into(into)
    for rounds in range(2):
        result, repair = await compare(CompareOptions(chunk_rows=2), **more)
        assert not result.failure
        assert (result.missing, result.rows) == ((8, 0) if rounds == 0 else (0, 8))
        mend(estate, repair)
    estate.target.execute(f"UPDATE {estate.db}_all.t SET v=7 WHERE k='B'")
    result, repair = await compare(CompareOptions(chunk_rows=2), **more)
    found = (result.missing, result.extra, result.different)
    assert found == ((1, 1, 0) if shape == "unordered" else (0, 0, 1))
    mend(estate, repair)
    result, _ = await compare(CompareOptions(chunk_rows=2), **more)
    assert (result.differing, result.rows) == (0, 8)


@pytest.mark.parametrize("shown", [False, True])
async def test_values_of_rows_are_shown_only_if_the_task_file_allows_it(
    estate: Estate, compare: Compare, *, shown: bool
) -> None:
    columns = "id INT PRIMARY KEY, mail VARCHAR(20)"
    estate.shard("a", "t1", columns, "(4711, 'ada@x.org'), (4712, 'bob@x.org')")
    merged(estate, columns, "(4711, 'eve@x.org')")
    result, repair = await compare(show_row_values=shown)
    assert (result.different, result.missing) == (1, 1)
    console = Console(record=True, width=200, file=io.StringIO())
    console.print(render_comparison([result], None))
    page = comparison_page("test", [result], datetime.now(UTC))
    for text in (console.export_text(), page, json.dumps(findings_as_json("test", [result]))):
        for value in ("4711", "4712", "ada@x.org", "eve@x.org"):
            assert (value in text) is shown, text
        assert "mail" in text
        assert "a: " in text
    assert b"ada@x.org" in repair
