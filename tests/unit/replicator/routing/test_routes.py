from __future__ import annotations

import pytest

from replicator.routing.allow_list import AllowList, TableFilter
from replicator.routing.routes import (
    RouteError,
    Router,
    RouteRule,
    Routes,
    TargetName,
    unused_routes,
)


def routes(*rules: RouteRule, case_sensitive: bool = False) -> Routes:
    return Routes(rules, case_sensitive=case_sensitive)


TABLES = RouteRule("tables", "shard_*", "t_*", "all", "t")
SCHEMAS = RouteRule("schemas", "shard_*", "", "all", "")


@pytest.mark.parametrize(
    ("name", "target"),
    [
        (("shard_1", "t_1"), ("all", "t")),
        (("shard_2", "T_9"), ("all", "t")),
        (("SHARD_2", "t_"), ("all", "t")),
        (("shard_1", "Other"), ("all", "Other")),
        (("Else", "t_1"), ("Else", "t_1")),
    ],
)
def test_a_table_rule_precedes_a_schema_rule(
    name: tuple[str, str], target: tuple[str, str]
) -> None:
    assert routes(TABLES, SCHEMAS).target(*name) == TargetName(*target)
    assert routes(SCHEMAS, TABLES).target(*name) == TargetName(*target)


def test_without_a_schema_rule_other_tables_keep_their_names() -> None:
    assert routes(TABLES).target("shard_1", "other") == ("shard_1", "other")
    assert routes().target("a", "b") == ("a", "b")


def test_an_empty_target_table_keeps_the_name() -> None:
    rule = RouteRule("r", "a", "t_*", "b", "")
    assert routes(rule).target("a", "t_X") == ("b", "t_X")


def test_a_schema_rule_may_name_a_table() -> None:
    assert routes(RouteRule("r", "a", "", "b", "t")).target("a", "x") == ("b", "t")


def test_case_sensitive() -> None:
    strict = routes(TABLES, case_sensitive=True)
    assert strict.target("shard_1", "t_1") == ("all", "t")
    assert strict.target("Shard_1", "t_1") == ("Shard_1", "t_1")


def test_schemas_follow_schema_rules_only() -> None:
    assert routes(TABLES).target_schema("shard_1") == "shard_1"
    assert routes(TABLES, SCHEMAS).target_schema("shard_1") == "all"
    assert routes(TABLES, SCHEMAS).target_schema("else") == "else"


def test_two_table_rules_are_an_error_that_names_both() -> None:
    ambiguous = routes(TABLES, RouteRule("narrow", "shard_1", "t_1", "x", "y"), SCHEMAS)
    with pytest.raises(RouteError, match=r"shard_1\.t_1 matches the routes 'tables' and 'narrow'"):
        ambiguous.target("shard_1", "t_1")
    assert ambiguous.target("shard_2", "t_1") == ("all", "t")


def test_two_schema_rules_are_an_error_unless_a_table_rule_decides() -> None:
    ambiguous = routes(SCHEMAS, RouteRule("other", "*", "", "x", ""), TABLES)
    assert ambiguous.target("shard_1", "t_1") == ("all", "t")
    with pytest.raises(RouteError, match="'schemas' and 'other'"):
        ambiguous.target("shard_1", "u")
    with pytest.raises(RouteError, match="the schema shard_1 matches"):
        ambiguous.target_schema("shard_1")


def test_incomplete_and_broken_rules() -> None:
    with pytest.raises(RouteError, match="'r' has no schema-pattern"):
        routes(RouteRule("r", "", "t", "a", "b"))
    with pytest.raises(RouteError, match="'r' has no target-schema"):
        routes(RouteRule("r", "a", "t", "", "b"))
    with pytest.raises(RouteError, match="the route 'r': the pattern 't\\['"):
        routes(RouteRule("r", "a", "t[", "a", "b"))


def router(*rules: RouteRule) -> Router:
    lists = AllowList(
        do_dbs=["shard_*"],
        ignore_tables=[TableFilter("*", "log")],
        case_sensitive=False,
        never=["shard_meta"],
    )
    return Router(lists, Routes(rules, case_sensitive=False))


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


EXISTING = [("shard_1", "orders_1"), ("shard_1", "users"), ("shard_2", "Orders_2")]


def unused(*rules: RouteRule, case_sensitive: bool = False) -> dict[str, tuple[str, ...]]:
    found = unused_routes(Routes(rules, case_sensitive=case_sensitive), EXISTING)
    return {entry.rule.name: entry.nearest for entry in found}


def test_rules_that_match_are_not_reported() -> None:
    assert unused(RouteRule("r", "shard_*", "orders_*", "all", "orders")) == {}
    assert unused() == {}


def test_a_rule_that_matches_nothing_names_the_nearest_tables() -> None:
    nearest = unused(RouteRule("r", "shard_*", "order-*", "all", "orders"))["r"]
    assert set(nearest[:2]) == {"shard_1.orders_1", "shard_2.Orders_2"}
    assert nearest[2:] == ("shard_1.users",)


def test_a_rule_for_schemas_names_the_nearest_schemas() -> None:
    assert unused(RouteRule("r", "shards_*", "", "all", ""))["r"] == ("shard_2", "shard_1")


def test_case_matters_where_the_task_says_so() -> None:
    rule = RouteRule("r", "SHARD_*", "orders_*", "all", "orders")
    assert unused(rule) == {}
    assert "r" in unused(rule, case_sensitive=True)


def test_a_schema_rule_beside_table_rules_is_used() -> None:
    tables = RouteRule("tables", "shard_*", "*", "all", "everything")
    assert unused(tables, RouteRule("schemas", "shard_*", "", "all", "")) == {}


def test_a_message_names_the_rule_and_the_nearest_tables() -> None:
    (entry,) = unused_routes(
        Routes([RouteRule("r", "shard_*", "order-*", "all", "o")], case_sensitive=False), EXISTING
    )
    assert "'r' (shard_*.order-*)" in entry.message
    assert "all.o" in entry.message
    assert "shard_1.orders_1" in entry.message
    (alone,) = unused_routes(Routes([entry.rule], case_sensitive=False), [])
    assert alone.nearest == ()
    assert "There are none" in alone.message
