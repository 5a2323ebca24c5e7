"""Columns that are filled from the names of a source, a database or a table."""

from __future__ import annotations

import pytest

from replicator.routing.columns.column_mapping import ColumnMappings
from replicator.routing.columns.member_columns import (
    AS_THEY_ARE,
    ColumnRules,
    ExtractedColumn,
    Extraction,
    NamePart,
)
from replicator.routing.routes import RouteError, RouteRule, Routes

SHARDS = RouteRule("shards", "test_*", "t*", "all", "t")
WHOLE = RouteRule("whole", "test_*", "", "all", "")


def rules(source: str, *extractions: Extraction, route: str = "shards") -> ColumnRules:
    routes = Routes([SHARDS, WHOLE], case_sensitive=False)
    return ColumnRules(
        source, routes, {route: extractions}, ColumnMappings([], case_sensitive=False)
    )


def value(part: NamePart, expression: str, source: str, schema: str, table: str) -> str:
    found = rules(source, Extraction(part, expression, "c")).of(schema, table)
    (column,) = found.extracted
    assert column.name == "c"
    return column.value


@pytest.mark.parametrize(
    ("part", "expression", "expected"),
    [
        (NamePart.TABLE, "t_(.*)", "1_b"),
        (NamePart.TABLE, "^t_([0-9])_(.)$", "1b"),
        (NamePart.TABLE, "(_)(x)?", "_"),
        (NamePart.TABLE, "t()", ""),
        (NamePart.SCHEMA, "test_(.*)", "11"),
        (NamePart.SCHEMA, "(?P<whole>.*)", "test_11"),
        (NamePart.SOURCE, r"-(\d+)", "01"),
        (NamePart.SOURCE, "(.*)", "mysql-01"),
    ],
)
def test_what_the_groups_hold_is_joined(part: NamePart, expression: str, expected: str) -> None:
    assert value(part, expression, "mysql-01", "test_11", "t_1_b") == expected


def test_several_columns_come_in_the_order_of_the_rule() -> None:
    given = rules(
        "a",
        Extraction(NamePart.TABLE, "t_(.*)", "c_table"),
        Extraction(NamePart.SOURCE, "(.*)", "c_source"),
    )
    assert given.of("test_1", "t_2").extracted == (
        ExtractedColumn("c_table", "2"),
        ExtractedColumn("c_source", "a"),
    )
    assert given.of("test_1", "t_2").extracted_names == {"c_table", "c_source"}


def test_only_the_route_that_decides_about_a_table_extracts() -> None:
    given = rules("a", Extraction(NamePart.TABLE, "(.*)", "c"), route="whole")
    assert given.of("test_1", "t_1") == AS_THEY_ARE
    assert given.of("else", "t_1") == AS_THEY_ARE
    assert given.of("test_1", "u").extracted == (ExtractedColumn("c", "u"),)


@pytest.mark.parametrize(
    ("part", "expression", "name"),
    [
        (NamePart.TABLE, "t_([0-9]+)", "t"),
        (NamePart.TABLE, "T(.*)", "t"),
        (NamePart.SCHEMA, "shard_(.*)", "test_1"),
        (NamePart.SOURCE, r"(\d+)", "mysql-٣"),
    ],
)
def test_a_name_without_a_match_is_refused(part: NamePart, expression: str, name: str) -> None:
    with pytest.raises(RouteError, match=f"the {part} by .* does not match '{name}'"):
        value(part, expression, "mysql-٣", "test_1", "t")
