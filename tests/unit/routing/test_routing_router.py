from __future__ import annotations

import pytest

from replicator.routing.allow_list import AllowList, TableFilter
from replicator.routing.routes import RouteError, Router, RouteRule, Routes


def router(*rules: RouteRule) -> Router:
    lists = AllowList(
        do_dbs=["shard_*"],
        ignore_tables=[TableFilter("*", "log")],
        case_sensitive=False,
        never=["shard_meta"],
    )
    return Router(lists, Routes(rules, case_sensitive=False))


TABLES = RouteRule("tables", "shard_*", "t_*", "all", "t")
SCHEMAS = RouteRule("schemas", "shard_*", "", "all", "")


def test_filtered_routed_or_left_alone() -> None:
    both = router(TABLES)
    for _ in range(2):
        assert both.route("shard_1", "t_1") == ("all", "t")
        assert both.route("shard_1", "u") == ("shard_1", "u")
        assert both.route("shard_1", "log") is None
        assert both.route("else", "t_1") is None
        assert both.route("shard_meta", "t_1") is None
        assert both.route("mysql", "user") is None


def test_a_schema_goes_where_its_rule_says_if_it_is_replicated() -> None:
    assert router(TABLES, SCHEMAS).route_schema("shard_1") == "all"
    assert router(TABLES).route_schema("shard_1") == "shard_1"
    assert router(TABLES).route_schema("else") is None


def test_an_ambiguous_table_is_an_error_each_time_unless_it_is_filtered() -> None:
    ambiguous = router(TABLES, RouteRule("again", "*", "*", "x", "y"))
    for _ in range(2):
        with pytest.raises(RouteError, match="'tables' and 'again'"):
            ambiguous.route("shard_1", "t_1")
    assert ambiguous.route("shard_1", "log") is None
