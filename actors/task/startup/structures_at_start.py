"""The structures of the rows after a start: the present ones, and how far back they are valid.

A server only reports present structures. They are valid back to the last statement that may have
changed them; before it they are a guess (`replicator.schema.registry.registry`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import structlog

from actors.task.startup.past_statements import changes_between
from actors.task_setup import SourceSetup
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName
from replicator.mysql.server.binlog_end import binlog_end
from replicator.mysql.server.identity import ServerIdentity
from replicator.schema.effects.touched_parts import column_part
from replicator.schema.registry.past_changes import Past, PastChange
from replicator.schema.registry.registry import KnownStructure, Provenance, SchemaRegistry, guess
from replicator.schema.scratch.scratch_statements import named
from replicator.schema.structure.inspection import list_tables, read_table
from replicator.schema.structure.structure import Table

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class TablesAtEnd:
    """The routed tables of a source at a position of its binlog after ``start``.

    Attributes:
        changes: statements that may have changed the tables since ``start``, in order.
        trash: present tables that online schema changes have put aside.
    """

    tables: Mapping[TableName, Table]
    changes: tuple[PastChange, ...]
    trash: Mapping[TableName, Table] = field(default_factory=dict)

    def of(self, name: TableName) -> tuple[PastChange, ...]:
        """Return the possible changes of a table."""
        return tuple(change for change in self.changes if change.concerns(name))

    def former(self, name: TableName) -> Table | None:
        """Return a table's structure before its only change, an online schema change.

        None for other tables, and if the table put aside may have been changed since.
        """
        changes = self.of(name)
        if len(changes) != 1 or changes[0].new_name is None:
            return None
        since = [c.past for c in self.of(changes[0].new_name) if c.at >= changes[0].at]
        aside = self.trash.get(changes[0].new_name)
        return named(aside, name) if aside and since == [Past.MISSING] else None


async def tables_at_end(
    setup: SourceSetup,
    upstream: Connection,
    server: ServerIdentity,
    start: SourcePosition | GtidStart,
) -> TablesAtEnd:
    """Read the structures at a position without concurrent changes, and all since ``start``.

    Raises FatalError, TransientError, DatabaseUnavailableError or the server's error.
    """
    while True:
        before = await binlog_end(upstream)
        tables: dict[TableName, Table] = {}
        trash: dict[TableName, Table] = {}
        for name in await list_tables(upstream):
            routed = setup.router.route(name.schema, name.table)
            if routed or setup.router.online(name.schema, name.table):
                structure = await read_table(upstream, name)
                if structure is not None:
                    (tables if routed else trash)[name] = structure
        end = await binlog_end(upstream)
        if before is None or end is None:
            return TablesAtEnd(tables, ())
        place = BinlogPosition(end.file, end.offset)
        changes = await changes_between(setup, server, start, place)
        if not any(
            change.at >= BinlogPosition(before.file, before.offset).key for change in changes
        ):
            return TablesAtEnd(tables, tuple(changes), trash)


def _routed(setup: SourceSetup, change: PastChange) -> bool:
    table = change.table
    return table is None or setup.router.route(table.schema, table.table) is not None


def names_at_start(found: TablesAtEnd, routed: Iterable[TableName]) -> set[TableName]:
    """Return the tables that existed at the start, certainly or probably.

    ``routed``: replicated tables that statements name.
    """
    names = set()
    for name in {*found.tables, *routed}:
        changes = found.of(name)
        if changes and changes[0].past is Past.MISSING:
            continue
        if name in found.tables or (changes and changes[0].past is Past.OTHER_NAME):
            names.add(name)
    return names


def note_structures(
    source: str, registry: SchemaRegistry, found: TablesAtEnd, names: Iterable[TableName], at: int
) -> None:
    """Record the known structures of members from the position `at` (its key) on."""
    doubtful = []
    for name in names:
        number = registry.number(Member(source, name))
        assert number is not None
        structure, changes = found.tables.get(name), found.of(name)
        if not changes and structure is not None:
            registry.learn(number, at, KnownStructure(structure, Provenance.READ))
            continue
        former = found.former(name)
        if former is not None:
            registry.learn(number, at, KnownStructure(former, Provenance.READ))
        else:
            doubtful.append(str(name))
            first = changes[0].sql if changes else "?"
            doubt = f"it was read after a statement that may change it: {first}"
            registry.learn(number, at, guess(_without_added(structure, changes), doubt))
        if structure is not None:
            registry.learn(number, changes[-1].at, KnownStructure(structure, Provenance.READ))
    if doubtful:
        log.warning("schema.older-rows", source=source, members=sorted(doubtful)[:50])


def _without_added(table: Table | None, changes: Iterable[PastChange]) -> Table | None:
    """Return a table's former structure if the changes since have only added columns."""
    added: set[str] = set()
    for change in changes:
        if change.added is None:
            return table
        added |= change.added
    if table is None:
        return None
    left = tuple(c for c in table.columns if column_part(c.name) not in added)
    return replace(table, columns=left)
