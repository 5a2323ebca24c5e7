"""Route rules: which upstream table goes to which target table.

Source of the rules: the TiDB Data Migration page "Table Routing".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from replicator.routing.wildcards import NamePattern, PatternError

KEPT = 1 << 16
"""Of so many tables it is remembered which rule decides: each is asked for often, and all rules are
looked at."""


class TargetName(NamedTuple):
    """The name of a downstream table."""

    schema: str
    table: str


class RouteError(ValueError):
    """A rule that cannot be used, or a name that more than one rule claims."""


@dataclass(frozen=True, slots=True)
class RouteRule:
    """One entry of ``routes`` in the task file; patterns as in `NamePattern`.

    Without ``table_pattern`` the rule is about whole schemas; without ``target_table`` tables keep
    their names.
    """

    name: str
    schema_pattern: str
    table_pattern: str
    target_schema: str
    target_table: str


class _CompiledRoute(NamedTuple):
    rule: RouteRule
    schema: NamePattern
    table: NamePattern | None

    def matches(self, schema: str, table: str) -> bool:
        """Tell whether the rule is about this table."""
        return self.schema.matches(schema) and (self.table is None or self.table.matches(table))


class Routes:
    """The route rules of one source. ``case_sensitive``: patterns count the case of names.

    Raises `RouteError` for a rule that is not complete or has a broken pattern.
    """

    def __init__(self, rules: Iterable[RouteRule], *, case_sensitive: bool) -> None:
        compiled = [_compiled(rule, case_sensitive) for rule in rules]
        self.case_sensitive = case_sensitive
        self.rules = tuple(entry.rule for entry in compiled)
        self._of_tables = tuple(entry for entry in compiled if entry.table is not None)
        self._of_schemas = tuple(entry for entry in compiled if entry.table is None)
        self._known = lru_cache(maxsize=KEPT)(self._find_rule)

    def rule_of(self, schema: str, table: str) -> RouteRule | None:
        """Return the rule that decides about a table, None if there is none.

        A rule with a table pattern precedes rules for whole schemas. Raises `RouteError` if two
        rules of the same level match: which of them was meant cannot be known.
        """
        return self._known(schema, table)

    def _find_rule(self, schema: str, table: str) -> RouteRule | None:
        matching = [entry.rule for entry in self._of_tables if entry.matches(schema, table)]
        what = f"the table {schema}.{table}"
        return _only(matching, what) or _only(self._schema_rules(schema), what)

    def target(self, schema: str, table: str) -> TargetName:
        """Return where a table goes: under its own name if no rule is about it.

        Raises `RouteError` as `rule_of`.
        """
        rule = self.rule_of(schema, table)
        if rule is None:
            return TargetName(schema, table)
        return TargetName(rule.target_schema, rule.target_table or table)

    def schema_rule_of(self, schema: str) -> RouteRule | None:
        """Return the rule for whole schemas that matches, None if there is none.

        Raises `RouteError` as `rule_of`.
        """
        return _only(self._schema_rules(schema), f"the schema {schema}")

    def target_schema(self, schema: str) -> str:
        """Return where a schema goes, for CREATE and ALTER DATABASE.

        Only rules without a table pattern count, as in DM; a schema without one keeps its name.
        Raises `RouteError` as `rule_of`.
        """
        rule = self.schema_rule_of(schema)
        return rule.target_schema if rule else schema

    def _schema_rules(self, schema: str) -> list[RouteRule]:
        return [entry.rule for entry in self._of_schemas if entry.schema.matches(schema)]


def _compiled(rule: RouteRule, case_sensitive: bool) -> _CompiledRoute:
    if not rule.schema_pattern or not rule.target_schema:
        missing = "target-schema" if rule.schema_pattern else "schema-pattern"
        raise RouteError(f"the route {rule.name!r} has no {missing}: add it in the task file.")
    try:
        return _CompiledRoute(
            rule,
            NamePattern(rule.schema_pattern, case_sensitive=case_sensitive),
            NamePattern(rule.table_pattern, case_sensitive=case_sensitive)
            if rule.table_pattern
            else None,
        )
    except PatternError as error:
        raise RouteError(f"the route {rule.name!r}: {error}") from error


def _only(matching: list[RouteRule], what: str) -> RouteRule | None:
    if len(matching) > 1:
        names = " and ".join(repr(rule.name) for rule in matching)
        raise RouteError(
            f"{what} matches the routes {names}, and only one of them can decide where it goes: "
            "make their schema-pattern or table-pattern narrower in the task file."
        )
    return matching[0] if matching else None
