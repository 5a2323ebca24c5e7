"""The ALTER TABLE from one shape of a target to another.

For changes that the member's own statement does not make. The texts are from SHOW CREATE TABLE: a
type is from a member that has it, NULL is from the join, and the default of a column that stays is
the target's own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from replicator.ddl.parser.tokens import Token, tokenise
from replicator.mysql.names import TableName, folded, quote
from replicator.schema.effects.check_constraints import (
    CheckConstraint,
    check_constraints,
    without_check,
)
from replicator.schema.effects.column_values import definition_of
from replicator.schema.structure.structure import Column, Table, UniqueKey
from replicator.sharding.optimistic.column_order import (
    charset,
    collation_way,
    finest_way,
    kind,
    takes,
)
from replicator.sharding.optimistic.fills import fill_of
from replicator.sharding.optimistic.shapes import (
    Key,
    Shape,
    ShapeColumn,
    implies,
    index_texts,
    key_parts,
    shape_of,
)

_FURTHER = frozenset({"DEFAULT", "AUTO_INCREMENT", "ON", "COMMENT", "INVISIBLE"})
"""Words that come after the type and NULL in a definition, as servers write it."""
_DROPS_CHECK = "DROP CONSTRAINT"


STAND_IN = "replicator_key"
"""The name of the plain index that a target has instead of a key, to find its rows."""


class NoAlterError(Exception):
    """No ALTER is known for the change; the text is the reason."""


def derived_alter(
    before: Shape,
    after: Shape,
    target: Table,
    members: Sequence[Table],
    converted: frozenset[str] = frozenset(),
) -> Sequence[str]:
    """Return the actions of an ALTER TABLE from one shape to another; empty if none are needed.

    Args:
        target: its present structure, which may have more than the shape: extracted columns, and
            keys with these.
        members: the structures that definitions are copied from, first the member that makes the
            change.
        converted: columns to define as that member has them.

    Raises:
        NoAlterError: no ALTER is known.
    """
    gone = before.checks - after.checks
    return [
        *_dropped_keys(before, after, target, members),
        *(f"{_DROPS_CHECK} {quote(c.name)}" for c in _checks(target, gone) if c.name),
        *_columns(before, after, target, members, converted),
        *_added_keys(before, after, target, members),
        *_added_checks(before, after, target, members),
    ]


def stand_in_index(
    before: Shape | None, after: Shape, target: Table, members: Iterable[Table | None]
) -> list[str]:
    """Return the action that adds or drops the plain index instead of a key.

    The target has this index while some members have a key and others have none. Without it, each
    changed row would be searched for in the whole table.

    Args:
        members: their structures after the change.
    """
    if before is None or (before.keys and not target.keys):
        # The target has refused the key.
        return []
    wanted = not after.keys and any(table is not None and shape_of(table).keys for table in members)
    if (text := index_texts(target).get(STAND_IN)) is not None:
        names = {folded(token.name) for token in tokenise(text)} & before.columns.keys()
        stays = all(name in after.columns and _indexable(after.columns[name]) for name in names)
        return [] if wanted and stays else [f"DROP INDEX {quote(STAND_IN)}"]
    if not wanted or not before.keys:
        return []
    lost = before.primary or min(before.unique, key=lambda key: (len(key), sorted(key)))
    kept = [quote(c.name) for c in target.columns if folded(c.name) in lost & after.columns.keys()]
    return [f"ADD INDEX {quote(STAND_IN)} ({', '.join(kept)})"] if kept else []


def _indexable(found: ShapeColumn) -> bool:
    return not found.column.base_type.endswith(("text", "blob"))


def alter_table(name: TableName, actions: Iterable[str]) -> str:
    """Return the ALTER TABLE with these actions; empty if there are none."""
    text = ", ".join(actions)
    return f"ALTER TABLE {name.quoted} {text}" if text else ""


def tried_on_a_copy(actions: Iterable[str]) -> list[str]:
    """Return the actions that can be rehearsed on an empty copy of the target.

    An action that drops a CHECK can't: MySQL gives the CHECKs of each table names of its own.
    """
    return [action for action in actions if not action.startswith(_DROPS_CHECK)]


def _columns(
    before: Shape,
    after: Shape,
    target: Table,
    members: Sequence[Table],
    converted: frozenset[str],
) -> Iterator[str]:
    for name in sorted(before.columns.keys() - after.columns.keys()):
        if (there := target.column(name)) is not None:
            yield f"DROP COLUMN {quote(there.name)}"
    for name in in_order(after.columns.keys(), members):
        found, former = after.columns[name], before.columns.get(name)
        wanted, there = found.column, target.column(name)
        checked = bool(_checks(target, before.checks - after.checks, name))
        same = former is not None and former.whole == found.whole and name not in converted
        if same and not checked:
            continue
        if there is None:
            if former is not None:
                raise NoAlterError(f"the target has no column {wanted.name}")
            origin = origin_of(wanted, members)
            _refuse_other_default(origin, wanted)
            added = column_definition(wanted, origin, origin)
            added += check_of(origin, after.checks, name)
            yield f"ADD COLUMN {added}{_place(name, origin, target)}"
            continue
        suits = same or _suits(there, found, former)
        if name not in converted and suits and not checked:
            continue
        if suits and name not in converted:
            wanted, origin = there, target
        else:
            origin = origin_of(wanted, members)
        values = origin if name in converted else target
        _refuse_other_default(values, wanted)
        modified = column_definition(wanted, origin, values, way=found.way)
        # Other CHECKs on the target are the operator's own.
        left = {check.form for check in _checks(target)} - (before.checks - after.checks)
        yield f"MODIFY COLUMN {modified}{check_of(target, left, name)}"


def _refuse_other_default(table: Table, wanted: Column) -> None:
    """Raise NoAlterError if the text of a default may not be the whole default."""
    column = table.column(wanted.name)
    if column is not None and (shown := fill_of(table, column)).shows_less:
        raise NoAlterError(
            f"the server may show only a part of the default of column {column.name}: {shown.text}"
        )


def _suits(there: Column, found: ShapeColumn, former: ShapeColumn | None) -> bool:
    """Return whether the target's column needs no change.

    It is equal, or has been wider than the shards' column before.
    """
    wanted = found.column
    if found.way and finest_way({collation_way(there), found.way}) != collation_way(there):
        return False
    if _sense(there) == _sense(wanted):
        return not found.way or former is None or former.way == found.way
    apart = former is None or _sense(there) != _sense(former.column)
    return apart and takes(there, wanted) and there.nullable >= wanted.nullable


def _sense(column: Column) -> tuple[str, str, bool]:
    return kind(column), charset(column), column.nullable


def in_order(names: Iterable[str], members: Sequence[Table]) -> list[str]:
    """Return the names in the order of the first member that has them."""
    left = dict.fromkeys(sorted(names))
    order = [folded(c.name) for table in members for c in table.columns]
    return [*dict.fromkeys(n for n in order if n in left), *(n for n in left if n not in order)]


def origin_of(wanted: Column, members: Sequence[Table]) -> Table:
    """Return a member with the wanted definition of a column, or at least with its type.

    Raises NoAlterError if there is none.
    """
    having = [t for t in members if (c := t.column(wanted.name)) and kind(c) == kind(wanted)]
    for table in having:
        column = table.column(wanted.name)
        assert column is not None
        if column.nullable == wanted.nullable and charset(column) == charset(wanted):
            return table
    if not having:
        raise NoAlterError(f"no shard has {wanted.name} as {wanted.type}")
    return having[0]


def column_definition(wanted: Column, origin: Table, values: Table, *, way: str = "") -> str:
    """Return a column's definition for CREATE and ALTER, with its name, without its CHECK.

    Args:
        origin: the member that the type is from.
        values: the table that the default and the collation are from.
        way: the collation, without its charset, by which a unique key compares the column.
    """
    if wanted.generated:
        tokens = definition_of(origin.create_sql, wanted.name)
        return f"{quote(wanted.name)} {without_check(origin.create_sql, tokens)}"
    there = values.column(wanted.name)
    kept = (
        there is not None
        and charset(there) == charset(wanted)
        and way in ("", collation_way(there))
    )
    collation = there.collation if there is not None and kept else wanted.collation
    text = re.sub(r"/\*.*?\*/", "", wanted.type).strip()
    if wanted.charset:
        text += f" CHARACTER SET {wanted.charset}"
        text += f" COLLATE {collation}" if collation else ""
    text += " NULL" if wanted.nullable else " NOT NULL"
    return f"{quote(wanted.name)} {text}{_further(values, wanted)}"


def _further(table: Table, wanted: Column) -> str:
    tokens = definition_of(table.create_sql, wanted.name)
    depth = 0
    for place, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.keyword in _FURTHER:
            left = tokens[place:]
            if not wanted.nullable and _is_null(left):
                left = left[2:]
            text = without_check(table.create_sql, left)
            return f" {text}" if text else ""
    return ""


def _is_null(tokens: Sequence[Token]) -> bool:
    return [token.keyword for token in tokens[:2]] == ["DEFAULT", "NULL"]


def _place(name: str, origin: Table, target: Table) -> str:
    """Return the clause for the position after the column's neighbour, if the target has that."""
    names = [folded(column.name) for column in origin.columns]
    place = names.index(name)
    if place == len(names) - 1:
        return ""
    if place == 0:
        return " FIRST"
    there = target.column(names[place - 1])
    return f" AFTER {quote(there.name)}" if there is not None else ""


