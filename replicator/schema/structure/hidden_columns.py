"""Columns that a server hides but includes in its row events, and the period of a versioned row.

Neither information_schema nor SHOW CREATE TABLE shows these columns of MariaDB: ``row_start`` and
``row_end`` of a table WITH SYSTEM VERSIONING that declares no period of its own, and a hash for
each unique key that is too long for an index. They follow all other columns, first the times, then
the hashes, even if columns or keys were added later. Sources:
``TABLE_SHARE::init_from_binary_frm_image`` in table.cc, ``add_hash_field`` in sql_table.cc, and the
page "System-Versioned Tables". MySQL does not log the columns that it hides for functional keys.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from replicator.ddl.model.table import KeyKind
from replicator.ddl.parser.table_text import table_definition
from replicator.mysql.names import folded
from replicator.schema.structure.structure import Column, Table

_HASHING = frozenset({"MEMORY", "HEAP"})
"""Engines with hash indexes, which need no hidden column."""

_SYSTEM_TIME = folded("SYSTEM_TIME")
_TIME = "timestamp(6)"


@dataclass(frozen=True, slots=True)
class Period:
    """The columns that hold the times from which and until which a row was current."""

    start: str
    end: str


def system_period(create_sql: str) -> Period | None:
    """Return the period of a table WITH SYSTEM VERSIONING from its SHOW CREATE TABLE, or None."""
    definition = table_definition(create_sql)
    if not definition.versioned:
        return None
    for period in definition.periods:
        if folded(period.name) == _SYSTEM_TIME:
            return Period(period.start, period.end)
    return Period("row_start", "row_end")


def hidden_columns(table: Table) -> tuple[Column, ...]:
    """Return the hidden columns that follow this table's columns in MariaDB's row events.

    Events of another server do not have them, nor do events from before the key or the versioning
    was added; `with_hidden` decides by the number of columns in the events.
    """
    found = []
    period = system_period(table.create_sql)
    if period is not None and table.column(period.end) is None:
        found += [
            Column(name, _TIME, nullable=False, generated=True)
            for name in (period.start, period.end)
        ]
    definition = table.definition
    if definition.option("ENGINE").upper() not in _HASHING:
        hashes = sum(key.kind is KeyKind.UNIQUE and key.using == "HASH" for key in definition.keys)
        found += [
            Column(f"DB_ROW_HASH_{number}", "bigint(20) unsigned", generated=True)
            for number in range(1, hashes + 1)
        ]
    return tuple(found)


def with_hidden(table: Table, columns: int) -> Table:
    """Return the table with its hidden columns if events of `columns` columns include them."""
    hidden = hidden_columns(table)
    if columns != len(table.columns) + len(hidden):
        return table
    return replace(table, columns=table.columns + hidden)


def without_period(table: Table) -> Table:
    """Return the table with the keys that identify its current rows.

    The server adds the end of the period to each unique key, because former rows have equal keys.
    """
    period = system_period(table.create_sql)
    if period is None:
        return table
    end = folded(period.end)
    keys = (
        replace(key, columns=tuple(name for name in key.columns if folded(name) != end))
        for key in table.keys
    )
    return replace(table, keys=tuple(key for key in keys if key.columns or key.prefix))
