"""Checks whether a member fits the target's table.

A member fits if each value of each of its columns can be stored in the target's column unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Literal

from replicator.mysql.names import TableName, folded, quote
from replicator.pipeline.plans.computed_columns import computed_misfits
from replicator.routing.columns.member_columns import AS_THEY_ARE, MemberColumns
from replicator.schema.structure.column_rules import (
    RuleMisfit,
    as_mapped,
    as_shards_have_it,
    extracted_misfit,
    mapped_misfit,
)
from replicator.schema.structure.conversions import (
    Fit,
    charset_conversion,
    conversion,
    null_misfit,
)
from replicator.schema.structure.structure import Column, Table
from replicator.sharding.optimistic.column_order import collation_way, finest_way


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a column does not fit; a "warning" if only some values may be refused, else "failed"."""

    state: Literal["warning", "failed"]
    text: str


def type_misfit(member: Column, target: Column) -> Misfit | None:
    """Compare the types of two columns of one name; None if every value fits."""
    found = conversion(member, target)
    return None if found.fit is Fit.ALL else Misfit("failed", found.why)


def null_in_not_null(member: Column, target: Column) -> Misfit | None:
    """Return a misfit if the member may have NULL and the target may not."""
    found = null_misfit(member, target)
    return None if found.fit is Fit.ALL else Misfit("failed", found.why)


def charset_misfit(member: Column, target: Column) -> Misfit | None:
    """Return a misfit if the target's charset lacks characters of the member's charset."""
    found = charset_conversion(member, target)
    if found.fit is Fit.ALL:
        return None
    return Misfit("warning" if found.fit is Fit.SOME else "failed", found.why)


@dataclass(frozen=True, slots=True)
class Difference:
    """One reason why rows of a member can't be written to the target unchanged."""

    state: Literal["warning", "failed"]
    text: str
    way_out: str


def rule_differences(member: Table, target: Table, rules: MemberColumns) -> list[Difference]:
    """Return why the task file's rules about columns can't be applied to this target."""
    misfits: list[RuleMisfit | None] = [
        extracted_misfit(member, target, c.name, c.value) for c in rules.extracted
    ]
    if rules.mapped is not None:
        misfits.append(mapped_misfit(member, target, rules.mapped.name))
    misfits += computed_misfits(member, target, rules)
    return [Difference("failed", misfit.text, misfit.way_out) for misfit in misfits if misfit]


def member_differences(
    member: Table, target: Table, rules: MemberColumns = AS_THEY_ARE
) -> list[Difference]:
    """Compare a member with its target."""
    table = TableName(target.schema, target.name).quoted
    found = rule_differences(member, target, rules)
    mapped = folded(rules.mapped.name) if rules.mapped else None
    for column in member.columns:
        its = target.column(column.name)
        if its is None:
            found.append(_missing(member, column, table))
            continue
        modify = _modified(member, column, table)
        found += [
            Difference(misfit.state, f"{quote(column.name)}: {misfit.text}", modify)
            for misfit in _misfits(
                as_mapped(column, its) if folded(column.name) == mapped else column, its, target
            )
        ]
    found += _unfilled(member, as_shards_have_it(target, rules.extracted_names, None), table)
    return found


def _missing(member: Table, column: Column, table: str) -> Difference:
    """Return the difference of a missing column; values that the shard computes need no column."""
    add = f"ALTER TABLE {table} ADD COLUMN {definition_of(member, column.name)};"
    name = quote(column.name)
    if column.generated:
        text = f"the target has no column {name}, whose values the shard computes: it is left out"
        return Difference("warning", text, f"To have it: {add}")
    return Difference("failed", f"the target has no column {name}", add)


def _modified(member: Table, column: Column, table: str) -> str:
    """Return the statement after which the target's column accepts the shard's values."""
    name = quote(column.name)
    definition = collated(member, column.name, column.collation)
    way_out = f"ALTER TABLE {table} MODIFY COLUMN {definition};"
    if column.generated:
        return f"{way_out} Or leave it to the shards: ALTER TABLE {table} DROP COLUMN {name};"
    if column.sql_type.family == "special":
        length = column.sql_type.size
        text = f"ALTER TABLE {table} MODIFY COLUMN {name} varchar({length});"
        return f"{way_out} Where the server lacks that type: {text}"
    return way_out


def _misfits(column: Column, its: Column, target: Table) -> list[Misfit]:
    found = [type_misfit(column, its), charset_misfit(column, its), null_in_not_null(column, its)]
    in_key = any(folded(column.name) in map(folded, key.columns) for key in target.keys)
    if (
        in_key
        and column.collation
        and its.collation
        and not distinguishes(its, {collation_way(column)})
    ):
        found.append(
            Misfit(
                "warning",
                f"a unique key compares by {its.collation} in the target and by "
                f"{column.collation} in the shard: keys may be equal there that differ here",
            )
        )
    return [misfit for misfit in found if misfit]


def distinguishes(target: Column, ways: Set[str]) -> bool:
    """Return whether texts that differ by other collations also differ by the column's collation.

    Args:
        ways: the other collations, without their charsets.
    """
    way = collation_way(target)
    return finest_way({way, *ways}) == way


def _unfilled(member: Table, target: Table, table: str) -> list[Difference]:
    """Return the columns that only the target has and that get no value."""
    return [
        Difference(
            "failed",
            f"the target's column {quote(column.name)} is missing in the shard and has no default",
            f"ALTER TABLE {table} MODIFY COLUMN {quote(column.name)} {column.type} NULL;",
        )
        for column in target.columns
        if member.column(column.name) is None
        and not (column.nullable or column.generated or column.auto_increment)
        and not has_default(target, column.name)
    ]


def has_default(table: Table, column: str) -> bool:
    """Return whether a column has a DEFAULT, by the CREATE TABLE statement of the server."""
    found = table.defined(column)
    return found is not None and found.default is not None


def definition_of(table: Table, column: str) -> str:
    """Return a column's definition from SHOW CREATE TABLE, or else its name and type."""
    if (definition := table.defined(column)) is not None:
        return definition.text
    found = table.column(column)
    return f"{quote(column)} {found.type if found else ''}"


_TYPE = re.compile(
    r"(`(?:[^`]|``)+` \w+(?:\((?:[^()']|'(?:[^']|'')*')*\))?)"
    r"(?: CHARACTER SET \w+)?(?: COLLATE \w+)?"
)
"""A column's name and type, and its charset and collation, as SHOW CREATE TABLE writes them."""


def collated(table: Table, column: str, collation: str) -> str:
    """Return a column's definition with a collation, or as it is if the collation is empty."""
    if not collation:
        return definition_of(table, column)
    clause = f"CHARACTER SET {collation.partition('_')[0]} COLLATE {collation}"
    return _TYPE.sub(lambda found: f"{found[1]} {clause}", definition_of(table, column), count=1)


def colliding_keys(
    members: Sequence[Table], target: Table | None, extracted: Set[str] = frozenset()
) -> tuple[str, list[frozenset[str]]]:
    """Return the AUTO_INCREMENT column of a member, and the target's keys that it may violate.

    A unique key of the target is not violated if it has a further column that no member has and the
    task file fills (by ``extracted``). Keys are given as folded names.
    """
    member = members[0]
    column = next((c.name for c in member.columns if c.auto_increment), "")
    filled = set(map(folded, extracted))
    keys = [frozenset(map(folded, key.columns)) for key in (target or member).keys]
    return column, [
        names
        for names in keys
        if folded(column) in names and all(member.column(n) or n in filled for n in names)
    ]
