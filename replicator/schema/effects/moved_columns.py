"""The columns by which rows of one target move to another target that also has rows."""

from __future__ import annotations

from collections.abc import Sequence

from replicator.mysql.names import folded
from replicator.schema.effects.column_path import ColumnPath
from replicator.schema.structure.conversions import Fit, conversion, null_misfit
from replicator.schema.structure.structure import Table

ColumnPairs = tuple[tuple[str, str], ...]
"""Pairs of a column and the other target's column that gets its values."""


class ColumnsDifferError(Exception):
    """Rows of one target can't move to another; the text gives the reason."""


def moved_columns(own: Table, target: Table, paths: Sequence[ColumnPath]) -> ColumnPairs:
    """Return the columns by which rows move to a target.

    Args:
        own: the target that has the rows.
        target: the target that they move to.
        paths: possible paths of the columns of `own`; with several, the right one is unknown.

    Raises ColumnsDifferError.
    """
    found = {_pairs(own, target, dict(path)) for path in paths}
    if not found:
        raise ColumnsDifferError(f"{target.name} has never had the structure of {own.name}")
    if len(found) > 1:
        raise ColumnsDifferError(f"columns of {own.name} may be several ones of {target.name}")
    return found.pop()


def _pairs(own: Table, target: Table, path: dict[str, str]) -> ColumnPairs:
    found = []
    for column in own.columns:
        name = path.get(folded(column.name), folded(column.name))
        if not name or column.generated:
            continue
        there = target.column(name)
        if there is None:
            raise ColumnsDifferError(f"{target.name} has no column {name}")
        if there.generated:
            raise ColumnsDifferError(f"{target.name} computes the column {name}")
        for value in (conversion(column, there), null_misfit(column, there)):
            if value.fit is Fit.NONE:
                raise ColumnsDifferError(f"column {name}: {value.why}")
        found.append((column.name, there.name))
    return tuple(found)
