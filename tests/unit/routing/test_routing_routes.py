from __future__ import annotations

import pytest

from replicator.routing.routes import RouteError, RouteRule, Routes, TargetName


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
