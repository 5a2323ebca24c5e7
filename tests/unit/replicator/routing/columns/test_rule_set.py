"""Which changed rules are noticed, and that rules are the same after they were saved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.routing.columns.column_mapping import MappingRule
from replicator.routing.columns.member_columns import Extraction, NamePart
from replicator.routing.columns.rule_set import (
    MemberRules,
    MemberRuleTexts,
    RuleSet,
    dump_rules,
    load_rules,
)
from replicator.routing.event_filter import FilterAction, FilterRule
from replicator.routing.expression.expression_filter import ExpressionRule
from replicator.routing.routes import RouteRule

RULES = RuleSet(
    "a-1",
    False,
    (RouteRule("r", "s_?", "t_*", "s", "t"), RouteRule("q", "s_?", "", "s", "")),
    (
        ("r", (Extraction(NamePart.TABLE, "t_(.)", "c"), Extraction(NamePart.SOURCE, "(.)$", "o"))),
        ("q", ()),
    ),
    (MappingRule("m", "s_*", "t_*", "id", 1, "s", "", "_"),),
    (FilterRule("f", "s_*", "t_1", ("delete",), ("DROP",), FilterAction.IGNORE),),
    (ExpressionRule("e", "s_1", "t_1", insert="v > 'ä'", delete="v IS NULL"),),
)
UPPER = (1 << 59) | (1 << 52)


def said(rules: RuleSet, table: str = "t_1") -> MemberRules:
    return MemberRuleTexts(rules).of("s_1", table)


def test_what_rules_say_of_a_table() -> None:
    assert said(RULES) == MemberRules(
        f"id | {UPPER}, c = '1', o = '1'",
        "insert-value-expr: v > 'ä'; delete-value-expr: v IS NULL",
        "delete events are left out",
        "Ignore /DROP/ statements",
    )
    assert said(RULES, "u") == MemberRules("", "", "", "")


def test_rules_about_rows_alone_say_nothing_of_statements() -> None:
    [rule] = RULES.filters
    for events, texts, wanted in (
        (("all dml",), (), ""),
        (
            ("delete", "drop column", "create table"),
            (),
            "Ignore create table, drop column statements",
        ),
        (("all",), ("x",), "Ignore all, /x/ statements"),
    ):
        filters = (replace(rule, events=events, statements=texts),)
        assert said(replace(RULES, filters=filters)).statements == wanted
        passing = replace(RULES, filters=(replace(filters[0], action=FilterAction.DO),))
        assert said(passing).statements == (wanted or "Ignore no statements").replace(
            "Ignore", "Do"
        )


def test_saved_rules_are_the_same() -> None:
    assert load_rules(dump_rules(RULES)) == RULES


def test_rules_that_a_name_does_not_suit_say_so() -> None:
    assert (
        "t_"
        in said(replace(RULES, mappings=(replace(RULES.mappings[0], table_prefix="u"),))).columns
    )


@pytest.mark.parametrize(
    "other",
    [
        replace(RULES, routes=tuple(reversed(RULES.routes))),
        replace(RULES, mappings=(replace(RULES.mappings[0], name="x", schema_pattern="s_1"),)),
        replace(RULES, filters=(replace(RULES.filters[0], name="x"),)),
        replace(RULES, expressions=(replace(RULES.expressions[0], name="x"),)),
    ],
)
def test_the_same_in_other_words_is_no_change(other: RuleSet) -> None:
    assert other != RULES
    assert said(other) == said(RULES)
