"""The keys of a target's rows in its shards, and the shards that already have the key of a row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from types import MappingProxyType

from replicator.downstream.rows.key_lookup import KeyFields
from replicator.downstream.rows.literals import NULL_FIELD, field_value, key_predicate
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.names import TableName, folded, quote
from replicator.pipeline.copy.copy_plan import TableCopy
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.pipeline.plans.planning import filled_column, target_column
from replicator.routing.columns.column_mapping import VALUE_LIMIT, MappedColumn
from replicator.routing.columns.member_columns import MemberColumns
from replicator.rows.values.fields import escape
from replicator.schema.structure.structure import Column, Table, UniqueKey


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column of the target's key, as one table has it.

    Attributes:
        column: the column, by its name in that table.
        mapped: the mapping of its values, if any.
        constant: the field that all rows of the table have, if the column is not read.
    """

    column: TargetColumn
    mapped: MappedColumn | None = None
    constant: bytes | None = None


def key_parts(
    columns: Sequence[Column],
    target: Table,
    rules: MemberColumns,
    fills: Mapping[str, bytes] = MappingProxyType({}),
) -> tuple[KeyPart, ...]:
    """Return the columns of a target's key in a shard with these rules. Raises PlanError.

    Args:
        fills: by folded name, the fields of columns that the shard lacks.
    """
    filled = (filled_column("", target, made) for made in rules.extracted)
    constants = {folded(column.name): escape(value) for column, value in filled} | {**fills}
    mapped = rules.mapped
    return tuple(
        KeyPart(
            target_column(column),
            mapped if mapped and folded(mapped.name) == folded(column.name) else None,
            constants.get(folded(column.name)),
        )
        for column in columns
    )


def own_key(parts: Sequence[KeyPart], line: bytes) -> KeyFields | None:
    """Return a table's columns and fields for the row with the key ``line`` of the target.

    Returns None if no row of the table can have this key.
    """
    found = []
    for part, field in zip(parts, line.split(b"\t"), strict=True):
        if part.constant is not None:
            if part.constant != field:
                return None
        elif part.mapped is not None and field != NULL_FIELD:
            value = part.mapped.original(int(field))
            if value is None:
                return None
            found.append((part.column, b"%d" % value))
        else:
            found.append((part.column, field))
    return found


def find_holders(
    copy: TableCopy,
    line: bytes,
    message: str,
    target: Table,
    others: Iterable[tuple[str, DatabaseAddress, TableName, MemberColumns]],
) -> list[str]:
    """Return the shards among ``others`` that have the key of a refused row.

    Returns an empty list if the key can't be found out. Blocks. Raises the driver's error.

    Args:
        line: the row.
        message: the server's error message, which names the key.
        others: source, address, table and rules of each shard.
    """
    key = _key(message, target)
    if key is None:
        return []
    names = [folded(column.name) for column in copy.columns]
    fields = line.split(b"\t")
    written = dict(zip(names, zip(copy.columns, fields, strict=True), strict=True))
    wanted = list(map(folded, key.columns))
    if not written.keys() >= set(wanted):
        return []
    values = {name: written[name] for name in wanted}
    found = []
    for source, address, table, rules in others:
        conditions = key_conditions(values, rules)
        if conditions is None:
            continue
        with closing(SourceStream(address)) as stream:
            qualified = table.quoted.encode()
            where = b" AND ".join(conditions) or b"TRUE"
            if stream.rows(b"SELECT 1 FROM %s WHERE %s LIMIT 1" % (qualified, where)):
                found.append(f"{source}: {table}")
    return found


def key_conditions(
    values: Mapping[str, tuple[TargetColumn, bytes]], rules: MemberColumns
) -> list[bytes] | None:
    """Return conditions for a shard's row with this key; None if it can't have such a row."""
    made = {folded(column.name): column.value for column in rules.extracted}
    conditions = []
    for name, (column, field) in values.items():
        if name in made:
            if made[name].lower() != (field_value(field) or b"").decode(errors="replace").lower():
                return None
            continue
        if rules.mapped is not None and folded(rules.mapped.name) == name:
            value = int(field_value(field) or b"0")
            if value & ~(VALUE_LIMIT - 1) != rules.mapped.upper:
                return None
            field = b"%d" % (value & (VALUE_LIMIT - 1))
        conditions.append(quote(column.name).encode() + b"=" + key_predicate(column, field))
    return conditions


def _key(message: str, target: Table) -> UniqueKey | None:
    """Return the key in "Duplicate entry '5' for key 'PRIMARY'" (MySQL 8 adds the table name)."""
    match = re.search(r"for key '(?:[^']*\.)?([^'.]+)'\s*$", message)
    if match is None:
        return None
    return next((key for key in target.keys if folded(key.name) == folded(match[1])), None)
