"""Which types of a target hold every value of a member's column."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.checks.schema.table_fit import charset_misfit, type_misfit
from replicator.schema.structure.structure import Column, labels_of


def column(text: str, charset: str = "") -> Column:
    return Column("c", text, charset=charset)


@pytest.mark.parametrize(
    ("member", "target"),
    [
        ("int(11)", "bigint(20)"),
        ("int(10) unsigned", "bigint(20)"),
        ("tinyint(1)", "int"),
        ("varchar(10)", "varchar(20)"),
        ("char(5)", "varchar(5)"),
        ("varchar(255)", "text"),
        ("tinytext", "longtext"),
        ("binary(4)", "varbinary(4)"),
        ("blob", "longblob"),
        ("decimal(10,2)", "decimal(12,4)"),
        ("decimal(5)", "decimal(5,0)"),
        ("enum('a','b')", "enum('b','a','c')"),
        ("set('x')", "set('x','y')"),
        ("datetime", "datetime(6)"),
        ("bit(3)", "bit(8)"),
        ("float", "double"),
        ("int(11)", "varchar(20)"),
        ("date", "datetime"),
        ("json", "longtext"),
        ("enum('aa')", "varchar(2)"),
        ("uuid", "char(36)"),
        ("point", "geometry"),
        ("year(4)", "year(4)"),
    ],
)
def test_a_target_that_holds_every_value_fits(member: str, target: str) -> None:
    assert type_misfit(column(member), column(target)) is None


@pytest.mark.parametrize(
    ("member", "target", "state"),
    [
        ("bigint(20)", "int(11)", "failed"),
        ("int(11)", "int(10) unsigned", "failed"),
        ("int(10) unsigned", "int(11)", "failed"),
        ("bigint(20) unsigned", "bigint(20)", "failed"),
        ("varchar(20)", "varchar(10)", "failed"),
        ("text", "varchar(1000)", "failed"),
        ("varchar(10)", "char(10)", "failed"),
        ("varchar(10)", "varbinary(40)", "failed"),
        ("binary(4)", "binary(8)", "failed"),
        ("blob", "tinyblob", "failed"),
        ("decimal(10,2)", "decimal(10,4)", "failed"),
        ("decimal(10,2)", "decimal(10,2) unsigned", "failed"),
        ("enum('a','b')", "enum('a')", "failed"),
        ("datetime(6)", "datetime", "failed"),
        ("bit(9)", "bit(8)", "failed"),
        ("double", "float", "failed"),
        ("datetime", "timestamp", "failed"),
        ("int(11)", "varchar(5)", "failed"),
        ("decimal(5,2)", "varchar(20)", "failed"),
        ("longtext", "json", "failed"),
    ],
)
def test_a_target_that_does_not_is_told(member: str, target: str, state: str) -> None:
    found = type_misfit(column(member), column(target))
    assert found is not None
    assert found.state == state
    assert found.text


def test_bytes_of_the_targets_charset_count_against_a_text() -> None:
    assert type_misfit(column("varchar(100)"), column("tinytext", "latin1")) is None
    assert type_misfit(column("varchar(100)"), column("tinytext", "utf8mb4")) is not None


@pytest.mark.parametrize(
    ("member", "target", "fits"),
    [
        ("latin1", "utf8mb4", True),
        ("latin1", "utf8", True),
        ("utf8mb4", "utf8", False),
        ("utf8", "latin1", False),
        ("ascii", "latin1", True),
        ("gbk", "gbk", True),
        ("", "utf8mb4", True),
    ],
)
def test_a_charset_must_hold_all_characters_of_the_members(
    member: str, target: str, *, fits: bool
) -> None:
    found = charset_misfit(column("varchar(1)", member), column("varchar(1)", target))
    assert (found is None) == fits


def test_labels_with_quotes_and_commas() -> None:
    assert labels_of(column("enum('a','it''s','x,y')")) == ("a", "it's", "x,y")


TYPES = [
    *("tinyint(4)", "int(11)", "bigint(20) unsigned", "decimal(10,2)", "decimal(12,4) unsigned"),
    *("char(3)", "varchar(30)", "text", "longtext", "binary(3)", "varbinary(9)", "longblob"),
    *("enum('a')", "enum('a','b')", "date", "datetime(3)", "timestamp", "time(6)", "bit(7)"),
    *("float", "double", "json", "uuid", "inet6", "year(4)", "geometry", "point"),
]


@given(st.sampled_from(TYPES))
def test_a_type_fits_into_itself(text: str) -> None:
    assert type_misfit(column(text, "utf8mb4"), column(text, "utf8mb4")) is None


@given(st.sampled_from(TYPES), st.sampled_from(TYPES))
def test_two_types_that_fit_both_ways_are_one_type(first: str, second: str) -> None:
    one, two = column(first, "utf8mb4"), column(second, "utf8mb4")
    if type_misfit(one, two) is None and type_misfit(two, one) is None:
        assert first == second