def _dropped_keys(
    before: Shape, after: Shape, target: Table, members: Sequence[Table]
) -> Iterator[str]:
    if before.primary != after.primary and before.primary is not None:
        # If a shard has left, the target may still have columns and keys for it.
        there_key = next((key for key in target.keys if key.name == "PRIMARY"), None)
        if there_key is not None:
            if there_key.prefix or not before.primary <= frozenset(map(folded, there_key.columns)):
                raise NoAlterError("the target's primary key is another than that of its shards")
            yield "DROP PRIMARY KEY"
    gone = before.constraints - after.constraints
    if after.primary is not None and not any(_key(table, after.primary) for table in members):
        # A unique key that was created while some members could not have this primary key.
        gone |= {after.primary} - {before.primary}
    yield from (f"DROP INDEX {quote(key.name)}" for key in _keys_of(target, gone))
    there = index_texts(target)
    staying = {name for name, _ in after.indexes}
    for name, _ in sorted(before.indexes - after.indexes):
        if name in there:
            yield f"DROP INDEX {quote(name)}"
        elif name in staying:
            raise NoAlterError(f"the target has no index {name}")


def _added_keys(
    before: Shape, after: Shape, target: Table, members: Sequence[Table]
) -> Iterator[str]:
    if before.primary != after.primary and after.primary is not None:
        yield f"ADD PRIMARY KEY ({', '.join(map(quote, primary_columns(after.primary, members)))})"
    there = index_texts(target)
    gone = {folded(key.name) for key in _keys_of(target, before.constraints - after.constraints)}
    gone |= {name for name, _ in before.indexes - after.indexes}
    for columns in sorted(after.unique - before.unique, key=sorted):
        if any(folded(key.name) not in gone for key in _keys_of(target, {columns})):
            continue
        found = unique_key_of(columns, members)
        if folded(found.name) in there.keys() - gone:
            raise NoAlterError(f"the target has another index {found.name}")
        yield f"ADD UNIQUE KEY {quote(found.name)} ({', '.join(map(quote, found.columns))})"
    for parts in sorted(after.partial - before.partial, key=sorted):
        if any(folded(key.name) not in gone for key in _keys_of(target, {parts})):
            continue
        yield f"ADD {_partial_key_text(parts, members, there.keys() - gone)}"
    for name, _ in sorted(after.indexes - before.indexes):
        if name in there.keys() - gone:
            continue
        text = next((texts[name] for t in members if name in (texts := index_texts(t))), None)
        if text is None:
            raise NoAlterError(f"no shard has an index {name}")
        yield f"ADD {text}"


