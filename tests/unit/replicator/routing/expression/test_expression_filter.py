"""Expression filters: what is refused and where, and what becomes of a change of a row."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from replicator.pipeline.plans.filter_columns import filter_column, known_collation
from replicator.routing.expression.evaluation import EvaluationError
from replicator.routing.expression.expression_filter import (
    ExpressionFilters,
    ExpressionRule,
    Fate,
    ResolvedRules,
    RowFates,
)
from replicator.routing.expression.types import ExpressionError, FilterColumn
from replicator.schema.structure.structure import Column

COLUMNS = {
    column.name: column
    for column in (
        Column("c", "int(11)"),
        Column("u", "bigint(20) unsigned"),
        Column("v", "varchar(20)", "utf8mb4", "utf8mb4_bin"),
        Column("w", "varchar(20)", "utf8mb4", "utf8mb4_0900_ai_ci"),
        Column("x", "varchar(20)", "utf8mb4", "utf8mb4_swedish_ci"),
        Column("j", "json"),
        Column("ts", "timestamp"),
        Column("g", "double"),
        Column("gs", "double(10,2)"),
        Column("day", "date"),
        Column("clock", "time(3)"),
    )
}


def resolved(*rules: ExpressionRule) -> ResolvedRules:
    def find(name: str) -> FilterColumn | None:
        return filter_column(COLUMNS[name]) if name in COLUMNS else None

    found = ExpressionFilters(rules, case_sensitive=False).resolved("s", "t", find, known_collation)
    assert found is not None
    return found


def rule(**expressions: str) -> ExpressionRule:
    return ExpressionRule("f", "s", "t", **expressions)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("c = ", "an operand is missing (line 1, column 3)"),
        ("", "is empty"),
        ("missing = 1", "`missing`: the table has no such column (line 1, column 1)"),
        ("c = 1\n  AND FOO(c) > 1", "`FOO(c)`: not supported"),
        ("c = 1\n  AND FOO(c) > 1", "(line 2, column 7)"),
        ("c = 1 AND NOW() > day", "`NOW()`: not supported"),
        ("c = RAND()", "not supported"),
        ("c IN (SELECT 1)", "IN takes a list of values"),
        ("c REGEXP 'a'", "not supported"),
        ("c | 1", "not supported"),
        ("c = 1 || c = 2", "write the one you mean (line 1, column 7)"),
        ("c = 1 /* all */", "comments"),
        ("c = 1; DROP TABLE t", "semicolon"),
        ("c = @a", "not supported"),
        ("t.c = 1", "without its table"),
        ("c = 'abc'", "write the number without quotes"),
        ("v = 5", "can't be compared here"),
        ("v", "is no condition"),
        ("w < 'b'", "the order of texts by utf8mb4_0900_ai_ci"),
        ("w = 'é'", "only plain ASCII"),
        ("x = 'a'", "how utf8mb4_swedish_ci compares texts is not known"),
        ("v = w", "different collations"),
        ("w COLLATE latin1_bin = 'a'", "utf8mb4_bin is"),
        ("j = '1'", "IS NULL"),
        ("ts > '2020-01-01 00:00:00'", "write it with its offset"),
        ("HOUR(ts) = 1", "it takes a datetime"),
        ("clock = '1:00'", "is not a time in the form"),
        ("gs = 1", "tolerance"),
        ("g % 2 = 0", "rounding differs"),
        ("day > '2020-1-1'", "YYYY-MM-DD"),
        ("day > '2021-02-29'", "is not a valid date"),
        ("day > 20200101", "can't be compared here"),
        ("u IN (-1, 2)", "signed and unsigned numbers together"),
        ("CASE c WHEN 1 THEN 1 WHEN u THEN 2 END = 2", "signed and unsigned numbers together"),
        ("CASE c WHEN 18446744073709551615 THEN 1 END = 1", "signed and unsigned numbers together"),
        ("CASE u WHEN -1 THEN 1 END = 1", "signed and unsigned numbers together"),
        ("c XOR c AND c", "parentheses"),
        ("LOWER(w) = 'a'", "leave out LOWER"),
        ("LENGTH(LOWER(v)) = 1", "plain ASCII"),
        ("SUBSTRING(v, 1.5) = 'a'", "whole numbers"),
        ("CAST(v AS CHAR) = 'a'", "AS BINARY"),
    ],
)
def test_what_can_not_be_evaluated_exactly_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        resolved(rule(insert=text or " "))
    assert said in str(caught.value)
    assert "expression filter `f`, insert-value-expr: " in str(caught.value)


Fields = Mapping[str, int | None]


def fate(rules: ResolvedRules, before: Fields | None, after: Fields | None) -> Fate:
    def values(row: Fields) -> list[int | None]:
        return [row[column.name] for column in rules.columns]

    if before is None:
        assert after is not None
        return RowFates(rules.rules).inserted(values(after))
    if after is None:
        return RowFates(rules.rules).deleted(values(before))
    return RowFates(rules.rules).updated(values(before), values(after))


IN, OUT = {"c": 1}, {"c": 0}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, IN, Fate.INSERT),
        (None, OUT, Fate.NOTHING),
        (None, {"c": None}, Fate.INSERT),
        (IN, None, Fate.DELETE),
        (OUT, None, Fate.NOTHING),
        (IN, IN, Fate.UPDATE),
        (IN, OUT, Fate.DELETE),
        (OUT, IN, Fate.INSERT),
        (OUT, OUT, Fate.NOTHING),
    ],
)
def test_a_rule_for_inserts_decides_which_rows_there_are(
    before: Fields | None, after: Fields | None, expected: Fate
) -> None:
    assert fate(resolved(rule(insert="c = 0")), before, after) is expected


def test_an_update_is_left_out_where_both_of_its_expressions_are_true() -> None:
    both = resolved(rule(update_old="c < 10", update_new="c > 20"))
    assert fate(both, {"c": 5}, {"c": 30}) is Fate.NOTHING
    assert fate(both, {"c": 5}, {"c": 15}) is Fate.UPDATE
    assert fate(both, {"c": 15}, {"c": 30}) is Fate.UPDATE
    assert fate(both, {"c": None}, {"c": 30}) is Fate.UPDATE
    one = resolved(rule(update_new="c > 20"))
    assert fate(one, {"c": 99}, {"c": 30}) is Fate.NOTHING
    other = resolved(rule(update_old="c < 10"), rule(update_new="c > 20"))
    assert fate(other, {"c": 5}, {"c": 15}) is Fate.NOTHING
    assert fate(other, {"c": 15}, {"c": 30}) is Fate.NOTHING


def test_only_a_rule_for_deletes_keeps_rows_that_are_gone() -> None:
    rules = resolved(rule(delete="c = 1"))
    assert fate(rules, {"c": 1}, None) is Fate.NOTHING
    assert fate(rules, {"c": 2}, None) is Fate.DELETE
    assert fate(rules, None, {"c": 1}) is Fate.INSERT


def test_one_condition_for_all_kinds_of_changes_keeps_its_rows_out() -> None:
    same = {"insert": "c = 0", "update_old": "c = 0", "update_new": "c = 0", "delete": "c = 0"}
    rules = resolved(rule(**same))
    assert fate(rules, OUT, IN) is Fate.INSERT
    assert fate(rules, IN, OUT) is Fate.DELETE
    assert fate(rules, OUT, OUT) is Fate.NOTHING
    assert fate(rules, OUT, None) is Fate.NOTHING


def test_where_updates_are_left_out_a_row_may_be_on_the_target_though_it_was_not_inserted() -> None:
    rules = resolved(rule(insert="c = 0"), rule(update_new="c = 0"))
    assert fate(rules, IN, OUT) is Fate.NOTHING, "the target keeps the row as it was"
    assert fate(rules, OUT, IN) is Fate.UPDATE
    assert fate(rules, OUT, None) is Fate.DELETE


def test_a_rule_is_found_by_schema_and_table() -> None:
    filters = ExpressionFilters([rule(insert="c = 1")], case_sensitive=False)
    assert filters.concern("S", "T")
    assert not filters.concern("s", "t2")
    assert not ExpressionFilters([rule(insert="c = 1")], case_sensitive=True).concern("S", "T")


def test_a_row_that_the_server_would_have_an_error_for_is_an_error() -> None:
    rules = resolved(rule(insert="u - 1 > 5"))
    assert fate(rules, None, {"u": 7}) is Fate.NOTHING
    assert fate(rules, None, {"u": 6}) is Fate.INSERT
    with pytest.raises(EvaluationError, match="out of the range"):
        fate(rules, None, {"u": 0})


def test_the_condition_of_a_copy_names_bytes_and_quoted_columns() -> None:
    rules = resolved(rule(insert="v = 'é' OR c IN (1, -2)"))
    expected = "(((`v` = _utf8mb4 x'c3a9') OR (`c` IN (1, (-2)))) IS NOT TRUE)"
    assert rules.copied == expected
    assert resolved(rule(delete="c = 1")).copied == ""
    moment = resolved(rule(insert="ts > '2020-01-01 02:00:00+02:00'"))
    assert moment.copied == "((`ts` > TIMESTAMP'2020-01-01 00:00:00.000000') IS NOT TRUE)"
