"""Route rules: the target table of each upstream table.

Source of the rules: the TiDB Data Migration page "Table Routing".
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from replicator.routing.allow_list import AllowList
from replicator.routing.online_tables import NO_ONLINE_NAMES, OnlineNames, OnlineTable
from replicator.routing.wildcards import NamePattern, PatternError

KEPT = 1 << 16
"""Number of tables whose rule is cached: each is needed often, and finding it needs a match with
all rules."""


class TargetName(NamedTuple):
    """The name of a downstream table."""

    schema: str
    table: str


class RouteError(ValueError):
    """A rule that cannot be used, or a name that more than one rule matches."""


@dataclass(frozen=True, slots=True)
class RouteRule:
    """One entry of ``routes`` in the task file; patterns as in `NamePattern`.

    Without ``table_pattern`` the rule applies to whole schemas; without ``target_table`` tables
    keep their names.
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
        """Whether the rule applies to this table."""
        return self.schema.matches(schema) and (self.table is None or self.table.matches(table))


class Routes:
    """The route rules of one source. ``case_sensitive``: whether case counts in patterns.

    Raises `RouteError` for a rule that is incomplete or has a broken pattern.
    """

    def __init__(self, rules: Iterable[RouteRule], *, case_sensitive: bool) -> None:
        compiled = [_compiled(rule, case_sensitive) for rule in rules]
        self.case_sensitive = case_sensitive
        self.rules = tuple(entry.rule for entry in compiled)
        self._of_tables = tuple(entry for entry in compiled if entry.table is not None)
        self._of_schemas = tuple(entry for entry in compiled if entry.table is None)
        self._known = lru_cache(maxsize=KEPT)(self._find_rule)

    def rule_of(self, schema: str, table: str) -> RouteRule | None:
        """Return the rule that applies to a table; None if there is none.

        A rule with a table pattern precedes rules for whole schemas. Raises `RouteError` if two
        rules of the same level match, since it is unknown which of them was meant.
        """
        return self._known(schema, table)

    def _find_rule(self, schema: str, table: str) -> RouteRule | None:
        matching = [entry.rule for entry in self._of_tables if entry.matches(schema, table)]
        what = f"the table {schema}.{table}"
        return _only(matching, what) or _only(self._schema_rules(schema), what)

    def target(self, schema: str, table: str) -> TargetName:
        """Return the target of a table: its own name if no rule applies to it.

        Raises the errors of `rule_of`.
        """
        rule = self.rule_of(schema, table)
        if rule is None:
            return TargetName(schema, table)
        return TargetName(rule.target_schema, rule.target_table or table)

    def schema_rule_of(self, schema: str) -> RouteRule | None:
        """Return the rule for whole schemas that matches; None if there is none.

        Raises the errors of `rule_of`.
        """
        return _only(self._schema_rules(schema), f"the schema {schema}")

    def target_schema(self, schema: str) -> str:
        """Return the target of a schema, for CREATE and ALTER DATABASE.

        Only rules without a table pattern count, as in DM; a schema without such a rule keeps its
        name. Raises the errors of `rule_of`.
        """
        rule = self.schema_rule_of(schema)
        return rule.target_schema if rule else schema

    def _schema_rules(self, schema: str) -> list[RouteRule]:
        return [entry.rule for entry in self._of_schemas if entry.schema.matches(schema)]


@lru_cache(maxsize=16)
def routes_of(rules: tuple[RouteRule, ...], *, case_sensitive: bool) -> Routes:
    """Return `Routes`; equal rules share one object with its cache."""
    return Routes(rules, case_sensitive=case_sensitive)


def _compiled(rule: RouteRule, case_sensitive: bool) -> _CompiledRoute:
    if not rule.schema_pattern or not rule.target_schema:
        missing = "target-schema" if rule.schema_pattern else "schema-pattern"
        raise RouteError(f"the route {rule.name!r} has no {missing}: add it in the task file.")
    names = rule.schema_pattern, rule.table_pattern
    return _CompiledRoute(rule, *patterns_of(f"the route {rule.name!r}", *names, case_sensitive))


def patterns_of(
    rule: str, schema: str, table: str, case_sensitive: bool
) -> tuple[NamePattern, NamePattern | None]:
    """Return the patterns of a rule for names of schemas and of tables; None for no table pattern.

    Raises `RouteError`, which names the ``rule``, for a broken pattern.
    """
    try:
        return (
            NamePattern(schema, case_sensitive=case_sensitive),
            NamePattern(table, case_sensitive=case_sensitive) if table else None,
        )
    except PatternError as error:
        raise RouteError(f"{rule}: {error}") from error


