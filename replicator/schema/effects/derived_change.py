"""The ALTER TABLE that turns one structure into another, derived from both structures.

Used for a change whose own text was not seen: an online schema change that began before the task.
Both structures are texts of SHOW CREATE TABLE of one server, which writes equal things equally. It
is an error if the structures do not determine the change. The main case is a renamed column, which
can't be distinguished from a dropped and an added one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from replicator.ddl.model.table import KeyKind, TableDefinition
from replicator.mysql.names import TableName, folded, quote
from replicator.schema.structure.structure import Table


class NotDerivableError(Exception):
    """Two structures do not determine the change between them; the text gives the reason."""


_CHARSET = frozenset({"CHARSET", "COLLATE"})
_COUNTER = "AUTO_INCREMENT"
_PRIMARY = "PRIMARY KEY"


def derived_alter(before: Table, after: Table, name: TableName) -> str:
    """Return the ALTER TABLE of `name` from `before` to `after`; empty if both are equal.

    Raises NotDerivableError.
    """
    old, new = before.definition, after.definition
    if not old.columns or not new.columns:
        raise NotDerivableError("the task does not understand its structure")
    if _constraints(old) != _constraints(new):
        raise NotDerivableError("its constraints differ from those of its ghost table")
    if _others(old) != _others(new):
        raise NotDerivableError("its partitions or the like differ from those of its ghost table")
    gone, added = _dropped_keys(old, new), _added_keys(old, new)
    actions = [*gone, *_charset(old, new), *_columns(old, new), *added, *_options(old, new)]
    return f"ALTER TABLE {name.quoted} {', '.join(actions)}" if actions else ""


def rebuilding(table: Table, name: TableName) -> str:
    """Return an ALTER TABLE of `name` that leaves the structure `table` unchanged."""
    return f"ALTER TABLE {name.quoted} ENGINE={table.definition.option('ENGINE') or 'InnoDB'}"


def _constraints(table: TableDefinition) -> tuple[object, ...]:
    """Return the constraints and periods without their names, which differ between tables."""
    checks = sorted((check.text, check.enforced) for check in table.checks)
    keys = [replace(key, name="", index="") for key in table.foreign_keys]
    return checks, sorted(keys, key=repr), sorted(table.periods, key=repr)


def _others(table: TableDefinition) -> tuple[object, ...]:
    return table.partitioning, table.versioned, table.unknown


def _columns(old: TableDefinition, new: TableDefinition) -> Iterator[str]:
    former = {folded(column.name): column for column in old.columns}
    names = [folded(column.name) for column in new.columns]
    dropped = [column.name for name, column in former.items() if name not in names]
    added = [column.name for column in new.columns if folded(column.name) not in former]
    if dropped and added:
        raise NotDerivableError(
            f"column {dropped[0]} disappears and {added[0]} appears: it may be the same column,"
            " renamed"
        )
    if [name for name in former if name in names] != [name for name in names if name in former]:
        raise NotDerivableError("its columns are in another order than those of its ghost table")
    yield from (f"DROP COLUMN {quote(name)}" for name in dropped)
    place = " FIRST"
    *_, last = new.columns
    appended = added and {column.name for column in new.columns[-len(added) :]} == set(added)
    for column in new.columns:
        if column.name in added:
            yield f"ADD COLUMN {column.text}{'' if appended else place}"
        elif column != former[folded(column.name)]:
            yield f"MODIFY COLUMN {column.text}"
        place = f" AFTER {quote(column.name)}" if column is not last else ""


def _dropped_keys(old: TableDefinition, new: TableDefinition) -> Iterator[str]:
    for key in old.keys:
        if key not in new.keys:
            primary = key.kind is KeyKind.PRIMARY
            yield f"DROP {_PRIMARY}" if primary else f"DROP INDEX {quote(key.name)}"


def _added_keys(old: TableDefinition, new: TableDefinition) -> Iterator[str]:
    return (f"ADD {key.text}" for key in new.keys if key not in old.keys)


def _charset(old: TableDefinition, new: TableDefinition) -> Iterator[str]:
    charset, collation = wanted = new.option("CHARSET"), new.option("COLLATE")
    if wanted == (old.option("CHARSET"), old.option("COLLATE")):
        return
    if any(column.charset or column.collation for column in (*old.columns, *new.columns)):
        raise NotDerivableError("its charset differs from that of its ghost table")
    yield f"CONVERT TO CHARACTER SET {charset}{f' COLLATE {collation}' if collation else ''}"


def _options(old: TableDefinition, new: TableDefinition) -> Iterator[str]:
    former, wanted = _own_options(old), _own_options(new)
    for name in sorted(former.keys() | wanted.keys()):
        value = wanted.get(name)
        if value == former.get(name):
            continue
        if value is None and name != "COMMENT":
            raise NotDerivableError(f"its ghost table has lost the option {name}")
        yield f"{name}=''" if value is None else f"{name}={value}"


def _own_options(table: TableDefinition) -> dict[str, str]:
    left_out = _CHARSET | {_COUNTER}
    return {o.name: o.value for o in table.options if o.name not in left_out}
