"""Event filters: which statements and which kinds of row events are left out.

Source of the rules: the TiDB Data Migration page "Binlog Event Filter".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum

from replicator.routing.wildcards import NamePattern, PatternError

ROW_EVENTS = frozenset({"insert", "update", "delete"})
"""The kinds of row events, as filters name them."""

INCOMPATIBLE = frozenset(
    {
        *("drop database", "drop table", "truncate table", "rename table", "drop index"),
        *("value range decrease", "precision decrease", "modify column", "modify default value"),
        *("modify charset", "modify collation", "remove auto increment", "modify constraint"),
        *("modify columns order", "modify storage engine", "rename column", "rename index"),
        *("drop column", "drop primary key", "drop unique key", "drop table partition"),
        *("truncate table partition", "reorganize table partition", "rebuild table partition"),
        *("coalesce table partition", "exchange table partition"),
    }
)
"""The statements of ``incompatible ddl changes``, which may cost a table rows or values."""


class FilterAction(StrEnum):
    """How an event is handled that a rule matches."""

    DO = "Do"
    """The event passes; other events of the rule's tables do not."""
    IGNORE = "Ignore"
    ERROR = "Error"


@dataclass(frozen=True, slots=True)
class FilterRule:
    """A rule as written. Without ``tables``, it applies to all events of its schemas.

    ``events`` are in lower case; ``statements`` are regular expressions, searched for anywhere in a
    statement's text, ignoring case.
    """

    name: str
    schemas: str
    tables: str
    events: tuple[str, ...]
    statements: tuple[str, ...]
    action: FilterAction


@dataclass(frozen=True, slots=True)
class FilterVerdict:
    """How an event is handled, and the name of the rule for this; empty if there is none."""

    action: FilterAction
    rule: str = ""


_PASSES = FilterVerdict(FilterAction.DO)


class EventFilter:
    """The rules of one source. Raises PatternError for a rule that can't be used.

    An event is ignored if any rule ignores it, and an error if any rule requires one. It passes if
    a rule with ``Do`` matches it or there is no such rule for its table. For ``Do``, rules for a
    table precede rules for its schema.
    """

    def __init__(self, rules: Iterable[FilterRule], *, case_sensitive: bool) -> None:
        self._rules = tuple(_CompiledFilter(rule, case_sensitive) for rule in rules)

    def rows_left_out(self, schema: str, table: str) -> frozenset[str]:
        """Return the kinds of a table's row events (ROW_EVENTS) that do not pass."""
        rules = self._of(schema, table)
        return frozenset(
            kind
            for kind in ROW_EVENTS
            if rules and _verdict(rules, {kind}, None).action is not FilterAction.DO
        )

    def statement_rules(self, schema: str, table: str) -> tuple[str, ...]:
        """Return the rules for a table's statements, as texts; equal rules have equal texts.

        The result is empty if all statements pass.
        """
        return tuple(sorted({text for rule in self._of(schema, table) if (text := rule.said)}))

    def names_kinds(self, schema: str, table: str, kinds: Set[str]) -> bool:
        """Return whether a rule for the table's statements names one of these kinds."""
        return any(rule.names_kinds(kinds) for rule in self._of(schema, table))

    def statement(self, schema: str, table: str, kinds: Set[str], sql: str) -> FilterVerdict:
        """Return the verdict on a statement on a table, or on a database if the table is empty."""
        rules = self._of(schema, table)
        return _verdict(rules, kinds, sql) if rules else _PASSES

    def _of(self, schema: str, table: str) -> Sequence[_CompiledFilter]:
        found = [rule for rule in self._rules if rule.concerns(schema, table)]
        if any(rule.of_tables and rule.action is FilterAction.DO for rule in found):
            return [r for r in found if r.of_tables or r.action is not FilterAction.DO]
        return found


NO_FILTER = EventFilter((), case_sensitive=False)
"""A filter that everything passes."""


