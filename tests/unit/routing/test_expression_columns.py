"""Expressions on whole columns: the same as row by row, whatever the rows and the expression."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from random import Random

import numpy as np
import pytest

from replicator.routing.expression.column_evaluation import ColumnEvaluation
from replicator.routing.expression.evaluation import EvaluationError, Row, Value, evaluator
from replicator.routing.expression.expression_filter import Fate, RowRules
from replicator.routing.expression.row_fates import fates
from replicator.routing.expression.types import Call, ExpressionError, FilterColumn
from replicator.routing.expression.vectors import INEXACT
from replicator.rows.decoder.row_block import RowChange
from tests.support.values.expression_values import (
    FILTERED,
    ListColumn,
    checked,
    number_near,
    value_of,
)
from tests.support.values.expressions import random_expression, random_row

ROWS = 60
EXPRESSIONS = 300
BIG = 1 << 63

Truth = bool | str


def columns_of(columns: Sequence[FilterColumn], rows: Sequence[Row]) -> list[ListColumn]:
    return [ListColumn(column, [row[n] for row in rows]) for n, column in enumerate(columns)]


def by_column(call: Call, columns: Sequence[FilterColumn], rows: Sequence[Row]) -> list[Truth]:
    """By row, whether a condition is true, or that the row is to be looked at alone.

    Where there is such a row among them, the others are evaluated once more without it.
    """
    try:
        evaluation = ColumnEvaluation(columns_of(columns, rows), len(rows))
        return list(map(bool, evaluation.true(call)))
    except (EvaluationError, *INEXACT):
        if len(rows) == 1:
            return ["doubtful"]
    middle = len(rows) // 2
    return by_column(call, columns, rows[:middle]) + by_column(call, columns, rows[middle:])


def by_row(call: Call, row: Row) -> Truth:
    try:
        return bool(evaluator(call)(row))
    except EvaluationError:
        return "error"


def differing(text: str, rows: Sequence[dict[str, Value]], seen: Counter[Truth]) -> list[str]:
    """Where the two ways to evaluate an expression differ."""
    found, columns = checked(text)
    lines = [[row[column.name] for column in columns] for row in rows]
    wrong = []
    for line, ours in zip(lines, by_column(found.call, columns, lines), strict=True):
        theirs = by_row(found.call, line)
        seen[ours] += 1
        if ours != "doubtful" and ours != theirs:
            wrong.append(f"{text} on {line}: {theirs} by row, {ours} by column")
        if ours == "doubtful" and theirs != "error":
            seen["needlessly doubtful"] += 1
    return wrong


def test_random_expressions_are_what_they_are_row_by_row() -> None:
    random = Random(11)
    rows = [
        {name: value_of(column, row[name]) for name, column in FILTERED.items()}
        for row in (random_row(random) for _ in range(ROWS))
    ]
    seen: Counter[Truth] = Counter()
    wrong: list[str] = []
    evaluated = 0
    for _ in range(EXPRESSIONS):
        text = random_expression(random)
        try:
            wrong += differing(text, rows, seen)
            evaluated += 1
        except ExpressionError:
            continue
    assert not wrong, "\n".join(wrong[:8])
    assert evaluated > EXPRESSIONS * 0.4
    assert min(seen[True], seen[False]) > 1000
    assert seen["doubtful"] < seen[True] + seen[False]


ARITHMETIC = (
    *("b + b > 0", "b - u < 5", "u * 2 > u", "-b > b", "ABS(b) = b", "b DIV i = 1", "u DIV b > 0"),
    *("b % i = 0", "u % 3 = 1", "b / i > 0.5", "u / b < 1", "d * e > b", "e - d = e", "-d < d"),
    *("g + b > 0", "g * g > 1", "g / f = 1", "u + 0e0 = u", "u = 18446744073709551615"),
    *("b = g", "u > g", "d / 3 = d", "e * e * 10 > 1", "i IN (1, b, b - b)", "u IN (5, u, NULL)"),
    *("b IN (9223372036854775807, 1)", "u IN (18446744073709551615, 5)", "d IN (0.5, 3, NULL)"),
    *("b <=> NULL", "u = b", "COALESCE(b, u) > 5", "IF(b > 0, u, b) = b", "NULLIF(b, i) IS NULL"),
    *(
        "u BETWEEN u AND 18446744073709551615",
        "NOT (b > u) AND u > 0",
        "b > 0 AND 9223372036854775807 + b > 0",
    ),
    *("CASE i WHEN 5 THEN u WHEN 1 THEN b END > 0", "u - 1 > 0 OR u = 0", "(b > 0) + (u > 0) = 2"),
    *("(i = 1) XOR (b = 1)", "b", "NOT g", "d", "u IS TRUE", "(b + 1 > 0) IS FALSE"),
)


@pytest.mark.parametrize("text", ARITHMETIC)
def test_numbers_at_their_limits_neither_wrap_around_nor_are_rounded(text: str) -> None:
    random = Random(5)

    def row() -> dict[str, Value]:
        values: dict[str, Value] = {
            "i": number_near(random, 2**31 - 2, -(2**31) + 1),
            "b": max(-BIG, min(BIG - 1, number_near(random, BIG - 2, -BIG + 1, 2**53))),
            "u": max(0, min(2 * BIG - 1, number_near(random, BIG, 2 * BIG - 2, 2**53))),
            "d": number_near(random, 10**10 - 1, -(10**10) + 1),
            "e": number_near(random, 10**20 - 1, 10**18, -(10**20) + 1),
            "f": random.choice((0.0, 0.5, -1.5, 3e38)),
            "g": random.choice((0.0, 0.1, 1e308, -1e308, float(2**53), 1.8446744073709552e19)),
        }
        return {n: None if random.random() < 0.1 else value for n, value in values.items()}

    seen: Counter[Truth] = Counter()
    try:
        wrong = differing(text, [row() for _ in range(600)], seen)
    except ExpressionError as error:
        pytest.fail(str(error))
    assert not wrong, "\n".join(wrong[:8])


@pytest.mark.parametrize("rows", [0, 1])
def test_there_may_be_no_rows_and_no_columns(rows: int) -> None:
    for text, truth in (("TRUE", True), ("NULL", False), ("1 > 2 OR 'a' IS NULL", False)):
        found, columns = checked(text)
        assert by_column(found.call, columns, [()] * rows) == [truth] * rows
    found, columns = checked("u % 3 = 1 AND s = 'a' AND s < s2")
    lines: list[Row] = [(4, "a", "b")] * rows
    assert by_column(found.call, columns, lines) == [True] * rows


def random_rules(random: Random, calls: Sequence[Call]) -> RowRules:
    def some(most: int) -> tuple[Call, ...]:
        return tuple(random.choices(calls, k=random.randint(0, most)))

    insert = some(2)
    either = (*calls, *insert, None)
    update = [(random.choice(either), random.choice(either)) for _ in range(random.randint(0, 2))]
    return RowRules(insert, tuple(pair for pair in update if pair != (None, None)), some(2))


def one_by_one(
    rules: RowRules, changes: Sequence[int], images: Sequence[Sequence[Row]]
) -> list[Fate]:
    found = []
    for change, rows in zip(changes, images, strict=True):
        match Fate(change):
            case Fate.INSERT:
                found.append(rules.inserted(rows[0]))
            case Fate.DELETE:
                found.append(rules.deleted(rows[0]))
            case _:
                found.append(rules.updated(*rows))
    return found


def test_changes_have_the_fate_that_they_have_one_by_one() -> None:
    random = Random(3)
    texts = ("i > 1", "u - 1 > 3", "s = 'a'", "s LIKE 'a%' AND i < 5", "n = 'red' OR d IS NULL")
    both = " AND ".join(f"({text})" for text in texts)
    _, columns = checked(both)
    calls = [operand for text in texts for operand in [_as_in(text, columns)]]
    seen: Counter[object] = Counter()
    for _ in range(300):
        rules = random_rules(random, calls)
        changes = random.choices((1, 2, 3), k=random.choice((1, 5, 30)))
        images = [
            [
                [value_of(column, row[column.name]) for column in columns]
                for row in (random_row(random) for _ in range(1 + (change == RowChange.UPDATE)))
            ]
            for change in changes
        ]
        rows = list(chain.from_iterable(images))
        try:
            expected = one_by_one(rules, changes, images)
        except EvaluationError:
            seen["error"] += 1
            with pytest.raises(EvaluationError):
                fates(rules, np.array(changes), columns_of(columns, rows))
            continue
        found = fates(rules, np.array(changes), columns_of(columns, rows)).tolist()
        assert found == expected, (rules, changes, rows)
        seen.update(found)
    assert min(seen["error"], *(seen[fate] for fate in Fate)) > 10, seen


def _as_in(text: str, columns: Sequence[FilterColumn]) -> Call:
    """The call of an expression, with the places that its columns have among others."""
    found, own = checked(text)
    places = [columns.index(column) for column in own]

    def moved(call: Call) -> Call:
        if call.operation == "column":
            return Call("column", (), (places[int(call.settings[0])],))
        return Call(call.operation, tuple(map(moved, call.operands)), call.settings)

    return moved(found.call)


def test_a_guarded_row_is_no_error() -> None:
    found, columns = checked("u > 0 AND u - 1 > 5")
    lines: list[Row] = [(0,), (7,), (3,), (None,)]
    assert by_column(found.call, columns, lines) == ["doubtful", True, False, False]
    rules = RowRules(insert=(found.call,))
    fate = fates(rules, np.array([1, 1, 1, 1]), columns_of(columns, lines))
    assert fate.tolist() == [Fate.INSERT, Fate.NOTHING, Fate.INSERT, Fate.INSERT]


def test_fates_have_the_numbers_of_changes() -> None:
    assert {change.name: int(change) for change in RowChange} == {
        fate.name: int(fate) for fate in Fate if fate is not Fate.NOTHING
    }
