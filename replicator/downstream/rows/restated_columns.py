"""Columns of a target that a row comes without, and that a statement has to say something about.

A shard may lack a column that others have brought. Its row on the target is to have there what the
shard's own statement will give it: the column's default, as it is made of the row by then. Left
alone, a server would set a column with ON UPDATE to the time of our writing, and keep a default
that was made of the row's former values ("Automatic Initialization and Updating for TIMESTAMP and
DATETIME", "Data Type Default Values" of MySQL's manual). A column that has no default, and may
not be NULL, gives the rows that are there already the default of its type; in strict mode a new row
without it is refused (the same page; MariaDB KB, "NULL Values in MariaDB").
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from replicator.ddl.parser.alter_actions import outside_brackets
from replicator.downstream.rows.target_columns import Restated
from replicator.mysql.names import folded
from replicator.schema.effects.column_values import definition_of, value_clause, value_columns
from replicator.schema.structure.structure import Column, Table

_IMPLICIT = {
    **dict.fromkeys(
        ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "bit"),
        "0",
    ),
    **dict.fromkeys(
        ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "set", "binary"), "''"
    ),
    **dict.fromkeys(("varbinary", "tinyblob", "blob", "mediumblob", "longblob"), "''"),
    "date": "'0000-00-00'",
    "datetime": "'0000-00-00 00:00:00'",
    "timestamp": "'0000-00-00 00:00:00'",
    "time": "'00:00:00'",
    # As a text of four digits: the number 0 and '0' are read in several ways.
    "year": "'0000'",
    "json": "CONVERT('null' USING utf8mb4)",
    "uuid": "CONVERT('00000000-0000-0000-0000-000000000000' USING utf8mb4)",
    "inet4": "CONVERT('0.0.0.0' USING utf8mb4)",
    "inet6": "CONVERT('::' USING utf8mb4)",
}
"""The literal of each type's default. Without ENUM, whose first label servers give even in strict
mode, and types that have none (geometry, vectors)."""


def filled_columns(target: Table, written: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Columns that a new row must be given a value for among those that are not ``written``.

    Each with the default of its type as an SQL literal, which is what a shard's own ADD COLUMN
    gives its rows.
    """
    names = set(map(folded, written))
    left = (column for column in target.columns if folded(column.name) not in names)
    return tuple(
        (column.name, _IMPLICIT[column.base_type])
        for column in left
        if _needs_value(target, column)
    )


def _needs_value(target: Table, column: Column) -> bool:
    given = column.nullable or column.generated or column.auto_increment
    return not given and column.base_type in _IMPLICIT and not value_clause(target, column.name)


def restated_columns(target: Table, written: Collection[str]) -> tuple[tuple[str, Restated], ...]:
    """Such columns among those that are not ``written``, each with what an update writes."""
    names = set(map(folded, written))
    left = [c for c in target.columns if folded(c.name) not in names and not c.generated]
    found = ((column.name, _restated(target, column.name)) for column in left)
    return tuple((name, how) for name, how in found if how is not None)


def _restated(target: Table, column: str) -> Restated | None:
    if value_columns(target, column):
        return Restated.DEFAULT
    words = [token.keyword for token in outside_brackets(definition_of(target.create_sql, column))]
    return Restated.KEPT if ("ON", "UPDATE") in pairwise(words) else None