def _only(matching: list[RouteRule], what: str) -> RouteRule | None:
    if len(matching) > 1:
        names = " and ".join(repr(rule.name) for rule in matching)
        raise RouteError(
            f"{what} matches the routes {names}, and only one of them can decide where it goes: "
            "make their schema-pattern or table-pattern narrower in the task file."
        )
    return matching[0] if matching else None


_SUGGESTIONS = 3


@dataclass(frozen=True, slots=True)
class UnusedRoute:
    """A route that applies to no existing table.

    ``nearest``: the existing names most similar to its patterns, the best first: ``schema.table``,
    or schemas for a rule without a table pattern.
    """

    rule: RouteRule
    nearest: tuple[str, ...]

    @property
    def message(self) -> str:
        """Return the message for the operator."""
        pattern = _pattern(self.rule)
        hint = f"The nearest are: {', '.join(self.nearest)}." if self.nearest else "There are none."
        return (
            f"the route {self.rule.name!r} ({pattern}) decides about no table of the source, so "
            f"nothing goes to {self.rule.target_schema}.{self.rule.target_table or '*'} by it. "
            f"{hint} Correct schema-pattern and table-pattern, or remove the route."
        )


def unused_routes(routes: Routes, tables: Iterable[tuple[str, str]]) -> tuple[UnusedRoute, ...]:
    """Return the rules that apply to none of these tables (pairs of schema and table).

    ``tables``: the upstream tables that pass the allow list.

    A rule for whole schemas counts as used if one of its schemas has a table, even if narrower
    rules apply to all of its tables: it is still needed for the databases. Raises `RouteError` if
    two rules match a table.
    """
    existing = sorted(set(tables))
    deciding = {routes.rule_of(schema, table) for schema, table in existing}
    of_schemas = {routes.schema_rule_of(schema) for schema, _ in existing}
    return tuple(
        UnusedRoute(rule, _nearest(rule, existing))
        for rule in routes.rules
        if rule not in deciding and rule not in of_schemas
    )


def _pattern(rule: RouteRule) -> str:
    return (
        f"{rule.schema_pattern}.{rule.table_pattern}" if rule.table_pattern else rule.schema_pattern
    )


def _nearest(rule: RouteRule, existing: list[tuple[str, str]]) -> tuple[str, ...]:
    names = [f"{schema}.{table}" if rule.table_pattern else schema for schema, table in existing]
    folded = {name.lower(): name for name in names}
    # A wildcard matches unknown characters: leave it out of the comparison.
    wanted = "".join(c for c in _pattern(rule).lower() if c not in "~^$*?[]!\\+()")
    found = difflib.get_close_matches(wanted, folded, n=_SUGGESTIONS, cutoff=0.4)
    return tuple(folded[name] for name in found)


class Router:
    """Routes the tables of one source. Results are cached, since every row event needs one.

    Tables that tools make beside a replicated one, to change its structure, are not routed.
    ``left_out``: more tables that are not routed, as schema and table.
    """

    def __init__(
        self,
        allow_list: AllowList,
        routes: Routes,
        online: OnlineNames = NO_ONLINE_NAMES,
        left_out: Collection[tuple[str, str]] = (),
    ) -> None:
        self._left_out = frozenset(left_out)
        self._allow_list = allow_list
        self._routes = routes
        self._online = online
        self._known: dict[tuple[str, str], TargetName | None] = {}

    def route(self, schema: str, table: str) -> TargetName | None:
        """Return the target of a table; None if it is not replicated.

        Raises `RouteError` if two routes match the table.
        """
        key = (schema, table)
        if key not in self._known:
            beside = self.online(schema, table)
            self._known[key] = self._target(schema, table) if beside is None else None
        return self._known[key]

    def online(self, schema: str, table: str) -> OnlineTable | None:
        """Return the role of a table in an online schema change of a replicated table, if any.

        Raises `RouteError` if two routes match the replicated table.
        """
        beside = self._online.read(table)
        if beside is None or self._target(schema, beside.real) is None:
            return None
        return beside

    def _target(self, schema: str, table: str) -> TargetName | None:
        allowed = (schema, table) not in self._left_out and self._allow_list.allows(schema, table)
        return self._routes.target(schema, table) if allowed else None

    def route_schema(self, schema: str) -> str | None:
        """Return the target of a schema; None if it is not replicated.

        Raises `RouteError` if two routes match the schema.
        """
        if not self._allow_list.allows_schema(schema):
            return None
        return self._routes.target_schema(schema)
