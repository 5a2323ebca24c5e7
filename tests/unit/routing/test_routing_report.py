from __future__ import annotations

from replicator.routing.routes import RouteRule, Routes, unused_routes

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
