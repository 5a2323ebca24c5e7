"""Columns that a server hides, though its row events have them; and the time of a versioned row.

MariaDB adds columns that neither information_schema nor SHOW CREATE TABLE tells: ``row_start`` and
``row_end`` where a table WITH SYSTEM VERSIONING names no period of its own, and a hash for each
unique key that is too long for an index (``TABLE_SHARE::init_from_binary_frm_image`` and
``add_hash_field`` in its table.cc and sql_table.cc; its page "System-Versioned Tables"). Behind the
other columns stand first the times, then the hashes, also after columns or keys were added. MySQL
keeps what it hides for a functional key out of its events.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from replicator.ddl.model.table import KeyKind
from replicator.ddl.parser.table_text import table_definition
from replicator.mysql.names import folded
from replicator.schema.structure.structure import Column, Table

_HASHING = frozenset({"MEMORY", "HEAP"})
"""Engines that have indexes which are hashes: they need no column for them."""

_SYSTEM_TIME = folded("SYSTEM_TIME")
_TIME = "timestamp(6)"


@dataclass(frozen=True, slots=True)
class Period:
    """The columns with the times from which and until which a row was the present one."""

    start: str
    end: str


def system_period(create_sql: str) -> Period | None:
    """The period of a table that keeps its former rows (WITH SYSTEM VERSIONING), else None.

    From the text of SHOW CREATE TABLE.
    """
    definition = table_definition(create_sql)
    if not definition.versioned:
        return None
    for period in definition.periods:
        if folded(period.name) == _SYSTEM_TIME:
            return Period(period.start, period.end)
    return Period("row_start", "row_end")


def hidden_columns(table: Table) -> tuple[Column, ...]:
    """What a MariaDB's row events have behind the columns of this table.

    Another server's events have none of it, nor do those from before a key or the versioning was
    added: the number of columns in the events tells.
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
    """The table with the columns that are hidden, where events of ``columns`` have them."""
    hidden = hidden_columns(table)
    if columns != len(table.columns) + len(hidden):
        return table
    return replace(table, columns=table.columns + hidden)


def without_period(table: Table) -> Table:
    """The table with the keys that tell its present rows apart.

    The server adds the end of the period to each unique key, since former rows have equal keys.
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
