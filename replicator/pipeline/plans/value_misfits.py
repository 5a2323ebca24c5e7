"""Types of a shard and its target between which a server may silently change values."""

from __future__ import annotations

import re
from dataclasses import replace

from replicator.mysql.names import folded, quote
from replicator.schema.structure.column_rules import RuleMisfit
from replicator.schema.structure.conversions import (
    Fit,
    charset_conversion,
    conversion,
    null_misfit,
)
from replicator.schema.structure.structure import Column, Table, unique_parts

_LABEL = re.compile(r"'(?:[^']|'')*'")


def value_misfit(
    column: Column, counterpart: Column, target: Table, *, again: bool
) -> RuleMisfit | None:
    """Return why a target's column can't store the values of a shard's column unchanged.

    Args:
        again: whether the target has executed a statement that redefines the column, and the shard
            has not yet. Then the target's server may convert the values, unless they are in a key:
            it has converted older rows, too, and the shard's own statement has them reconciled.
    """
    if again and _is_converted(column, counterpart, target):
        return None
    for rule in (conversion, charset_conversion, null_misfit):
        found = rule(column, counterpart)
        if found.fit is Fit.NONE:
            name = f"{target.schema}.{target.name}"
            ours, theirs = _described(column), _described(counterpart)
            modify = (
                f"ALTER TABLE {quote(target.schema)}.{quote(target.name)} MODIFY"
                f" {quote(column.name)} {_both(column, counterpart) or ours}"
            )
            way_out = f"Give the target's column a type that takes the values of both: {modify}"
            if not _both(column, counterpart):
                way_out = (
                    "Give the column a type that takes the values of all shards, and of the rows"
                    f" on the target. Where that is the shard's: {modify}"
                )
            if ours == theirs:
                way_out = "Give the column another type in the shards and the target"
            return RuleMisfit(
                f"column {column.name} is {ours}, in {name} it is {theirs}: {found.why}, and the"
                " server would not report it",
                f"{way_out}. Or leave the table out (block-allow-list)",
            )
    return None


def _is_converted(column: Column, counterpart: Column, target: Table) -> bool:
    keys = {folded(name) for parts in unique_parts(target).values() for name, _ in parts}
    alike = column.sql_type.literal is counterpart.sql_type.literal
    return alike and target.row_key is not None and folded(counterpart.name) not in keys


def _both(column: Column, target: Column) -> str:
    """Return a definition of the target's column for the values of both; empty if unknown."""
    if column.base_type == target.base_type == "set" and column.charset == target.charset:
        ours = _LABEL.findall(column.type)
        labels = [*ours, *(label for label in _LABEL.findall(target.type) if label not in ours)]
        wider = replace(target, type=f"set({','.join(labels)})")
        return _described(replace(wider, nullable=column.nullable or target.nullable))
    rules = (conversion, charset_conversion, null_misfit)
    if all(rule(target, column).fit is Fit.ALL for rule in rules):
        return _described(column)
    return ""


def _described(column: Column) -> str:
    charset = f" CHARACTER SET {column.charset}" if column.charset else ""
    return f"{column.type}{charset}{'' if column.nullable else ' NOT NULL'}"
