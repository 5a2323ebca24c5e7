"""Expression filters: which changes of rows are left out because an expression is true.

Source of the rules: the TiDB Data Migration page "Filter DMLs Using SQL Expressions".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from replicator.routing.expression.check import ExpressionCheck, Find, FindCollation
from replicator.routing.expression.evaluation import Evaluate, Row, evaluator
from replicator.routing.expression.text import ExpressionText
from replicator.routing.expression.types import Call, Checked, ExpressionError, FilterColumn


@dataclass(frozen=True, slots=True)
class ExpressionRule:
    """A rule as written; an empty expression means none."""

    name: str
    schema: str
    table: str
    insert: str = ""
    update_old: str = ""
    update_new: str = ""
    delete: str = ""


class Fate(IntEnum):
    """The kind of a row's change on the target; its number is the number of this kind of change."""

    NOTHING = 0
    INSERT = 1
    UPDATE = 2
    DELETE = 3


@dataclass(frozen=True, slots=True)
class RowRules:
    """The rules of one table, checked: plain data for executors.

    ``update`` has pairs for the row before and after; None without an expression.
    """

    insert: tuple[Call, ...] = ()
    update: tuple[tuple[Call | None, Call | None], ...] = ()
    delete: tuple[Call, ...] = ()

    @property
    def leaves_updates_out(self) -> bool:
        """Return whether the target's row may differ from the row before an update."""
        return bool(self.update)

    @property
    def follows_inserts(self) -> bool:
        """Return whether a row that an insert rule leaves out is never on the target.

        Return False if an update that makes a row such a row can be left out.
        """
        return all(before in self.insert for before, _ in self.update)


class RowFates:
    """Decides about changes by the rules of their table. Raises EvaluationError."""

    def __init__(self, rules: RowRules) -> None:
        self._follows_inserts = rules.follows_inserts
        self._insert = tuple(map(evaluator, rules.insert))
        self._update = tuple((_condition(old), _condition(new)) for old, new in rules.update)
        self._delete = tuple(map(evaluator, rules.delete))

    def of(self, change: int, before: Row, after: Row) -> Fate:
        """Return the fate of a change of this kind, the number of a `Fate`."""
        if change == Fate.UPDATE:
            return self.updated(before, after)
        return self.inserted(after) if change == Fate.INSERT else self.deleted(before)

    def inserted(self, row: Row) -> Fate:
        """Return the fate of a new row."""
        return Fate.NOTHING if self._left_out(row) else Fate.INSERT

    def deleted(self, row: Row) -> Fate:
        """Return the fate of a deleted row."""
        for condition in self._delete:
            if condition(row):
                return Fate.NOTHING
        return Fate.NOTHING if self._follows_inserts and self._left_out(row) else Fate.DELETE

    def updated(self, before: Row, after: Row) -> Fate:
        """Return the fate of a changed row.

        If the row's insert was left out by a rule, and would not be left out now, the update
        becomes an insert; in the opposite case, a delete.
        """
        for old, new in self._update:
            if old(before) and new(after):
                return Fate.NOTHING
        if self._left_out(after):
            return Fate.NOTHING if self._left_out(before) else Fate.DELETE
        if self._follows_inserts and self._left_out(before):
            return Fate.INSERT
        return Fate.UPDATE

    def _left_out(self, row: Row) -> bool:
        for condition in self._insert:  # noqa: SIM110 - a third faster, for each row
            if condition(row):
                return True
        return False


def _condition(call: Call | None) -> Evaluate:
    return evaluator(call) if call else lambda row: 1


@dataclass(frozen=True, slots=True)
class ResolvedRules:
    """The rules of one table with the columns that they need.

    Attributes:
        names: the names of the rules.
        columns: in the order of the values of ``rules``.
        copied: the condition of a SELECT for the rows to copy in a full copy; empty for all rows.
    """

    names: tuple[str, ...]
    columns: tuple[FilterColumn, ...]
    rules: RowRules
    copied: str


