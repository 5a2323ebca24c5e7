"""The table that accepts the rows of several shards: one shard's own, or a derived one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replicator.ddl.model.table import ForeignKeyDefinition
from replicator.ddl.parser.tokens import TokenKind
from replicator.ddl.rewrite.table_sql import foreign_key_sql
from replicator.mysql.names import TableName, folded, quote
from replicator.schema.effects.check_constraints import check_constraints, without_check
from replicator.schema.effects.column_values import items_of, with_items
from replicator.schema.structure.structure import Column, Table, UniqueKey
from replicator.sharding.optimistic.alters import (
    alter_table,
    check_of,
    column_definition,
    derived_alter,
    in_order,
    origin_of,
    primary_columns,
    unique_key_of,
)
from replicator.sharding.optimistic.shapes import Key, Shape, index_texts, join, key_parts, shape_of


def joined_table(members: Sequence[Table]) -> Table:
    """Return the structure for a target of these members: the first one's, widened for all.

    Raises NoJoinError if no type accepts the values of all.
    """
    first = members[0]
    shape = join([shape_of(table) for table in members])
    if shape.sense == shape_of(first).sense:
        return first
    definitions = _columns(first, members, shape)
    keys = _keys(first, members, shape)
    items = [text for _, text in definitions] + [text for _, text in keys]
    items += [
        f"CONSTRAINT {quote(check.name)} CHECK {check.expression}"
        for check in check_constraints(first)
        if check.name and check.form in shape.checks
    ]
    items += map(foreign_key_sql, _foreign_keys(members))
    return replace(
        first,
        columns=tuple(column for column, _ in definitions),
        keys=tuple(key for key, _ in keys if key is not None),
        create_sql=with_items(first.create_sql, items),
    )


def _foreign_keys(members: Sequence[Table]) -> list[ForeignKeyDefinition]:
    """Return the foreign keys that all members have, as the first one has them."""

    def forms(table: Table) -> list[tuple[object, ...]]:
        return [
            (*map(folded, (*key.columns, "", *key.parent_columns)), key.on_delete, key.on_update)
            for key in table.definition.foreign_keys
        ]

    common = [set(forms(member)) for member in members]
    first = members[0]
    return [
        key
        for key, form in zip(first.definition.foreign_keys, forms(first), strict=True)
        if all(form in of for of in common)
    ]


def widening(target: Table, members: Sequence[Table]) -> str:
    """Return the ALTER TABLE after which a target accepts all members' rows; empty if not needed.

    The target's other indexes are kept. Raises NoJoinError or NoAlterError.
    """
    own = shape_of(target)
    shape = replace(join([own, *map(shape_of, members)]), indexes=own.indexes)
    name = TableName(target.schema, target.name)
    return alter_table(name, derived_alter(own, shape, target, [*members, target]))


def _columns(first: Table, members: Sequence[Table], shape: Shape) -> list[tuple[Column, str]]:
    """Return the columns with definitions.

    A column that the first member lacks follows its neighbour.
    """
    texts = {
        folded(item[0].name): without_check(first.create_sql, item)
        for item in items_of(first.create_sql)
        if item[0].kind is TokenKind.QUOTED
    }
    found: list[tuple[Column, str]] = []
    former = shape_of(first)
    for name in in_order(shape.columns.keys(), members):
        wanted, had = shape.columns[name], former.columns.get(name)
        if had is not None and had.whole == wanted.whole:
            found.append((had.column, texts[name] + check_of(first, shape.checks, name)))
            continue
        origin = origin_of(wanted.column, members)
        values = first if had is not None else origin
        text = column_definition(wanted.column, origin, values, way=wanted.way)
        made = (wanted.column, text + check_of(values, shape.checks, name))
        found.insert(len(found) if had is not None else _place(found, name, origin), made)
    return found


def _place(found: Sequence[tuple[Column, str]], name: str, origin: Table) -> int:
    names = [folded(column.name) for column in origin.columns]
    before = names[: names.index(name)]
    there = [folded(column.name) for column, _ in found]
    return max((there.index(n) + 1 for n in before if n in there), default=0)


def _keys(
    first: Table, members: Sequence[Table], shape: Shape
) -> list[tuple[UniqueKey | None, str]]:
    """Return keys, indexes and constraints with their texts; the key is None for a plain index."""
    found: list[tuple[UniqueKey | None, str]] = []
    if shape.primary is not None:
        columns = primary_columns(shape.primary, members)
        key = UniqueKey("PRIMARY", tuple(columns))
        found.append((key, f"PRIMARY KEY ({', '.join(map(quote, columns))})"))
    for unique in sorted(shape.unique, key=sorted):
        key = unique_key_of(unique, members)
        nullable = any(shape.columns[name].column.nullable for name in unique)
        text = f"UNIQUE KEY {quote(key.name)} ({', '.join(map(quote, key.columns))})"
        found.append((replace(key, nullable=nullable), text))
    found += [_partial_key(parts, members) for parts in sorted(shape.partial, key=sorted)]
    kept = {name for name, _ in shape.indexes}
    found += [(None, text) for name, text in index_texts(first).items() if name in kept]
    return found


def _partial_key(parts: Key, members: Sequence[Table]) -> tuple[UniqueKey, str]:
    return next(
        (key, index_texts(table)[folded(key.name)])
        for table in members
        for key in table.keys
        if key.prefix and key_parts(table, key) == parts
    )
