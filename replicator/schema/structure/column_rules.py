"""Checks of mapped and extracted columns against the structures of a shard and its target.

An extracted column exists only in the target and has one text for all rows of a shard. A mapped
column is an integer of the shard whose upper bits are set, and therefore a BIGINT in the target.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass, replace

from replicator.mysql.column_types import sizes
from replicator.mysql.names import TableName, folded, quote
from replicator.schema.structure.structure import Column, Table, numbers_of

EXTRACTED_TYPE = "VARCHAR(64)"
"""A type with room for the name of any schema or table and for the id of any source."""


@dataclass(frozen=True, slots=True)
class RuleMisfit:
    """Why a rule about a column can't be followed, and the remedy."""

    text: str
    way_out: str


def extracted_misfit(member: Table, target: Table, name: str, value: str) -> RuleMisfit | None:
    """Return why a shard's rows can't have `value` in the target's column `name`, or None."""
    column, qualified = quote(name), TableName(target.schema, target.name).quoted
    if member.column(name) is not None:
        return RuleMisfit(
            f"the shard has a column {column} itself, and the task file fills the target's from the"
            " shard's name",
            "Give the column that is extracted another name (`target-column` of the route, and in"
            " the target), or rename the shard's",
        )
    its = target.column(name)
    if its is None:
        return RuleMisfit(
            f"the target has no column {column}, which the task file fills from the shard's name",
            f"ALTER TABLE {qualified} ADD COLUMN {column} {EXTRACTED_TYPE} NOT NULL;",
        )
    modify = f"ALTER TABLE {qualified} MODIFY COLUMN {column} {EXTRACTED_TYPE} NOT NULL;"
    if its.generated:
        return RuleMisfit(f"the target computes {column}, which the task file fills", modify)
    if its.sql_type.family != "text":
        return RuleMisfit(
            f"{column} is {its.type} in the target, and what is extracted from names is a text",
            modify,
        )
    length = numbers_of(its)
    if (length and len(value) > length[0]) or (its.base_type == "char" and value.endswith(" ")):
        return RuleMisfit(f"{column} is {its.type} in the target, too short for {value!r}", modify)
    return None


def mapped_misfit(member: Table, target: Table, name: str) -> RuleMisfit | None:
    """Return why a shard's column `name` can't be mapped into the target's, or None."""
    column, qualified = quote(name), TableName(target.schema, target.name).quoted
    own, its = member.column(name), target.column(name)
    if own is None:
        return RuleMisfit(
            f"the shard has no column {column}, which the task file maps",
            "Correct `target-column` of the column mapping, or leave the table out of it",
        )
    if own.sql_type.family != "integer" or own.generated:
        kind = "computed" if own.generated else own.type
        return RuleMisfit(
            f"{column} is {kind} in the shard, and only integers that it stores can be mapped",
            "Leave the table out of the column mapping, and tell its rows from others' by an"
            " extracted column in the target's key",
        )
    if its is not None and (its.base_type != "bigint" or its.generated):
        kind = "computed" if its.generated else its.type
        null = "" if its.nullable else " NOT NULL"
        return RuleMisfit(
            f"{column} is {kind} in the target, and mapped values take a BIGINT",
            f"ALTER TABLE {qualified} MODIFY COLUMN {column} BIGINT{null};",
        )
    return None


def wide_enough(create_sql: str, name: str) -> str:
    """Return a SHOW CREATE TABLE with the column ``name`` as a BIGINT, for mapped values."""
    integers = "|".join(sorted(sizes("integer").keys() - {"bigint"}))
    narrow = re.compile(
        rf"^(\s*{re.escape(quote(name))} )(?:{integers})\b(?:\(\d+\))?(?: unsigned)?(?: zerofill)?",
        re.IGNORECASE | re.MULTILINE,
    )
    return narrow.sub(r"\1bigint", create_sql, count=1)


def as_mapped(column: Column, target: Column) -> Column:
    """Return a mapped column of a shard with the type that its mapped values have."""
    return replace(column, type=target.type)


def as_shards_have_it(
    target: Table, extracted: Set[str], mapped: str | None, member: Table | None = None
) -> Table:
    """Return a target without its extracted columns, to compare it with its shards.

    A mapped column gets the type that it has in `member`.
    """
    names = set(map(folded, extracted))
    own = member.column(mapped) if member is not None and mapped is not None else None
    columns = tuple(
        replace(c, type=own.type) if own is not None and folded(c.name) == folded(own.name) else c
        for c in target.columns
        if folded(c.name) not in names
    )
    return replace(target, columns=columns)