def _verdict(rules: Sequence[_CompiledFilter], kinds: Set[str], sql: str | None) -> FilterVerdict:
    for action in (FilterAction.IGNORE, FilterAction.ERROR):
        for rule in rules:
            if rule.action is action and rule.matches(kinds, sql):
                return FilterVerdict(action, rule.name)
    passing = [rule for rule in rules if rule.action is FilterAction.DO]
    if passing and not any(rule.lets_pass(kinds, sql) for rule in passing):
        return FilterVerdict(FilterAction.IGNORE, ", ".join(rule.name for rule in passing))
    return _PASSES


class _CompiledFilter:
    """A rule that is ready for use."""

    def __init__(self, rule: FilterRule, case_sensitive: bool) -> None:
        self.name = rule.name
        self.action = rule.action
        self.of_tables = bool(rule.tables)
        self._schemas = NamePattern(rule.schemas, case_sensitive=case_sensitive)
        self._tables = (
            NamePattern(rule.tables, case_sensitive=case_sensitive) if rule.tables else None
        )
        self._named = bool(rule.events)
        self._rows = frozenset(_expanded(rule.events, "dml")) & ROW_EVENTS
        self._every_statement, self._statements = _statement_kinds(rule.events)
        self.said = self._of_statements(rule.statements)
        try:
            self._texts = [re.compile(text, re.IGNORECASE) for text in rule.statements]
        except re.error as error:
            raise PatternError(
                f"the sql-pattern of the filter {rule.name!r} is not valid: {error}. Correct it in"
                " the task file."
            ) from error

    def _of_statements(self, texts: Sequence[str]) -> str:
        """Return the part of the rule about statements, with its action; empty if there is none."""
        of_rows = {"all dml", "none dml"}
        kinds = ["all"] if self._every_statement else sorted(self._statements - of_rows)
        named = ", ".join([*kinds, *(f"/{text}/" for text in texts)])
        if not named and self.action is not FilterAction.DO:
            return ""
        return f"{self.action} {named or 'no'} statements"

    def concerns(self, schema: str, table: str) -> bool:
        """Return whether the rule applies to this table, or to this database without a table."""
        if not self._schemas.matches(schema):
            return False
        return self._tables is None or (bool(table) and self._tables.matches(table))

    def names_kinds(self, kinds: Set[str]) -> bool:
        """Return whether the rule names one of these kinds of statements."""
        return not self._every_statement and bool(self._statements & kinds)

    def matches(self, kinds: Set[str], sql: str | None) -> bool:
        """Return whether the rule names the kind or the text of an event."""
        return self._has_kind(kinds, sql) or (sql is not None and self._has_text(sql))

    def lets_pass(self, kinds: Set[str], sql: str | None) -> bool:
        """Return whether the rule names both the kind and the text of an event, if it has them."""
        by_kind = not self._named or self._has_kind(kinds, sql)
        return by_kind and (sql is None or not self._texts or self._has_text(sql))

    def _has_kind(self, kinds: Set[str], sql: str | None) -> bool:
        if sql is None:
            return bool(self._rows & kinds)
        return self._every_statement or bool(self._statements & kinds)

    def _has_text(self, sql: str) -> bool:
        return any(text.search(sql) for text in self._texts)


def _statement_kinds(events: Sequence[str]) -> tuple[bool, frozenset[str]]:
    """Return whether each statement is named, and the named kinds."""
    named = frozenset(_expanded(events, "ddl"))
    return "all" in named, named - ROW_EVENTS


def _expanded(events: Sequence[str], part: str) -> Iterator[str]:
    for event in events:
        if event in ("none", f"none {part}"):
            return
        if event in ("all", f"all {part}"):
            yield from ROW_EVENTS if part == "dml" else ("all",)
        elif event == "incompatible ddl changes":
            yield from INCOMPATIBLE
        else:
            yield event
