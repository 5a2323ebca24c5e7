"""Whether a target is already as a statement would make it, told from structures.

Pure. Where several members bring the same change, whoever comes first changes the target. The
server's error alone ("the column exists") says too little: another part of the statement may be
missing still.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from replicator.mysql.names import folded
from replicator.schema.structure.structure import Table


@dataclass(frozen=True, slots=True)
class MemberChange:
    """The structure of a member before and behind a statement; None where it is not known.

    ``creates``: the statement creates the member, and there is nothing before it.
    """

    before: Table | None
    after: Table | None
    creates: bool = False


def lacking(change: MemberChange, present: Table | None) -> tuple[str, ...]:
    """What the target, as it is at ``present``, lacks of a member's change; in words.

    Columns that came must be there (whether their types take the values is looked at with the rows)
    and those whose type changed must have the new one; what went must be gone; unique keys that
    came must be there. Of what is created, the table: its columns are looked at with the rows.
    Other indexes, defaults and comments mean nothing to rows.
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
