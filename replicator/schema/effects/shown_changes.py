"""Changes of a table that affect none of its rows, and whether another table shows them.

Defaults, comments, keys, CHECKs and foreign keys are not parts of a row. A table that already has
the result of such a change need not execute it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import replace

from replicator.ddl.model.table import ForeignKeyDefinition, TableDefinition
from replicator.mysql.names import folded
from replicator.schema.structure.structure import Table, differences

_WHOLE = ("periods", "partitioning", "versioned", "temporary", "unknown")
"""The parts of a definition that no such change affects."""


def shows_change(before: Table, after: Table, own: Table) -> bool:
    """Return whether `own` has the result of another table's change from `before` to `after`.

    Return False if the change affects rows or changes nothing.
    """
    changed = _parts(before.definition) != _parts(after.definition)
    return changed and shows_outcome(before, after, own)


def shows_outcome(before: Table, after: Table, own: Table) -> bool:
    """Return whether `own` has the combined result of several changes of another table.

    A change that a later one reverted does not count. Return False if the result affects rows.
    """
    return not differences(before, after) and shows_result(before, after, own)


def shows_result(before: Table, after: Table, own: Table) -> bool:
    """Return whether ``own`` has the combined result of several changes, including columns."""
    old, new, shown = before.definition, after.definition, own.definition
    if differences(after, own) or [*new.all_unknown]:
        return False
    if any(getattr(old, part) != getattr(new, part) for part in _WHOLE):
        return False
    was, becomes, there = _parts(old), _parts(new), _parts(shown)
    # A table may have a part twice, such as two CHECKs with the same condition.
    gone, come = (was - becomes).keys(), (becomes - was).keys()
    return all(there[part] >= becomes[part] for part in come) and all(
        there[part] <= becomes[part] for part in gone
    )


def refuses_no_more(table: Table, other: Table) -> bool:
    """Return whether a table refuses no rows that another table with the same columns accepts."""
    return _limits(table) <= _limits(other)


def _limits(table: Table) -> Counter[Hashable]:
    """Return the parts that refuse rows: unique keys, CHECKs and foreign keys."""
    shown = table.definition
    keys = (tuple(key.parts) for key in shown.keys if key.unique)
    checks = (check.text for check in shown.checks)
    return Counter([*keys, *checks, *map(_without_name, shown.foreign_keys)])


def _parts(table: TableDefinition) -> Counter[Hashable]:
    """Return the parts of a definition, without names that servers generate."""
    columns = (replace(column, name=folded(column.name)) for column in table.columns)
    keys = ((key.kind, folded(key.name), key.parts, key.attributes) for key in table.keys)
    checks = (check.text for check in table.checks)
    parts: Iterable[Hashable] = [
        *columns,
        *keys,
        *checks,
        *map(_without_name, table.foreign_keys),
        *table.options,
    ]
    return Counter(parts)


def _without_name(key: ForeignKeyDefinition) -> Hashable:
    return replace(key, name="", parent_schema="", parent="")
