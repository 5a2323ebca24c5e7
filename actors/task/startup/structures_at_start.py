"""The structures of the rows after a start: the present ones, and how far back they are valid.

A server reports only present structures. They are valid back to the last statement that may have
changed them; before this statement they are a guess (`replicator.schema.registry.registry`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import structlog

from actors.setup.task_setup import SourceSetup
from actors.task.startup.past_statements import changes_between
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.ddl.model.actions import Action
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName
from replicator.mysql.server.binlog_end import binlog_end
from replicator.mysql.server.identity import ServerIdentity
from replicator.schema.effects.touched_parts import column_part
from replicator.schema.registry.former_parts import with_former_parts
from replicator.schema.registry.past_changes import Past, PastChange
from replicator.schema.registry.registry import KnownStructure, Provenance, SchemaRegistry, guess
from replicator.schema.scratch.scratch_statements import named
from replicator.schema.structure.inspection import list_tables, read_table, read_tables
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
        """Return the possible changes of a table's columns."""
        return tuple(change for change in self.changes if change.columns and change.concerns(name))

    def actions(self, name: TableName, place: int = -1) -> tuple[list[Action], list[Action]]:
        """Return what statements have done to a table, as far as known.

        The first list is about statements up to a position, the second about those after it.
        """
        earlier: list[Action] = []
        later: list[Action] = []
        for change in self.changes:
            if change.table == name:
                (later if change.at > place else earlier).extend(change.actions)
        return earlier, later

    def last(self, name: TableName) -> int:
        """Return the position of the last statement that may have changed a table, or 0."""
        return max((change.at for change in self.changes if change.concerns(name)), default=0)

    def former(self, name: TableName) -> Table | None:
        """Return a table's structure before its only change, an online schema change.

        Return None for other tables, and if the table put aside may have been changed since.
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
    """Read the structures at a position without concurrent changes.

    Also read all changes since ``start``. Raises FatalError, TransientError,
    DatabaseUnavailableError or the server's error.
    """
    while True:
        before = await binlog_end(upstream)
        present = await list_tables(upstream)
        routed = [name for name in present if setup.router.route(name.schema, name.table)]
        aside = {name for name in present if setup.router.online(name.schema, name.table)}
        tables = await read_tables(upstream, routed)
        trash = await read_tables(upstream, sorted(aside - {*routed}))
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


async def targets_of_changed(
    target: Connection, source: str, registry: SchemaRegistry, found: TablesAtEnd
) -> Mapping[TableName, Table]:
    """Return the present targets of a source's members that have been changed since the start.

    Raises DatabaseUnavailableError or the server's error.
    """
    present: dict[TableName, Table | None] = {}
    tables = {}
    for name in found.tables:
        number = registry.number(Member(source, name))
        if number is None or not any(found.actions(name)):
            continue
        its = registry.target_name(registry.target_of(number))
        if its not in present:
            present[its] = await read_table(target, its)
        if (there := present[its]) is not None:
            tables[name] = there
    return tables


def note_structures(
    source: str,
    registry: SchemaRegistry,
    found: TablesAtEnd,
    names: Iterable[TableName],
    at: int,
    targets: Mapping[TableName, Table],
) -> None:
    """Record the known structures of members from the position `at` (its key) on.

    `targets` are the tables that `targets_of_changed` returns.
    """
    parents = _parents(source, registry)

    def before(name: TableName, table: Table, place: int) -> Table:
        """Return a member as it was before all statements after a position."""
        target = targets.get(name)
        if target is None:
            return table
        return with_former_parts(table, target, *found.actions(name, place), parents)

    doubtful = []
    for name in names:
        number = registry.number(Member(source, name))
        assert number is not None
        structure, changes = found.tables.get(name), found.of(name)
        former = found.former(name)
        if not changes and structure is not None:
            former = before(name, structure, -1)
        if former is not None:
            registry.learn(number, at, KnownStructure(former, Provenance.READ))
        else:
            doubtful.append(str(name))
            first = changes[0].sql if changes else "?"
            doubt = f"it was read after a statement that may change it: {first}"
            guessed = _without_added(structure, changes)
            registry.learn(number, at, guess(guessed and before(name, guessed, -1), doubt))
        if structure is None:
            continue
        last = found.last(name)
        if changes and not (changes[-1].defines and changes[-1].at < last):
            since = before(name, structure, changes[-1].at)
            registry.learn(number, changes[-1].at, KnownStructure(since, Provenance.READ))
        if last:
            registry.learn(number, last, KnownStructure(structure, Provenance.READ))
    if doubtful:
        log.warning("schema.older-rows", source=source, members=sorted(doubtful)[:50])


def _parents(source: str, registry: SchemaRegistry) -> Mapping[TableName, TableName]:
    """Return the shards of a source by their targets, for targets with a single shard."""
    shards: dict[TableName, list[TableName]] = {}
    for number in registry.members_in(source):
        target = registry.target_name(registry.target_of(number))
        shards.setdefault(target, []).append(registry.member(number).name)
    return {target: names[0] for target, names in shards.items() if len(names) == 1}


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
