"""What becomes of many changes of rows at once, by the rules of their table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat

import numpy as np

from replicator.routing.expression.column_evaluation import (
    Array,
    ColumnEvaluation,
    ValueColumn,
    rows_of,
)
from replicator.routing.expression.evaluation import EvaluationError, Row
from replicator.routing.expression.expression_filter import Fate, RowRules
from replicator.routing.expression.types import Call
from replicator.routing.expression.vectors import INEXACT


def fates(rules: RowRules, changes: Array, columns: Sequence[ValueColumn]) -> Array:
    """The `Fate` of each change, as its number; the same as `RowRules` gives them one by one.

    ``changes`` are numbers of `Fate`, too: what each change was in the shard. ``columns`` have the
    images of all these rows in order, of an update the one before and then the one after. Raises
    EvaluationError, or what the columns raise.
    """
    images = 1 + (changes == Fate.UPDATE)
    last = np.cumsum(images) - 1
    first = last - images + 1
    rows = int(images.sum())
    try:
        return _FateOfRows(rules, ColumnEvaluation(columns, rows), rows, first, last).of(changes)
    except (EvaluationError, *INEXACT):
        # Whether an error counts depends on what else the expression looks at in its row.
        values = rows_of(columns, rows)
        before, after = (map(values.__getitem__, places.tolist()) for places in (first, last))
        return np.array(list(map(_fate, repeat(rules), changes.tolist(), before, after)), np.int64)


def _fate(rules: RowRules, change: int, before: Row, after: Row) -> Fate:
    if change == Fate.UPDATE:
        return rules.updated(before, after)
    return rules.inserted(after) if change == Fate.INSERT else rules.deleted(before)


class _FateOfRows:
    """The rules on whole columns; ``first`` and ``last``: by change, its images."""

    def __init__(
        self, rules: RowRules, evaluation: ColumnEvaluation, rows: int, first: Array, last: Array
    ) -> None:
        self._rules = rules
        self._evaluation = evaluation
        self._count = rows
        self._first = first
        self._last = last

    def of(self, changes: Array) -> Array:
        """The fates."""
        found = changes.copy()
        left_out = self._any(self._rules.insert)
        before, after = left_out[self._first], left_out[self._last]
        found[(changes == Fate.INSERT) & after] = Fate.NOTHING
        deletes = changes == Fate.DELETE
        if deletes.any():
            kept = self._any(self._rules.delete)[self._first]
            if self._rules.follows_inserts:
                kept |= before
            found[deletes & kept] = Fate.NOTHING
        updates = changes == Fate.UPDATE
        if updates.any():
            found[updates & after] = Fate.DELETE
            found[updates & after & before] = Fate.NOTHING
            if self._rules.follows_inserts:
                found[updates & before & ~after] = Fate.INSERT
            for old, new in self._rules.update:
                skipped = self._true(old)[self._first] & self._true(new)[self._last]
                found[updates & skipped] = Fate.NOTHING
        return found

    def _any(self, calls: Iterable[Call]) -> Array:
        found = np.zeros(self._count, np.bool_)
        for call in calls:
            found |= self._evaluation.true(call)
        return found

    def _true(self, call: Call | None) -> Array:
        if call is None:
            return np.ones(self._count, np.bool_)
        return self._evaluation.true(call)
