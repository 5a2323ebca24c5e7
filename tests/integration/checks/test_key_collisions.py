"""Values of a target's keys that several shards have: found, counted, named; and none made up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli import app
from replicator.checks.result import CheckResult
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.key_estate import Estate, numbered


@pytest.fixture
def estate(
    mariadb_source: DatabaseServer, mariadb_target: DatabaseServer, database_name: str
) -> Iterator[Estate]:
    made = Estate(database_name, mariadb_target, mariadb_source)
    yield made
    made.drop()


def only(results: list[CheckResult]) -> CheckResult:
    (result,) = results
    assert result.name == "key_collisions"
    assert bool(result.remedies) == (result.state != "passed")
    return result


async def test_a_value_that_two_shards_have(estate: Estate) -> None:
    estate.shard("a", "t1", "id INT PRIMARY KEY", "(1),(2),(3)")
    estate.shard("a", "t2", "id INT PRIMARY KEY", "(3),(4)")
    estate.shard("a", "t3", "id INT PRIMARY KEY", "(5)")
    result = only(await estate.look())
    assert result.state == "failed"
    db = estate.db
    assert f"3 (a: {db}.t1, a: {db}.t2)" in result.finding
    assert result.finding.startswith("one value is found more than once")
    assert "partition id" in result.remedies[0]
    assert "extract-table" in result.remedies[1]
    assert "UPDATE" in result.remedies[2]
    estate.sources["a"].execute(f"UPDATE {db}.t2 SET id=9 WHERE id=3")
    result = only(await estate.look())
    assert result.state == "passed"
    assert result.finding.startswith("all 6 values of ")


@pytest.mark.parametrize(
    ("sources", "tables", "rules", "key"),
    [
        ("a", ("t1", "t2"), "extract-table (`shard_table`)", "(`id`, `shard_table`)"),
        ("ab", ("t1",), "extract-source (`shard_source`)", "(`id`, `shard_source`)"),
        (
            "ab",
            ("t1", "t2"),
            "extract-table (`shard_table`) and extract-source (`shard_source`)",
            "(`id`, `shard_table`, `shard_source`)",
        ),
    ],
    ids=str,
)
@pytest.mark.cures("key_collisions")
async def test_the_statement_of_the_remedy_ends_the_collisions(
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    mariadb_target: DatabaseServer,
    database_name: str,
    sources: str,
    tables: tuple[str, ...],
    rules: str,
    key: str,
) -> None:
    servers = (mariadb_source, mariadb_source_full)[: len(sources)]
    estate = Estate(database_name, mariadb_target, *servers)
    for source in sources:
        for table in tables:
            estate.shard(source, table, "id INT PRIMARY KEY", "(1),(2)")
    estate.into("id INT PRIMARY KEY")
    [remedy] = [text for text in only(await estate.look()).remedies if "extract-" in text]
    assert f"with {rules} of the route" in remedy
    statement = remedy[remedy.index("ALTER TABLE") :]
    assert f"ADD PRIMARY KEY {key};" in statement
    mariadb_target.execute(statement)
    route = {"schema-pattern": estate.db, "target-schema": f"{estate.db}_all"}
    merge: dict[str, Any] = {**route, "table-pattern": "t*", "target-table": "t"}
    for part, column in re.findall(r"extract-(\w+) \(`(\w+)`\)", remedy):
        merge[f"extract-{part}"] = {f"{part}-regexp": "(.*)", "target-column": column}
    assert only(await estate.look(routes={"merge": merge, "schema": route})).state == "passed"
    estate.drop()


@pytest.mark.parametrize("extracted", [False, True])
@pytest.mark.cures("key_collisions")
async def test_a_target_that_does_not_exist_yet_is_created_with_the_wider_key(
    estate: Estate, extracted: bool
) -> None:
    for table in ("t1", "t2"):
        estate.shard("a", table, "id INT PRIMARY KEY, v VARCHAR(9)", "(1, 'a')")
    route = {"schema-pattern": estate.db, "target-schema": f"{estate.db}_all"}
    merge: dict[str, Any] = {**route, "table-pattern": "t*", "target-table": "t"}
    rule = {"extract-table": {"table-regexp": "(.*)", "target-column": "shop"}}
    rules = {"merge": {**merge, **(rule if extracted else {})}, "schema": route}
    [remedy] = [text for text in only(await estate.look(routes=rules)).remedies if "ALTER" in text]
    assert "does not exist yet" in remedy
    estate.target.execute(*remedy[remedy.index("CREATE DATABASE") :].split(";")[:-1])
    if not extracted:
        rule["extract-table"]["target-column"] = "shard_table"
    rules["merge"] = {**merge, **rule}
    assert only(await estate.look(routes=rules)).state == "passed"


async def test_an_extracted_column_that_is_there_belongs_into_the_key(estate: Estate) -> None:
    for table in ("t1", "t2"):
        estate.shard("a", table, "id INT PRIMARY KEY", "(1)")
    estate.into("id INT PRIMARY KEY, shard_table VARCHAR(64) NOT NULL")
    route = {"schema-pattern": estate.db, "target-schema": f"{estate.db}_all"}
    extract = {"table-regexp": "(.*)", "target-column": "shard_table"}
    merge = {**route, "table-pattern": "t*", "target-table": "t", "extract-table": extract}
    rules = {"merge": merge, "schema": route}
    [remedy] = [text for text in only(await estate.look(routes=rules)).remedies if "ALTER" in text]
    statement = remedy[remedy.index("ALTER TABLE") :]
    assert statement.endswith("DROP PRIMARY KEY, ADD PRIMARY KEY (`id`, `shard_table`);")
    estate.target.execute(statement)
    assert only(await estate.look(routes=rules)).state == "passed"


async def test_a_column_of_that_name_gets_another_one(estate: Estate) -> None:
    for table in ("t1", "t2"):
        columns = "id INT, shard_table INT, PRIMARY KEY (id, shard_table)"
        estate.shard("a", table, columns, "(1, 1)")
    [remedy] = [text for text in only(await estate.look()).remedies if "extract-" in text]
    assert "(`id`, `shard_table`, `shard_table_2`);" in remedy


async def test_equal_values_that_rules_of_the_task_file_tell_apart(estate: Estate) -> None:
    for table in ("t1", "t2", "t_2"):
        estate.shard("a", table, "id INT PRIMARY KEY", "(1),(2)")
    estate.into("id BIGINT, c VARCHAR(9), PRIMARY KEY (id, c)")
    route = {"schema-pattern": estate.db, "target-schema": f"{estate.db}_all"}
    extract = {"table-regexp": "([0-9])", "target-column": "C"}
    merge = {**route, "table-pattern": "t*", "target-table": "t", "extract-table": extract}
    result = only(await estate.look(routes={"merge": merge, "schema": route}))
    assert "2 values are found more than once" in result.finding
    assert f"a: {estate.db}.t2, a: {estate.db}.t_2" in result.finding
    assert f"{estate.db}.t1" not in result.finding
    merge["extract-table"] = extract | {"table-regexp": "t(.*)"}
    assert only(await estate.look(routes={"merge": merge, "schema": route})).state == "passed"


async def test_rows_that_a_filter_leaves_out_do_not_count(estate: Estate) -> None:
    columns = "id INT PRIMARY KEY, gone INT"
    estate.shard("a", "t1", columns, "(1,1),(2,0),(3,NULL)")
    estate.shard("a", "t2", columns, "(1,0),(2,0)")
    rule = {"schema": estate.db, "table": "t1", "insert-value-expr": "gone = 1 OR gone = 7"}
    named: dict[str, Any] = {"expression_filter": {"left": rule}}
    task = estate.task(**named)
    task["mysql-instances"][0]["expression-filters"] = ["left"]
    result = only(await estate.look(**named, mysql_instances=task["mysql-instances"]))
    assert result.finding.startswith("one value is found more than once")
    assert f"2 (a: {estate.db}.t1, a: {estate.db}.t2)" in result.finding


# By case: the type on the target and those of two shards, the values of each, how many values of
# both are equal on the target.
CASES: dict[str, tuple[str, tuple[str, list[str]], tuple[str, list[str]], int]] = {
    "numbers": (
        "DECIMAL(20,3)",
        ("INT(5) ZEROFILL", ["0", "10", "7"]),
        ("DECIMAL(10,2)", ["10.00", "-7", "0.00"]),
        2,
    ),
    "wide": (
        "BIGINT UNSIGNED",
        ("BIGINT UNSIGNED", ["18446744073709551615", "1", "2"]),
        ("INT", ["2147483647", "2", "3"]),
        1,
    ),
    "doubles": (
        "DOUBLE",
        ("FLOAT", ["0.5", "-0.0", "0.1"]),
        ("DOUBLE", ["5e-1", "0", "0.1"]),
        2,
    ),
    "moments": (
        "DATETIME(3)",
        ("DATE", ["'2020-01-01'", "'2020-01-02'", "'0000-00-00'"]),
        ("DATETIME(1)", ["'2020-01-01 00:00:00.0'", "'2020-01-02 00:00:00.1'", "'2020-05-05'"]),
        1,
    ),
    "ci": (
        "VARCHAR(20) COLLATE utf8mb4_general_ci",
        ("VARCHAR(20) COLLATE utf8mb4_bin", ["'a'", "'B '", "'é'"]),
        ("VARCHAR(20) CHARACTER SET latin1", ["'A'", "'b'", "'É'"]),
        3,
    ),
    "bin": (
        "VARCHAR(20) COLLATE utf8mb4_bin",
        ("VARCHAR(20) COLLATE utf8mb4_bin", ["'a'", "'b '", "'c'"]),
        ("VARCHAR(20) COLLATE utf8mb4_bin", ["'A'", "'b'", "'C'"]),
        1,
    ),
    "uca": (
        "VARCHAR(20) COLLATE utf8mb4_unicode_ci",
        ("VARCHAR(20) COLLATE utf8mb4_bin", ["'straße'", "'x'", r"'tab\tbed'"]),
        ("VARCHAR(20) COLLATE utf8mb4_bin", ["'STRASSE'", "_utf8mb4 x'78C2A0'", r"'tab\\bed'"]),
        2,
    ),
    "bytes": (
        "VARBINARY(8)",
        ("VARBINARY(8)", ["x'6100'", "x'0a09'", "x'5c'"]),
        ("VARBINARY(8)", ["x'61'", "x'0a09'", "x'5c30'"]),
        1,
    ),
    "padded": (
        "BINARY(4)",
        ("BINARY(2)", ["'a'", "'b'", "x'00'"]),
        ("BINARY(4)", [r"'a\0'", "'bb'", "''"]),
        2,
    ),
    "labels": (
        "ENUM('red','blue','green')",
        ("ENUM('red','blue','green')", ["'red'", "'blue'", "NULL"]),
        ("ENUM('green','red','blue')", ["'green'", "'red'", "NULL"]),
        1,
    ),
    "bits": (
        "BIT(16)",
        ("BIT(8)", ["b'1'", "b'11111111'", "b'0'"]),
        ("BIT(16)", ["b'1'", "b'1111111100000000'", "b'10'"]),
        1,
    ),
    "address": (
        "INET6",
        ("INET6", ["'::1'", "'fe80::1'", "'::ffff:1.2.3.4'"]),
        ("INET6", ["'0:0::1'", "'fe80::2'", "'::ffff:1.2.3.5'"]),
        1,
    ),
    "wide_text": (
        "VARCHAR(20) CHARACTER SET utf16 COLLATE utf16_general_ci",
        ("VARCHAR(20) CHARACTER SET utf16", ["'a '", "'Ü'", "'c'"]),
        ("VARCHAR(20) CHARACTER SET latin1", ["'A'", "'ü'", "'d'"]),
        2,
    ),
    "georgian": (
        "VARCHAR(20) CHARACTER SET geostd8",
        ("VARCHAR(20) CHARACTER SET geostd8", ["'a'", "x'c0'", "'c'"]),
        ("VARCHAR(20) CHARACTER SET geostd8", ["'A '", "x'c0'", "'d'"]),
        2,
    ),
    "nulls": ("INT NULL", ("INT NULL", ["NULL", "NULL", "1"]), ("INT NULL", ["NULL", "2", "3"]), 0),
}


def unlike(estate: Estate) -> None:
    """One target with a unique key for each case, and the two shards of each."""
    estate.into(
        "id INT PRIMARY KEY,"
        + ",".join(f"`{case}` {kind}" for case, (kind, *_) in CASES.items())
        + "".join(f", UNIQUE KEY `k_{case}` (`{case}`)" for case in CASES)
    )
    for shard in (1, 2):
        sides = {case: (one, two)[shard - 1] for case, (_, one, two, _) in CASES.items()}
        columns = ", ".join(f"`{case}` {kind}" for case, (kind, _) in sides.items())
        estate.shard(
            "a",
            f"t{shard}",
            f"id INT PRIMARY KEY, {columns}",
            ",".join(
                f"({shard}{row},{','.join(values[row] for _, values in sides.values())})"
                for row in range(3)
            ),
        )


async def test_values_are_compared_as_the_target_compares_them(estate: Estate) -> None:
    unlike(estate)
    results = await estate.look()
    assert {result.name for result in results} == {"key_collisions"}
    for case, (*_, expected) in CASES.items():
        (result,) = [r for r in results if f"unique key `k_{case}` (`{case}`)" in r.finding]
        assert (result.state == "failed") == bool(expected), (case, result)
        if expected:
            told = "one value is" if expected == 1 else f"{expected} values are"
            assert result.finding.startswith(told), (case, result)
            assert "t1, a: " in result.finding
    (own,) = [r for r in results if "primary key (`id`)" in r.finding]
    assert own.state == "passed"


async def test_a_sample_reads_the_same_ranges_in_all_shards(estate: Estate) -> None:
    numbered(estate, "t1", 1, 20_000)
    numbered(estate, "t2", 20_001, 40_000)
    for result in await estate.look(size=1):
        # Places whose ranges overlap do not make one row two.
        assert result.state == "passed", result
        assert "a sample can't prove" in result.finding
    numbered(estate, "t3", 39_995, 60_000)
    for result in await estate.look(size=1):
        assert result.state == "failed"
        assert result.finding.startswith("in a sample of ")
        assert f" (a: {estate.db}.t2, a: {estate.db}.t3)" in result.finding


@pytest.mark.parametrize(
    ("column", "other", "value"),
    [
        (
            "VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin",
            "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
            "CONCAT('\u00e9', LPAD(seq, 8, '0'))",
        ),
        ("DECIMAL(12,2)", "BIGINT", "seq"),
        ("DATE", "DATETIME(3)", "'1900-01-01' + INTERVAL seq DAY"),
    ],
    ids=["text", "numbers", "moments"],
)
async def test_a_sample_reaches_the_end_of_shards_that_order_a_key_in_different_ways(
    estate: Estate, column: str, other: str, value: str
) -> None:
    sizes = {"t1": (1, 20_000), "t2": (19_995, 40_000)}
    for (table, (first, last)), its in zip(sizes.items(), (column, other), strict=True):
        estate.sources["a"].execute(
            f"USE {estate.db}",
            f"CREATE TABLE {table} (u {its} NOT NULL PRIMARY KEY)",
            f"INSERT INTO {table} SELECT {value} FROM seq_{first}_to_{last}",
            f"ANALYZE TABLE {table}",
        )
    estate.into(f"u {other} NOT NULL PRIMARY KEY")
    result = only(await estate.look(size=1))
    assert result.state == "failed", result
    assert result.finding.startswith("in a sample of ")


async def test_what_can_not_be_looked_at_is_told(estate: Estate) -> None:
    estate.into(
        "id INT PRIMARY KEY, c INT AS (id+1) STORED, e INT NOT NULL, UNIQUE KEY u (c),"
        " UNIQUE KEY f (e, id), UNIQUE KEY n (id, e)"
    )
    estate.shard("a", "t1", "id INT PRIMARY KEY, e INT", "(1,1)")
    estate.shard("a", "t2", "id INT PRIMARY KEY", "(2)")
    results = await estate.look()
    warned = {r.finding for r in results if r.state == "warning"}
    assert any("the target computes its column c" in text for text in warned)
    assert any("t2: the shard has no column e" in text for text in warned)
    assert {r.state for r in results} == {"warning", "passed"}


async def test_a_shard_that_can_not_be_read_to_its_end(estate: Estate) -> None:
    estate.into("a VARCHAR(20) CHARACTER SET latin1 PRIMARY KEY")
    columns = "a VARCHAR(20) CHARACTER SET utf8mb4 PRIMARY KEY"
    estate.shard("a", "t1", columns, "('x')", "(_utf8mb4 x'F09F9880')")
    estate.shard("a", "t2", columns, "('X')")
    estate.shard("a", "t3", columns, "('x ')")
    unread, found = await estate.look()
    assert unread.state == "warning"
    assert f"a: {estate.db}.t1: a text cannot be converted from utf_8" in unread.finding
    assert found.state == "failed"
    assert f"(a: {estate.db}.t2, a: {estate.db}.t3)" in found.finding


async def test_no_key_and_no_second_shard(estate: Estate) -> None:
    estate.shard("a", "t1", "id INT PRIMARY KEY, a VARCHAR(5)", "(1,'a'),(2,'A')")
    assert "no target has a unique key" in only(await estate.look()).finding
    estate.into("id INT PRIMARY KEY, a VARCHAR(5) COLLATE utf8mb4_general_ci UNIQUE")
    # A key that the shard itself does not have.
    results = await estate.look()
    (result,) = [r for r in results if r.state == "failed"]
    assert "1 more" not in result.finding
    assert "t1, a: " in result.finding
    assert await estate.look(ignore_checking_items=["key_collisions"]) == []


async def test_prefixes_constants_and_several_columns(estate: Estate) -> None:
    estate.into(
        "id INT, site INT NOT NULL DEFAULT 7, a VARCHAR(20) COLLATE utf8mb4_bin, b INT NULL,"
        " PRIMARY KEY (id, site), UNIQUE KEY p (a(3)), UNIQUE KEY two (b, id)"
    )
    estate.shard("a", "t1", "id INT PRIMARY KEY, a VARCHAR(20), b INT", "(1,'abcd',1),(2,'x',2)")
    estate.shard(
        "a",
        "t2",
        "id INT PRIMARY KEY, site INT, a VARCHAR(20), b INT",
        "(1,7,'abce',1),(2,8,'X',NULL),(3,7,NULL,3)",
    )
    results = {r.finding.partition("(`")[2].partition(")")[0]: r for r in await estate.look()}
    assert {columns: result.state for columns, result in results.items()} == {
        "id`, `site`": "failed",
        "a`": "failed",
        "b`, `id`": "failed",
    }
    assert all(result.finding.startswith("one value") for result in results.values())
    assert "1, 7 (a: " in results["id`, `site`"].finding
    assert "abc (a: " in results["a`"].finding


def test_the_option_is_checked(tmp_path: Path) -> None:
    runner = CliRunner()
    for keys in ("sample:0", "sample:x", "all", "sample:", "exact:5", "sample:-1"):
        result = runner.invoke(app, ["check", "--keys", keys, str(tmp_path / "t.yaml")])
        assert result.exit_code == 2, keys
