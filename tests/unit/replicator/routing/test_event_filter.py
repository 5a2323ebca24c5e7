"""Which events pass: the rules by their actions, levels and texts."""

from __future__ import annotations

import pytest

from replicator.routing.event_filter import (
    NO_FILTER,
    ROW_EVENTS,
    EventFilter,
    FilterAction,
    FilterRule,
    FilterVerdict,
)
from replicator.routing.wildcards import PatternError

DO, IGNORE, ERROR = FilterAction.DO, FilterAction.IGNORE, FilterAction.ERROR
ALTER = frozenset({"alter table", "drop column"})
SQL = "ALTER TABLE t DROP c"


def rule(
    action: FilterAction,
    *events: str,
    tables: str = "t_*",
    sql: tuple[str, ...] = (),
    name: str = "r",
    schemas: str = "s*",
) -> FilterRule:
    return FilterRule(name, schemas, tables, events, sql, action)


def made(*rules: FilterRule, case_sensitive: bool = False) -> EventFilter:
    return EventFilter(rules, case_sensitive=case_sensitive)


def verdict(filtering: EventFilter, kinds: frozenset[str] = ALTER, sql: str = SQL) -> FilterAction:
    return filtering.statement("s1", "t_1", kinds, sql).action


def test_without_rules_everything_passes() -> None:
    assert NO_FILTER.rows_left_out("s", "t") == frozenset()
    assert NO_FILTER.statement("s", "t", ALTER, SQL) == FilterVerdict(DO)


def test_a_rule_is_about_its_tables_only() -> None:
    filtering = made(rule(IGNORE, "all", name="nothing"))
    assert filtering.statement("s1", "t_1", ALTER, SQL) == FilterVerdict(IGNORE, "nothing")
    assert filtering.statement("s1", "u", ALTER, SQL) == FilterVerdict(DO)
    assert filtering.statement("x", "t_1", ALTER, SQL) == FilterVerdict(DO)
    assert filtering.rows_left_out("s1", "t_1") == ROW_EVENTS
    assert filtering.rows_left_out("s1", "u") == frozenset()


@pytest.mark.parametrize(
    ("events", "rows", "statement"),
    [
        (("all",), ROW_EVENTS, IGNORE),
        (("all dml",), ROW_EVENTS, DO),
        (("all ddl",), (), IGNORE),
        (("insert", "delete"), {"insert", "delete"}, DO),
        (("drop column",), (), IGNORE),
        (("create index",), (), DO),
        (("none",), (), DO),
        (("none ddl", "all"), ROW_EVENTS, DO),
        (("none dml", "all"), (), IGNORE),
        (("insert", "none", "delete"), {"insert"}, DO),
    ],
)
def test_what_a_rule_ignores(
    events: tuple[str, ...], rows: frozenset[str], statement: FilterAction
) -> None:
    filtering = made(rule(IGNORE, *events))
    assert filtering.rows_left_out("s1", "t_1") == frozenset(rows)
    assert verdict(filtering) is statement


def test_do_lets_nothing_else_pass() -> None:
    filtering = made(rule(DO, "create table", "all dml"))
    assert filtering.rows_left_out("s1", "t_1") == frozenset()
    assert verdict(filtering) is IGNORE
    assert verdict(filtering, frozenset({"create table"}), "CREATE TABLE t (a int)") is DO
    assert made(rule(DO, "insert")).rows_left_out("s1", "t_1") == {"update", "delete"}


def test_of_several_do_one_is_enough() -> None:
    filtering = made(rule(DO, "insert"), rule(DO, "update", tables="*"))
    assert filtering.rows_left_out("s1", "t_1") == {"delete"}


def test_do_of_a_table_goes_before_that_of_its_schema() -> None:
    filtering = made(rule(DO, "all dml"), rule(DO, "create database", tables=""))
    assert filtering.rows_left_out("s1", "t_1") == frozenset()
    assert filtering.rows_left_out("s1", "other") == ROW_EVENTS
    assert filtering.statement("s1", "", {"create database"}, "CREATE DATABASE s1").action is DO
    assert filtering.statement("s1", "", {"drop database"}, "DROP DATABASE s1").action is IGNORE


def test_ignore_goes_before_error_and_error_before_do() -> None:
    assert verdict(made(rule(DO, "all"), rule(ERROR, "drop column"))) is ERROR
    assert verdict(made(rule(ERROR, "drop column"), rule(IGNORE, "alter table"))) is IGNORE
    assert verdict(made(rule(IGNORE, "drop column"), rule(DO, "all"))) is IGNORE


def test_a_rule_of_a_schema_is_about_its_tables_too() -> None:
    filtering = made(rule(IGNORE, tables="", sql=(r"drop\s+C",)))
    assert verdict(filtering) is IGNORE
    assert filtering.rows_left_out("s1", "t_1") == frozenset()
    assert verdict(filtering, sql="ALTER TABLE t ADD c int") is DO


def test_ignore_is_content_with_one_of_event_and_text_do_is_not() -> None:
    text = (r"^alter\s+table\s+t\s+drop",)
    assert verdict(made(rule(IGNORE, "create table", sql=text))) is IGNORE
    assert verdict(made(rule(DO, "create table", sql=text))) is IGNORE
    assert verdict(made(rule(DO, "alter table", sql=text))) is DO
    assert verdict(made(rule(DO, sql=text))) is DO
    assert verdict(made(rule(DO, sql=("nothing",)))) is IGNORE
    assert made(rule(DO, sql=text)).rows_left_out("s1", "t_1") == frozenset()


def test_names_are_compared_as_the_task_says() -> None:
    assert made(rule(IGNORE, "all", schemas="S1")).rows_left_out("s1", "T_1") == ROW_EVENTS
    exact = made(rule(IGNORE, "all", schemas="S1"), case_sensitive=True)
    assert exact.rows_left_out("s1", "t_1") == frozenset()


def test_a_broken_text_is_an_error() -> None:
    with pytest.raises(PatternError, match="filter 'r' is not valid"):
        made(rule(IGNORE, sql=("(",)))
