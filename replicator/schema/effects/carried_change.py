"""Checks whether a target already has the result of a member's statement, by structures.

If several members make the same change, the first of them changes the target. The server's error
alone ("the column exists") is not enough to skip the others: another part of the statement may
still be missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from replicator.mysql.names import folded
from replicator.schema.structure.structure import Table


@dataclass(frozen=True, slots=True)
class MemberChange:
    """The structure of a member before and after a statement; None if unknown.

    Attributes:
        creates: whether the statement creates the member, so that it had no structure before.
    """

    before: Table | None
    after: Table | None
    creates: bool = False


def lacking(change: MemberChange, present: Table | None) -> tuple[str, ...]:
    """Return in words which parts of a member's change the target ``present`` lacks.

    Added columns must exist and changed columns must have the new type; whether their types accept
    the values is checked with the rows. Dropped columns and keys must not exist, and added unique
    keys must exist. If the statement creates the member, only the table must exist. Other indexes,
    defaults and comments do not affect rows.
    """
    if present is None:
        return ("the table does not exist",)
    if change.creates:
        return ()
    if change.before is None or change.after is None:
        return ("what the statement did to the shard is not known",)
    return (
        *_columns(change.before, change.after, present),
        *_keys(change.before, change.after, present),
    )


def _columns(before: Table, after: Table, present: Table) -> Iterator[str]:
    for column in after.columns:
        former, there = before.column(column.name), present.column(column.name)
        if former == column:
            continue
        if there is None:
            yield f"column {column.name} is missing"
        elif former is not None and former.type != column.type != there.type:
            yield f"column {column.name} is {there.type} instead of {column.type}"
    for column in before.columns:
        if after.column(column.name) is None and present.column(column.name) is not None:
            yield f"column {column.name} is there still"


def _keys(before: Table, after: Table, present: Table) -> Iterator[str]:
    former, latter, there = (
        {folded(key.name): tuple(map(folded, key.columns)) for key in table.keys}
        for table in (before, after, present)
    )
    for name, columns in latter.items():
        if former.get(name) != columns and there.get(name) != columns:
            yield f"unique key {name} ({', '.join(columns)}) is missing"
    for name in former.keys() - latter.keys() & there.keys():
        yield f"unique key {name} is there still"
