"""Finding routes that match nothing: the commonest mistake in a task file."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from replicator.routing.routes import RouteRule, Routes

_SUGGESTIONS = 3


@dataclass(frozen=True, slots=True)
class UnusedRoute:
    """A route that decides about no existing table.

    ``nearest`` are the existing names most like its patterns, the best first: ``schema.table``,
    or schemas for a rule without a table pattern.
    """

    rule: RouteRule
    nearest: tuple[str, ...]

    @property
    def message(self) -> str:
        """What the operator is told."""
        pattern = _pattern(self.rule)
        hint = f"The nearest are: {', '.join(self.nearest)}." if self.nearest else "There are none."
        return (
            f"the route {self.rule.name!r} ({pattern}) decides about no table of the source, so "
            f"nothing goes to {self.rule.target_schema}.{self.rule.target_table or '*'} by it. "
            f"{hint} Correct schema-pattern and table-pattern, or remove the route."
        )


def unused_routes(routes: Routes, tables: Iterable[tuple[str, str]]) -> tuple[UnusedRoute, ...]:
    """Return the rules that decide about none of these tables (pairs of schema and table).

    ``tables`` are those that exist upstream and pass the allow list.

    A rule for whole schemas counts as used when one of its schemas has a table, even if narrower
    rules decide about all of them: it is still needed for the databases. Raises `RouteError` if two
    rules claim a table.
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
    # A wildcard stands for characters that are not known: leave it out of the comparison.
    wanted = "".join(c for c in _pattern(rule).lower() if c not in "~^$*?[]!\\+()")
    found = difflib.get_close_matches(wanted, folded, n=_SUGGESTIONS, cutoff=0.4)
    return tuple(folded[name] for name in found)
