"""Checks of the columns that the target computes: it must compute the shards' values.

Values of a generated column are not written, since the target's server computes them from the row.
So a shard must compute the column, too, from the same values. The formulas are known from
`Table.create_sql`.
"""

from __future__ import annotations

from collections.abc import Iterator

from replicator.mysql.names import TableName, folded, quote
from replicator.routing.columns.column_mapping import VALUE_LIMIT
from replicator.routing.columns.member_columns import MemberColumns
from replicator.schema.effects.column_values import other_formula, value_columns
from replicator.schema.effects.formula_inputs import session_dependence, tells_apart
from replicator.schema.structure.column_rules import RuleMisfit
from replicator.schema.structure.structure import Column, Table

OWN_VALUE = VALUE_LIMIT - 1
"""The bits of a mapped value that hold the shard's own value."""

_INEXACT = frozenset({"float", "double", "decimal", "bit", "year", "json"})


def computed_misfits(member: Table, target: Table, rules: MemberColumns) -> Iterator[RuleMisfit]:
    """Yield the columns in which the target would compute other values than the shard."""
    for its in target.columns:
        own = member.column(its.name) if its.generated and not its.withheld else None
        if own is None:
            continue
        if own.generated:
            yield from _other_inputs(member, target, own, rules)
        else:
            yield RuleMisfit(
                f"the target computes {quote(its.name)}, and the shard stores values of its own in"
                " it, which would be dropped",
                f"{_plain(target, own)} (it takes the shards' values then, also those that shards"
                " compute)",
            )


def _other_inputs(
    member: Table, target: Table, column: Column, rules: MemberColumns
) -> Iterator[RuleMisfit]:
    """Yield the reasons why a column that both compute may get different values."""
    masked = None if rules.mapped is None else OWN_VALUE
    formulas = other_formula(member, target, column.name, unmasked=masked)
    if formulas is not None:
        yield RuleMisfit(
            f"the shard and the target compute {quote(column.name)} otherwise: {formulas}",
            f"{_plain(target, column)} (it takes the values that the shards compute then)",
        )
        return
    for name in ruled_inputs(target, column.name, rules):
        yield RuleMisfit(
            f"the target computes {quote(column.name)} from {quote(name)}, which holds other values"
            " there than in the shard, by the rules of the task file",
            f"{_plain(target, column)} (it takes the values that the shards compute then)",
        )
        return
    dependence = session_dependence(member, column.name)
    if dependence is not None:
        yield RuleMisfit(
            f"the shard and the target compute {quote(column.name)}, and its values depend on"
            f" {dependence}: the target may come to other values",
            f"{_plain(target, column)} (it takes the values that the shards compute then)",
        )
        return
    for name in _inputs(target, column.name):
        own, its = member.column(name), target.column(name)
        if own is None or its is None or own.generated or its.generated:
            continue
        if _computes_otherwise(own, its) or tells_apart(target, column.name, own, its):
            yield RuleMisfit(
                f"both compute {quote(column.name)} from {quote(name)}, which is"
                f" {_described(own, its)} in the shard and {_described(its, own)} in the target:"
                " they may come to other values",
                f"{_plain(target, column)} (it takes the values that the shards compute then)",
            )
            return


def _computes_otherwise(own: Column, its: Column) -> bool:
    kinds = {own.base_type, its.base_type}
    if own.sql_type.family == its.sql_type.family == "integer":
        return own.unsigned != its.unsigned and its.base_type != "bigint"
    if len(kinds) > 1:
        return True
    return own.base_type in _INEXACT and own.type.lower() != its.type.lower()


def _described(column: Column, other: Column) -> str:
    """Return a column's type, with any further difference from the other column."""
    words = [column.type]
    if column.charset != other.charset:
        words.append(f"CHARACTER SET {column.charset}")
    if column.collation != other.collation:
        words.append(f"COLLATE {column.collation}")
    return " ".join(words)


def ruled_inputs(table: Table, column: str, rules: MemberColumns) -> tuple[str, ...]:
    """Return the mapped or extracted columns that a default or a formula of a target depends on.

    A mapped column does not count if the formula extracts the shard's own value from it.
    """
    ruled = {folded(name) for name in rules.extracted_names}
    if rules.mapped is not None:
        ruled.add(folded(rules.mapped.name))
    return tuple(n for n in _inputs(table, column) if folded(n) in ruled) if ruled else ()


def _inputs(table: Table, column: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    ahead = [column]
    while ahead:
        for name in value_columns(table, ahead.pop(), unmasked=OWN_VALUE):
            if name not in found:
                found[name] = None
                its = table.column(name)
                if its is not None and its.generated:
                    ahead.append(name)
    return tuple(found)


def _plain(target: Table, own: Column) -> str:
    charset = f" CHARACTER SET {own.charset}" if own.charset else ""
    null = "" if own.nullable else " NOT NULL"
    table = TableName(target.schema, target.name).quoted
    return f"ALTER TABLE {table} MODIFY COLUMN {quote(own.name)} {own.type}{charset}{null};"