def _keys_of(table: Table, constraints: Collection[Key]) -> list[UniqueKey]:
    """Return the unique keys of a table with these constraints, except its primary key."""
    return [k for k in table.keys if k.name != "PRIMARY" and key_parts(table, k) in constraints]


def _partial_key_text(parts: Key, members: Sequence[Table], taken: Collection[str]) -> str:
    for table in members:
        for key in _keys_of(table, {parts}):
            if folded(key.name) in taken:
                raise NoAlterError(f"the target has another index {key.name}")
            return index_texts(table)[folded(key.name)]
    raise NoAlterError(f"no shard has a key of {', '.join(sorted(parts))}")


def remaining_keys(before: Shape, after: Shape, present: Table, outcome: Table) -> list[str]:
    """Return the actions that drop keys which a shard's own statement has left on the target.

    Rows of other shards may break these keys.

    Args:
        before: the target's shape before the statement.
        after: the join after it.
        outcome: the target after the statement alone.
    """
    known = {folded(key.name) for key in _keys_of(present, before.constraints)}
    return [
        f"DROP INDEX {quote(key.name)}"
        for key in outcome.keys
        if folded(key.name) in known
        and not any(implies(own, key_parts(outcome, key)) for own in after.constraints)
    ]


def _checks(
    table: Table, forms: Collection[str] | None = None, column: str | None = None
) -> Sequence[CheckConstraint]:
    """Return a table's CHECK constraints with these forms, in the definition of this column."""
    return [
        check
        for check in check_constraints(table)
        if (forms is None or check.form in forms)
        and (column is None or folded(check.column) == column)
    ]


