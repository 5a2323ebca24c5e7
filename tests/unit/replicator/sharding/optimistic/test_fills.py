"""Fills: what they are as literals, and when two of them are the same."""

from __future__ import annotations

import pytest

from replicator.schema.structure.structure import Column, Table
from replicator.sharding.optimistic.alters import NoAlterError, derived_alter
from replicator.sharding.optimistic.fills import NOT_CONSTANT, Fill, fill_of
from replicator.sharding.optimistic.shapes import shape_of


def with_column(kind: str, default: str, charset: str = "") -> Table:
    text = f"CREATE TABLE `t` (\n  `id` int NOT NULL,\n  `c` {kind}{default}\n)"
    column = Column("c", kind, charset, nullable="NOT NULL" not in default)
    return Table("d", "t", (Column("id", "int", nullable=False), column), (), text)


def fill(kind: str, default: str, charset: str = "") -> Fill:
    table = with_column(kind, default, charset)
    return fill_of(table, table.columns[1])


@pytest.mark.parametrize(
    ("kind", "default", "charset", "sql"),
    [
        ("varchar(9)", " DEFAULT 'ab'", "latin1", "'ab'"),
        ("varchar(9)", " DEFAULT 'ab'", "utf32", "CONVERT('ab' USING utf8mb4)"),
        ("enum('ab')", " NOT NULL", "ucs2", "CONVERT('ab' USING utf8mb4)"),
        ("varchar(9)", " DEFAULT 'é'", "latin1", "CONVERT('é' USING utf8mb4)"),
        ("uuid", " DEFAULT '0-1'", "", "CONVERT('0-1' USING utf8mb4)"),
        ("inet6", " DEFAULT '::1'", "", "CONVERT('::1' USING utf8mb4)"),
        ("char(9)", " DEFAULT 'a  '", "ascii", "'a'"),
        ("varchar(9)", " DEFAULT 'a  '", "ascii", "'a  '"),
        ("float", " DEFAULT 1.1", "", "1.100000023841858"),
        ("float", " DEFAULT -0.5", "", "-0.5"),
        ("varbinary(9)", " DEFAULT 0x00FF", "", "0x00FF"),
    ],
)
def test_a_literal_means_the_same_in_each_session(
    kind: str, default: str, charset: str, sql: str
) -> None:
    """Rows are written by sessions of bytes."""
    assert fill(kind, default, charset).sql == sql


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("decimal(5,2)", " DEFAULT 1.25"), ("decimal(7,4)", " DEFAULT '1.2500'"), True),
        (("decimal(5,2)", " NOT NULL"), ("int", " NOT NULL DEFAULT 0"), True),
        (("datetime", " NOT NULL"), ("datetime(3)", " DEFAULT '0000-00-00 00:00:00.000'"), True),
        (("float", " DEFAULT 0.5"), ("double", " DEFAULT 0.5"), True),
        (("float", " DEFAULT 1.1"), ("double", " DEFAULT 1.1"), False),
        (("varchar(9)", " DEFAULT 'a'"), ("varchar(9)", " DEFAULT 'a '"), False),
        (("bit(3)", " DEFAULT b'101'"), ("bit(9)", " DEFAULT b'000000101'"), True),
    ],
)
def test_fills_are_compared_by_their_values(
    one: tuple[str, str], other: tuple[str, str], same: bool
) -> None:
    assert (fill(*one).text == fill(*other).text) is same


@pytest.mark.parametrize(
    ("kind", "default", "charset"),
    [("float", " DEFAULT 3.14159", ""), ("varchar(9)", " DEFAULT 'ä?'", "utf8mb4")],
)
def test_a_default_that_a_server_shows_in_part(kind: str, default: str, charset: str) -> None:
    """Its column has more digits, or another character than the question mark."""
    found = fill(kind, default, charset)
    assert (found.sql, found.shows_less) == (NOT_CONSTANT, True)
    assert found.text != fill(kind, default.replace("?", "!").replace("9", "8"), charset).text
    table = with_column(kind, default, charset)
    lacking = Table("d", "t", table.columns[:1], (), "CREATE TABLE `t` (\n  `id` int NOT NULL\n)")
    with pytest.raises(NoAlterError, match="may show only a part"):
        derived_alter(shape_of(lacking), shape_of(table), lacking, [table])
    assert fill("varchar(9)", " DEFAULT '?'", "utf8mb4").shows_less, "one character"
    assert not fill("varchar(9)", " DEFAULT 'a?'", "latin1").shows_less
    assert not fill("float", " DEFAULT 1.5", "").shows_less
