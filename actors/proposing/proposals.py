"""Routes for tables whose names differ only in numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from replicator.mysql.names import TableName

_NUMBER = re.compile(r"([0-9]+)")
_REST = re.compile(r"[_\-.]*#")


@dataclass(frozen=True, slots=True)
class ProposedRoute:
    """A route for tables that seem to be shards of one table.

    Attributes:
        schema_pattern, table_pattern: patterns that match these tables, and no table whose name
            differs in more than the varying numbers.
        target: the target of the route.
        shards: the tables, each with its source.
    """

    schema_pattern: str
    table_pattern: str
    target: TableName
    shards: tuple[tuple[str, TableName], ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """The proposed routes, and the tables without a route, each with its source."""

    routes: tuple[ProposedRoute, ...]
    alone: tuple[tuple[str, TableName], ...]


def propose(tables: Mapping[str, Iterable[TableName]]) -> Proposal:
    """Propose routes for the tables of these sources.

    Two routes never get the same target: if several groups of names would have the same target, the
    target's name has ``n`` at the places of the numbers.
    """
    groups: dict[tuple[str, str], list[tuple[str, TableName]]] = {}
    for source, names in sorted(tables.items()):
        for name in sorted(names):
            stem = _NUMBER.sub("#", name.schema), _NUMBER.sub("#", name.table)
            groups.setdefault(stem, []).append((source, name))
    alone = [shards[0] for shards in groups.values() if len(shards) == 1]
    found = [tuple(shards) for shards in groups.values() if len(shards) > 1]
    short = [_target([name for _, name in shards], "") for shards in found]
    routes = []
    for shards, target in zip(found, short, strict=True):
        names = [name for _, name in shards]
        if short.count(target) > 1:
            target = _target(names, "n")
        routes.append(
            ProposedRoute(
                _pattern([name.schema for name in names]),
                _pattern([name.table for name in names]),
                target,
                shards,
            )
        )
    return Proposal(tuple(routes), tuple(alone))


def _parts(names: Sequence[str]) -> list[str | None]:
    """Return the common parts of names with the same stem; None for a number that varies."""
    split = [_NUMBER.split(name) for name in names]
    return [parts[0] if len(set(parts)) == 1 else None for parts in zip(*split, strict=True)]


def _pattern(names: Sequence[str]) -> str:
    parts = _parts(names)
    if None not in parts and not set("*?[~") & set(names[0]):
        return names[0]
    return f"~^{''.join('[0-9]+' if part is None else re.escape(part) for part in parts)}$"


def _target(names: Sequence[TableName], number: str) -> TableName:
    return TableName(
        _without([name.schema for name in names], number),
        _without([name.table for name in names], number),
    )


def _without(names: Sequence[str], number: str) -> str:
    """Return what names have in common, without the separator before a varying number."""
    text = "".join("#" if part is None else part.replace("#", "") for part in _parts(names))
    if number:
        return text.replace("#", number)
    return _REST.sub("", text).strip("_-.") or "merged"
