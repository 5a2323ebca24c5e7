"""Types whose values may be converted: each value arrives as it is, or the server refuses it.

Values are written as the product does: read from the binlog and from a snapshot, loaded and written
by statements. Whatever is not on the list is refused, `test_other_types_are_refused` shows with
pairs that servers convert without a word.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from replicator.pipeline.plans.planning import UnfitTargetError, match_columns
from replicator.sandbox.server import DatabaseServer
from replicator.schema.structure.conversions import Fit, charset_conversion, conversion
from replicator.schema.structure.structure import Column
from tests.support.values.conversion_bench import Bench, bench_of
from tests.support.values.conversion_pairs import DOCUMENTS, PAIRS, Pair

TARGETS = ["mariadb_target", "mysql56_source", "mysql_source"]


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> DatabaseServer:
    server: DatabaseServer = request.getfixturevalue(request.param)
    return server


def prove(bench: Bench, examples: int) -> None:
    """Any values of the pairs' types, some of each at a time."""

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.tuples(*(st.lists(p.values, min_size=8, max_size=15) for p in bench.pairs)))
    def run(values: tuple[list[str], ...]) -> None:
        bench.check(values)

    run()


@pytest.mark.slow
def test_values_arrive_or_are_refused(
    mariadb_source: DatabaseServer, target: DatabaseServer, database_name: str
) -> None:
    with bench_of(mariadb_source, target, database_name, PAIRS) as bench:
        prove(bench, examples=3)


@pytest.mark.slow
def test_values_of_mysql_arrive_or_are_refused(
    mysql56_source: DatabaseServer, target: DatabaseServer, database_name: str
) -> None:
    pairs = [pair for pair in PAIRS if not pair.own_to_mariadb]
    with bench_of(mysql56_source, target, database_name, pairs) as bench:
        prove(bench, examples=2)


@pytest.mark.parametrize("text", ["LONGTEXT", "MEDIUMTEXT CHARACTER SET utf8mb4"])
def test_json_becomes_text(
    mysql_source: DatabaseServer, mariadb_target: DatabaseServer, database_name: str, text: str
) -> None:
    with bench_of(
        mysql_source, mariadb_target, database_name, [Pair("JSON", text, DOCUMENTS)]
    ) as bench:
        prove(bench, examples=15)


UNSAFE = [
    ("DECIMAL(10,2)", "INT"),
    ("DECIMAL(10,2)", "DOUBLE"),
    ("DECIMAL(10,2)", "VARCHAR(20)"),
    ("DOUBLE", "INT"),
    ("DOUBLE", "FLOAT"),
    ("DOUBLE", "DECIMAL(20,5)"),
    ("DOUBLE", "DOUBLE(20,2)"),
    ("FLOAT", "FLOAT(7,3)"),
    ("FLOAT", "INT"),
    ("FLOAT", "VARCHAR(20)"),
    ("BIGINT", "DOUBLE"),
    ("INT", "FLOAT"),
    ("INT", "BIT(64)"),
    ("INT", "DATE"),
    ("INT", "YEAR"),
    ("INT", "TIME"),
    ("INT", "ENUM('1','2')"),
    ("INT(5) ZEROFILL", "VARCHAR(20)"),
    ("INT", "VARCHAR(20) CHARACTER SET utf16"),
    ("YEAR", "INT"),
    ("YEAR", "DATE"),
    ("TIME", "DATETIME"),
    ("TIME", "INT"),
    ("TIME(3)", "TIME"),
    ("DATE", "TIMESTAMP NULL"),
    ("DATETIME", "DATE"),
    ("DATETIME", "TIME"),
    ("DATETIME", "TIMESTAMP NULL"),
    ("DATETIME", "VARCHAR(30)"),
    ("DATETIME(6)", "DATETIME(3)"),
    ("TIMESTAMP NULL", "DATETIME"),
    ("VARCHAR(5)", "CHAR(5)"),
    ("CHAR(5)", "CHAR(4)"),
    ("ENUM('long')", "CHAR(3)"),
    ("VARCHAR(5)", "INT"),
    ("VARCHAR(5)", "DATE"),
    ("VARCHAR(5)", "VARBINARY(20)"),
    ("VARCHAR(5)", "ENUM('a')"),
    ("VARCHAR(5)", "VARCHAR(5) CHARACTER SET ucs2"),
    ("VARBINARY(5)", "VARCHAR(5)"),
    ("VARBINARY(5)", "BINARY(5)"),
    ("BINARY(4)", "BINARY(8)"),
    ("BINARY(4)", "INT"),
    ("BIT(8)", "INT"),
    ("BIT(8)", "VARBINARY(1)"),
    ("ENUM('a','b')", "ENUM('a')"),
    ("ENUM('A')", "ENUM('a')"),
    ("ENUM('a')", "INT"),
    ("ENUM('a','b')", "SET('a','b')"),
    ("SET('a','b')", "SET('b','a')"),
    ("SET('a','b')", "SET('a')"),
    ("SET('a','b')", "VARCHAR(9)"),
    ("GEOMETRY", "POINT"),
    ("POINT", "BLOB"),
]


def test_other_types_are_refused(
    mariadb_source: DatabaseServer, mariadb_target: DatabaseServer, database_name: str
) -> None:
    pairs = [Pair(shard, target, st.nothing()) for shard, target in UNSAFE]
    with bench_of(mariadb_source, mariadb_target, database_name, pairs) as bench:
        for pair, shard, target in zip(pairs, bench.shards, bench.targets, strict=True):
            with pytest.raises(UnfitTargetError) as refused:
                match_columns("a: s.t", shard, target)
            message = str(refused.value)
            assert "a: s.t: column v is " in message, pair
            assert f"ALTER TABLE `{target.schema}`.`{target.name}` MODIFY `v` " in message


def test_every_rule_is_proved(
    mariadb_source: DatabaseServer, mariadb_target: DatabaseServer, database_name: str
) -> None:
    with bench_of(mariadb_source, mariadb_target, database_name, PAIRS) as bench:
        for pair, shard, target in zip(PAIRS, bench.shards, bench.targets, strict=True):
            fits = {
                rule(shard.columns[1], target.columns[1]).fit
                for rule in (conversion, charset_conversion)
            }
            assert (fits == {Fit.ALL}) == pair.every, pair
            assert Fit.NONE not in fits, pair


def test_pairs_of_unlike_families_are_all_tried() -> None:
    """Each kind of conversion that the rules know is among the pairs."""
    from replicator.schema.structure.conversions import _RULES

    tried = {
        (Column("v", pair.shard).sql_type.family, Column("v", pair.target).sql_type.family)
        for pair in PAIRS
    }
    # Of MySQL alone: test_json_becomes_text; with values of their own: test_rows_vectors.
    assert set(_RULES) - tried == {("json", "text"), ("vector", "bytes")}
