"""Values that a shard holds though its own rules refuse them: they arrive as they are, or a fault
says what differs between the two servers."""

from __future__ import annotations

import pytest

from replicator.downstream.rows.statements import RowRefusedError, insert_rows
from replicator.pipeline.plans.planning import UnfitTargetError, match_columns, target_column
from replicator.sandbox.server import DatabaseServer
from tests.support.values.conversion_bench import Bench, bench_of
from tests.support.values.conversion_pairs import Pair, from_values

LENIENT = "SET sql_mode='ALLOW_INVALID_DATES'"
CHECKS_OFF = "SET check_constraint_checks=0"
UTF16 = " CHARACTER SET utf16"
UTF8 = " CHARACTER SET utf8mb4"

ODD = {
    "DATE": ["'2021-02-31'", "0", "'0000-01-01'", "'2021-00-31'"],
    "DATETIME(3)": ["'2021-02-31 10:00:00.5'", "'0000-00-00 10:11:12'", "'2021-00-00 00:00:00.5'"],
    "TIMESTAMP(3) NULL": ["0", "'1970-01-01 00:00:01.001'", "'2038-01-19 03:14:07.999'"],
    "TIME": ["'999:00:00'", "'-838:59:59'"],
    "YEAR": ["0", "'0'", "70", "'no year'"],
    "ENUM('a','','b')": ["0", "''", "'none'", "'a'"],
    "ENUM('','a')": ["0", "''", "'none'", "'a'"],
    "ENUM('0','1','2')": ["0", "'0'", "1", "'2'", "'none'"],
    "ENUM('a')" + UTF16: ["'none'", "'a'"],
    "ENUM('a','')" + UTF16: ["'none'", "'a'", "''"],
    "DOUBLE UNSIGNED": ["-1", "1e0"],
    "DECIMAL(5,2) UNSIGNED": ["-0.00", "-1"],
    "BIT(3)": ["9"],
    "CHAR(5)" + UTF8: ["'a  '"],
    "VARCHAR(3)" + UTF8: ["'abcdef'", "'a        '"],
    "VARCHAR(9)" + UTF8: ["x'F09F98'", "x'FF41'"],
}
OF_MARIADB = {
    "TIMESTAMP(3) NULL": ["'1970-01-01 00:00:00.5'", "'1970-01-01 00:00:00.001'"],
    "INT CHECK (v > 5)": ["1", "6"],
    "LONGTEXT CHECK (JSON_VALID(v))": ["'no json'", "'{}'"],
}


def odd_pairs(values: dict[str, list[str]]) -> list[Pair]:
    return [Pair(kind, kind, from_values(some)) for kind, some in values.items()]


def assert_odd_values_arrive(bench: Bench, values: dict[str, list[str]], *settings: str) -> None:
    bench.check(list(values.values()), LENIENT, *settings)


@pytest.mark.parametrize("target", ["mariadb_target", "mysql56_source", "mysql_source"])
@pytest.mark.parametrize("source", ["mariadb_source", "mysql56_source"])
def test_values_of_no_mode_arrive(
    request: pytest.FixtureRequest, source: str, target: str, database_name: str
) -> None:
    servers = (request.getfixturevalue(source), request.getfixturevalue(target))
    with bench_of(*servers, database_name, odd_pairs(ODD)) as bench:
        assert_odd_values_arrive(bench, ODD)


def test_values_that_only_mariadb_holds_arrive(
    mariadb_source: DatabaseServer, mariadb_target: DatabaseServer, database_name: str
) -> None:
    pairs = odd_pairs(OF_MARIADB)
    with bench_of(mariadb_source, mariadb_target, database_name, pairs) as bench:
        assert_odd_values_arrive(bench, OF_MARIADB, CHECKS_OFF)


def test_a_row_against_a_check_of_mysql_is_refused_with_the_reason(
    mariadb_source: DatabaseServer, mysql_source: DatabaseServer, database_name: str
) -> None:
    kind = "INT CHECK (v > 5)"
    with bench_of(mariadb_source, mysql_source, database_name, odd_pairs({kind: ["1"]})) as bench:
        with pytest.raises(AssertionError, match="NOT ENFORCED"):
            assert_odd_values_arrive(bench, {kind: ["1"]}, CHECKS_OFF)
        bench.session.run(b"ROLLBACK")
        bench.target.execute(
            f"ALTER TABLE {bench.targets[0].schema}.t0 ALTER CHECK t0_chk_1 NOT ENFORCED"
        )
        assert_odd_values_arrive(bench, {kind: ["1"]}, CHECKS_OFF)


def test_a_generated_column_that_was_cut_is_refused_with_the_reason(
    mariadb_target: DatabaseServer, database_name: str
) -> None:
    columns = "INT, g TINYINT AS (v * 2) STORED"
    pair = Pair(columns, columns, from_values(["1"]))
    with bench_of(mariadb_target, mariadb_target, database_name, [pair]) as bench:
        # Outside strict mode the shard has 127 for g.
        insert = "INSERT INTO t0 (id, v) VALUES (1, 100)"
        mariadb_target.execute(LENIENT, insert, database=database_name)
        pairs = match_columns("a: s.t", bench.shards[0], bench.targets[0])
        assert list(pairs) == [0, 1]
        target = bench.table_of(0)
        of = [*map(target_column, pairs.values())]
        with pytest.raises(RowRefusedError, match="fills g in itself, in strict mode"):
            insert_rows(bench.session, target, of, [b"1\t100"], exact=True)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("SET('','a')", "looks like no label"),
        ("ENUM('a','A')" + UTF8, "one to the collation"),
        ("ENUM('e','é')" + UTF8, "one to the collation"),
    ],
)
def test_labels_that_servers_can_not_tell_apart_are_refused(
    mariadb_target: DatabaseServer, database_name: str, kind: str, reason: str
) -> None:
    pair = Pair(kind, kind, from_values(["1"]))
    with (
        bench_of(mariadb_target, mariadb_target, database_name, [pair]) as bench,
        pytest.raises(UnfitTargetError, match=reason),
    ):
        match_columns("a: s.t", bench.shards[0], bench.targets[0])


def test_labels_that_a_collation_tells_apart_are_taken(
    mariadb_target: DatabaseServer, database_name: str
) -> None:
    kinds = [
        "ENUM('a','A') CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "ENUM('a','ä') CHARACTER SET latin1 COLLATE latin1_swedish_ci",
    ]
    pairs = [Pair(kind, kind, from_values(["1"])) for kind in kinds]
    with bench_of(mariadb_target, mariadb_target, database_name, pairs) as bench:
        bench.check([["1", "2"]] * len(kinds))