def check_of(table: Table, forms: Collection[str], column: str) -> str:
    """Return the CHECK in the definition of a column, if it has one of these forms."""
    found = _checks(table, forms, column)
    return f" CHECK {found[0].expression}" if found else ""


def _added_checks(
    before: Shape, after: Shape, target: Table, members: Sequence[Table]
) -> Iterator[str]:
    there = {check.form for check in _checks(target)}
    for name, found in after.columns.items():
        if target.column(name) is None:
            # The definition of a new column includes its CHECK.
            there |= {c.form for c in _checks(origin_of(found.column, members), None, name)}
    for form in sorted(after.checks - before.checks - there):
        texts = (check.expression for table in members for check in _checks(table, (form,)))
        yield f"ADD CHECK {next(texts)}"


def _key(table: Table, columns: Key, *, primary: bool = False) -> UniqueKey | None:
    whole = (key for key in table.keys if not key.prefix and (key.name == "PRIMARY") == primary)
    return next((k for k in whole if frozenset(map(folded, k.columns)) == columns), None)


def unique_key_of(columns: Key, members: Sequence[Table]) -> UniqueKey:
    """Return a member's unique key of these columns. Raises NoAlterError if none has one."""
    for table in members:
        if (key := _key(table, columns)) is not None:
            return key
    for table in members:
        if (key := _key(table, columns, primary=True)) is not None:
            return UniqueKey("_".join(["uk", *key.columns]), key.columns)
    raise NoAlterError(f"no shard has a key of {', '.join(sorted(columns))}")


def primary_columns(columns: Key, members: Sequence[Table]) -> list[str]:
    """Return the columns of a joined primary key, in the order of the members' own keys."""
    found: dict[str, str] = {}
    for table in members:
        for key in table.keys:
            if key.name == "PRIMARY":
                found |= {folded(n): n for n in key.columns if folded(n) not in found}
    return [name for folded_name, name in found.items() if folded_name in columns]
