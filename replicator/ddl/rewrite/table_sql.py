"""A typed table definition as SQL, for a server of the kind from which it was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from replicator.ddl.model.table import (
    CheckDefinition,
    ColumnDefinition,
    ForeignKeyDefinition,
    IndexPart,
    KeyDefinition,
    Partitioning,
    TableDefinition,
    TableOption,
)
from replicator.mysql.names import TableName, quote

_AFTER_THE_TYPE = ("COMPRESSED", "SRID", "REF_SYSTEM_ID")
"""Attributes of a column that some servers accept only directly after its type."""


def create_table_sql(name: TableName, table: TableDefinition) -> str:
    """Return the CREATE TABLE of a definition; it includes unknown parts as written."""
    items = [
        *map(column_sql, table.columns),
        *map(key_sql, table.keys),
        *(
            f"PERIOD FOR {'SYSTEM_TIME' if p.name.upper() == 'SYSTEM_TIME' else quote(p.name)}"
            f" ({quote(p.start)}, {quote(p.end)})"
            for p in table.periods
        ),
        *map(foreign_key_sql, table.foreign_keys),
        *map(check_sql, table.checks),
    ]
    temporary = "TEMPORARY " if table.temporary else ""
    words = [
        f"CREATE {temporary}TABLE {name.quoted} (\n  " + ",\n  ".join(items) + "\n)",
        *map(_option, table.options),
        *(["WITH SYSTEM VERSIONING"] if table.versioned else ()),
        *(_partitioning(table.partitioning) if table.partitioning else ()),
        *table.unknown,
    ]
    return " ".join(words)


def column_sql(column: ColumnDefinition) -> str:
    """Return a column's definition, beginning with its name."""
    return f"{quote(column.name)} {' '.join(_clauses(column))}"


def _clauses(column: ColumnDefinition) -> Iterator[str]:
    beside = [a for a in column.attributes if a.upper().startswith(_AFTER_THE_TYPE)]
    yield column.type
    yield from beside
    if column.charset:
        yield f"CHARACTER SET {column.charset}"
    if column.collation:
        yield f"COLLATE {column.collation}"
    if column.generated:
        yield f"GENERATED ALWAYS AS {column.generated.text}"
        yield column.generated.storage
    if not column.nullable:
        yield "NOT NULL"
    elif column.type.lower().startswith("timestamp") and column.generated is None:
        # Without the word NULL, the column would be NOT NULL on older servers.
        yield "NULL"
    if column.default:
        yield f"DEFAULT {column.default.text}"
    if column.on_update:
        yield f"ON UPDATE {column.on_update}"
    if column.auto_increment:
        yield "AUTO_INCREMENT"
    if column.invisible:
        yield "INVISIBLE"
    if column.comment:
        yield f"COMMENT {column.comment}"
    yield from (a for a in column.attributes if a not in beside)
    if column.check:
        yield check_sql(column.check)
    if column.unknown:
        yield column.unknown


def key_sql(key: KeyDefinition) -> str:
    """Return the definition of a key, in the form for CREATE TABLE and ADD."""
    words = [key.kind.value, "KEY", quote(key.name) if key.name else ""]
    words.append("(" + ", ".join(map(_part, key.parts)) + ")")
    if key.using:
        words.append(f"USING {key.using}")
    if key.comment:
        words.append(f"COMMENT {key.comment}")
    words += [*key.attributes, key.unknown]
    words.append(key.invisible)
    return " ".join(filter(None, words))


def _part(part: IndexPart) -> str:
    text = part.expression or quote(part.column)
    if part.prefix:
        text += f"({part.prefix})"
    if not part.overlaps:
        text += " WITHOUT OVERLAPS"
    return f"{text} DESC" if part.descending else text


def foreign_key_sql(key: ForeignKeyDefinition) -> str:
    """Return the definition of a foreign key, in the form for CREATE TABLE and ADD."""
    parent = f"{quote(key.parent_schema)}." if key.parent_schema else ""
    words = [
        f"CONSTRAINT {quote(key.name)}" if key.name else "",
        "FOREIGN KEY",
        quote(key.index) if key.index else "",
        f"({_names(key.columns)}) REFERENCES {parent}{quote(key.parent)}",
        f"({_names(key.parent_columns)})" if key.parent_columns else "",
        f"MATCH {key.match}" if key.match else "",
        f"ON DELETE {key.on_delete}" if key.on_delete else "",
        f"ON UPDATE {key.on_update}" if key.on_update else "",
        key.unknown,
    ]
    return " ".join(filter(None, words))


def check_sql(check: CheckDefinition) -> str:
    """Return the definition of a CHECK, with its name if it has one."""
    name = f"CONSTRAINT {quote(check.name)} " if check.name else ""
    return f"{name}CHECK {check.text}{'' if check.enforced else ' NOT ENFORCED'}"


def _option(option: TableOption) -> str:
    sign = " " if option.name in ("START", "TABLESPACE", "STORAGE") else "="
    return f"{option.name}{sign}{option.value}"


def _partitioning(how: Partitioning) -> Iterator[str]:
    yield f"PARTITION BY {how.by}"
    if how.partitions:
        listed = (f"PARTITION {quote(p.name)} {p.text}" for p in how.partitions)
        yield "(" + ",\n ".join(listed) + ")"


def _names(columns: Iterable[str]) -> str:
    return ", ".join(map(quote, columns))
