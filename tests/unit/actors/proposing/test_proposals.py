"""Routes proposed for tables whose names differ in numbers only."""

from __future__ import annotations

import re

import pytest

from actors.proposing.proposals import propose
from replicator.mysql.names import TableName


def names(*tables: str) -> list[TableName]:
    return [TableName(*table.split(".")) for table in tables]


@pytest.mark.parametrize(
    ("tables", "schema", "table", "target"),
    [
        (
            ["shop_1.orders_3", "shop_2.orders_4"],
            "~^shop_[0-9]+$",
            "~^orders_[0-9]+$",
            "shop.orders",
        ),
        (["shop.orders_00", "shop.orders_01"], "shop", "~^orders_[0-9]+$", "shop.orders"),
        (["db1.t2x", "db7.t2x"], "~^db[0-9]+$", "t2x", "db.t2x"),
        (["a.2023_log_1", "a.2024_log_2"], "a", "~^[0-9]+_log_[0-9]+$", "a.log"),
        (["a.1", "a.2"], "a", "~^[0-9]+$", "a.merged"),
        (["a-b_1.t", "a-b_2.t"], r"~^a\-b_[0-9]+$", "t", "a-b.t"),
    ],
    ids=str,
)
def test_numbers_that_vary_are_left_out_of_the_target(
    tables: list[str], schema: str, table: str, target: str
) -> None:
    proposal = propose({"a": names(*tables)})
    [route] = proposal.routes
    assert (route.schema_pattern, route.table_pattern) == (schema, table)
    assert route.target == TableName(*target.split("."))
    assert [name for _, name in route.shards] == sorted(names(*tables))
    for name in names(*tables):
        for pattern, text in ((schema, name.schema), (table, name.table)):
            assert re.fullmatch(pattern.removeprefix("~"), text)


def test_equal_names_of_several_sources_are_shards_of_one_table() -> None:
    proposal = propose({"a": names("shop.orders", "shop.only_a"), "b": names("shop.orders")})
    [route] = proposal.routes
    assert (route.schema_pattern, route.table_pattern) == ("shop", "orders")
    assert [source for source, _ in route.shards] == ["a", "b"]
    assert proposal.alone == (("a", TableName("shop", "only_a")),)


def test_groups_that_would_have_one_target_get_two() -> None:
    tables = names("s.a_1", "s.a_2", "s.a1", "s.a2")
    assert sorted(str(route.target) for route in propose({"x": tables}).routes) == ["s.a_n", "s.an"]


def test_names_of_another_form_are_matched_by_no_pattern() -> None:
    found = propose({"x": names("s.a_1", "s.a_2", "s.a_1_old")})
    [route] = found.routes
    assert not re.search(route.table_pattern.removeprefix("~"), "a_1_old")
    assert found.alone == (("x", TableName("s", "a_1_old")),)