class ExpressionFilters:
    """The rules of one source. Raises ExpressionError for an expression that can't be parsed."""

    def __init__(self, rules: Iterable[ExpressionRule], *, case_sensitive: bool) -> None:
        self._case_sensitive = case_sensitive
        self._rules = tuple(_ReadRule(rule) for rule in rules)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def without_table(self, tables: Iterable[tuple[str, str]]) -> tuple[ExpressionRule, ...]:
        """Return the rules that apply to none of these tables, given by schema and name."""
        known = tuple(tables)
        return tuple(
            read.rule for read in self._rules if not any(self._is_for(read, *t) for t in known)
        )

    def concern(self, schema: str, table: str) -> bool:
        """Return whether there is a rule for a table."""
        return bool(self._of(schema, table))

    def of_updates(self, schema: str, table: str) -> bool:
        """Return whether a rule leaves out updates of a table."""
        return any(r.rule.update_old or r.rule.update_new for r in self._of(schema, table))

    def of_deletions(self, schema: str, table: str) -> bool:
        """Return whether a rule leaves out deletions of a table."""
        return any(read.rule.delete for read in self._of(schema, table))

    def texts_of(self, schema: str, table: str) -> tuple[str, ...]:
        """Return the expressions of a table's rules as written, with their keys."""
        return tuple(
            f"{key}: {text.text}"
            for read in self._of(schema, table)
            for key, text in read.texts.items()
        )

    def resolved(
        self, schema: str, table: str, find: Find, collation_of: FindCollation
    ) -> ResolvedRules | None:
        """Return the rules of a table with these columns, if any.

        Raises ExpressionError for parts that can't be evaluated exactly, with their place in the
        text.
        """
        found = self._of(schema, table)
        if not found:
            return None
        columns: dict[str, FilterColumn] = {}

        def checked(read: _ReadRule, key: str) -> Checked | None:
            text = read.texts.get(key)
            if text is None:
                return None
            try:
                return ExpressionCheck(text, find, collation_of, columns).condition()
            except ExpressionError as error:
                raise read.error(key, error) from error

        inserts = [c for read in found if (c := checked(read, "insert-value-expr"))]
        updates = [
            (checked(read, "update-old-value-expr"), checked(read, "update-new-value-expr"))
            for read in found
            if read.rule.update_old or read.rule.update_new
        ]
        deletes = [c for read in found if (c := checked(read, "delete-value-expr"))]
        return ResolvedRules(
            tuple(read.rule.name for read in found),
            tuple(columns.values()),
            RowRules(
                tuple(one.call for one in inserts),
                tuple((_call(old), _call(new)) for old, new in updates),
                tuple(one.call for one in deletes),
            ),
            " AND ".join(f"({one.sql} IS NOT TRUE)" for one in inserts),
        )

    def _of(self, schema: str, table: str) -> Sequence[_ReadRule]:
        return [read for read in self._rules if self._is_for(read, schema, table)]

    def _is_for(self, read: _ReadRule, schema: str, table: str) -> bool:
        return self._same(read.rule.schema, schema) and self._same(read.rule.table, table)

    def _same(self, one: str, other: str) -> bool:
        return one == other if self._case_sensitive else one.lower() == other.lower()


NO_EXPRESSIONS = ExpressionFilters((), case_sensitive=False)
"""A filter that every row passes."""


def _call(checked: Checked | None) -> Call | None:
    return checked.call if checked else None


class _ReadRule:
    """A rule with the trees of its expressions, by their keys in the task file."""

    def __init__(self, rule: ExpressionRule) -> None:
        self.rule = rule
        self.texts: dict[str, ExpressionText] = {}
        for key, text in (
            ("insert-value-expr", rule.insert),
            ("update-old-value-expr", rule.update_old),
            ("update-new-value-expr", rule.update_new),
            ("delete-value-expr", rule.delete),
        ):
            try:
                if text:
                    self.texts[key] = ExpressionText(text)
            except ExpressionError as error:
                raise self.error(key, error) from error

    def error(self, key: str, error: ExpressionError) -> ExpressionError:
        """The error of one of the rule's expressions, with the rule's name."""
        return ExpressionError(f"expression filter `{self.rule.name}`, {key}: {error}")
