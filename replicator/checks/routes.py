"""Checks that the routes of a source match tables, and compare names as the servers do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from replicator.checks.checked_task import SourceToCheck
from replicator.checks.connecting import Account
from replicator.checks.result import CheckedPart, CheckResult
from replicator.mysql.names import TableName
from replicator.routing.routes import RouteError, unused_routes
from replicator.routing.wildcards import is_plain
from replicator.schema.registry.registry import TargetNames

SHOWN = 10
"""Maximum number of names in a message; the others are only counted."""


def routed_tables(
    source: SourceToCheck, tables: Sequence[TableName]
) -> list[tuple[TableName, TableName]]:
    """Pair each replicated table with its target. Raises RouteError if two routes match a table."""
    pairs = []
    for name in tables:
        target = source.router.route(name.schema, name.table)
        if target is not None:
            pairs.append((name, TableName(*target)))
    return pairs


def check_routes(
    source: SourceToCheck, tables: Sequence[TableName], account: Account
) -> list[CheckResult]:
    """Check that no table matches two routes, each name fits the rules, and no route is unused.

    A source without a table may get one later. ``tables``: the tables that ``account`` sees.
    """
    place = CheckedPart(source.source_id)
    try:
        pairs = routed_tables(source, tables)
        idle = unused_routes(source.routes, [(t.schema, t.table) for t in tables])
    except RouteError as error:
        return [
            place.failed(
                "routes", str(error), "Narrow the patterns under 'routes:' so that one matches"
            )
        ]
    try:
        for name, _ in pairs:
            source.columns.of(name.schema, name.table)
    except RouteError as error:
        return [
            place.failed(
                "routes",
                str(error),
                "Correct the rule in the task file, so that it suits the names of all its tables",
            )
        ]
    results = [
        place.warning(
            "routes",
            unused.message,
            f"Under 'routes:', {unused.rule.name}: set schema-pattern and table-pattern to match "
            + (f"{unused.nearest[0]}" if unused.nearest else "tables of this source"),
        )
        for unused in idle
    ]
    if pairs:
        targets = len({target for _, target in pairs})
        results.insert(
            0, place.passed("routes", f"tables replicated: {len(pairs)}, into targets: {targets}")
        )
        return results
    return [
        place.warning(
            "routes",
            "no table of this source is replicated yet: the task waits for tables to be created;"
            f" the user sees {listed(tables)}",
            "If there should be some, correct the block-allow-list and routes in the task file. If"
            " a table is missing in this list, the user has no privilege on it:"
            f" {_grants(source, account)}",
        ),
        *results,
    ]


def _grants(source: SourceToCheck, account: Account) -> str:
    patterns = dict.fromkeys(rule.schema_pattern for rule in source.routes.rules)
    return " ".join(
        account.grant("SELECT", pattern) if is_plain(pattern) else account.grant_pattern(pattern)
        for pattern in patterns or ("*",)
    )


def listed(names: Sequence[TableName]) -> str:
    """Return the first names, and the number of the others."""
    if not names:
        return "no table at all"
    text = ", ".join(str(name) for name in names[:SHOWN])
    more = len(names) - SHOWN
    return f"{text} and {more} more" if more > 0 else text


_ITEM = "lower_case_table_names"


def check_source_names(source: SourceToCheck, *, folds: bool) -> list[CheckResult]:
    """Check whether case counts in the task file for names that the source has lowered."""
    if not (folds and source.routes.case_sensitive):
        return []
    return [
        CheckedPart(source.source_id).warning(
            _ITEM,
            "names of tables have no case at this server (lower_case_table_names), and are taken in"
            " lower case: under case-sensitive, a pattern with a capital letter in routes or the"
            " block-allow-list matches none of them",
            "Leave out `case-sensitive: true` for this source, or write its patterns in lower case",
        )
    ]


def check_target_names(targets: Iterable[TableName], *, folds: bool) -> list[CheckResult]:
    """Check whether two targets are the same table for their server."""
    names = TargetNames(folds=folds)
    return [
        CheckedPart("target").failed(
            _ITEM,
            f"{name} and {other} are two targets of the task and one to the server"
            " (lower_case_table_names): their schema changes and rows would be counted apart and"
            " get into one table",
            "Spell both alike in target-schema and target-table under 'routes:'; a table or"
            " database without a route goes under its own name, so give it one",
        )
        for name in targets
        if (other := names.clash(name)) is not None
    ]
