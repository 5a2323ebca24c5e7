"""Online schema changes that had started before the place at which a task starts.

The statements that made a ghost table are no longer in the binlog. But if neither the ghost nor its
real table has changed since that place, the server has both structures as they were there; the
difference is recorded as the ghost's changes. If the ghost has replaced the table since, the trash
table has the former structure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import structlog
from pymysql.err import MySQLError

from actors.errors.faults import TransientError
from actors.errors.refusals import refusal
from actors.reading.binlog_lookups import statements_between
from actors.reading.source_faults import source_fault
from actors.setup.task_setup import SourceSetup
from replicator.binlog.errors import BinlogError, StreamLostError
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.segment import Statement
from replicator.ddl.analysis.side_effects import changed_tables, concerns
from replicator.ddl.online.online_ddl import (
    Beside,
    GhostAct,
    GhostEntry,
    GhostHistory,
    exchanged_ghost,
)
from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.downstream.meta.online_ddl_records import OnlineDdlStore
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.mysql.server.binlog_end import BinlogEnd, binlog_end
from replicator.mysql.server.identity import ServerIdentity
from replicator.routing.online_tables import OnlineUse
from replicator.schema.effects.derived_change import NotDerivableError, derived_alter, rebuilding
from replicator.schema.structure.inspection import list_tables, read_table
from replicator.schema.structure.structure import Table

log = structlog.get_logger()


@dataclass(slots=True)
class _FoundGhosts:
    """Tables that schema-change tools created; each value is the real table and the tool's table.

    ``ghosts`` are the ghosts whose start is not known. ``end`` is a position in the binlog after
    all tables were read; None if there are no such tables.
    """

    ghosts: dict[TableName, tuple[Table, Table]] = field(default_factory=dict)
    trash: dict[TableName, tuple[Table, Table]] = field(default_factory=dict)
    end: BinlogEnd | None = None


async def record_ghosts(
    setup: SourceSetup,
    server: ServerIdentity,
    start: SourcePosition | GtidStart,
    place: int,
    store: OnlineDdlStore,
    *,
    first: bool,
) -> None:
    """Record earlier changes of ghosts that were neither created nor changed after ``start``.

    Raises FatalError, TransientError or DatabaseUnavailableError.

    Args:
        place: key of ``start``; 0 if it is not known.
        first: whether nothing after ``start`` was ever read. Then ghosts that have replaced their
            tables since are recorded, too, if the former tables still exist.
    """
    history = GhostHistory(await store.load(setup.source))
    found = await _tables(setup, history, place, first=first)
    if found.end is None:
        return
    to = BinlogPosition(found.end.file, found.end.offset)
    try:
        later_statements = await statements_between(setup, server, start, to, _statements)
    except StreamLostError as error:
        raise TransientError(f"source {setup.source}: {error}") from error
    except BinlogError as error:
        raise source_fault(setup.source, start, error, by_gtid=setup.use_gtid) from error
    changed = [name for statement in later_statements for name in changed_tables(statement)]
    # No event can have these places, because they are inside the event before.
    at = max(place - 2, 0)
    for ghost, (real, present) in found.ghosts.items():
        own = (ghost, TableName(real.schema, real.name))
        if not any(concerns(name, one) for name in changed for one in own):
            await _record(setup.source, store, real, present, ghost, at)
    for trash, (real, former) in found.trash.items():
        name = TableName(real.schema, real.name)
        taken = exchanged_ghost(name, trash, later_statements, partial(_beside, setup))
        if taken is not None and not history.life(taken, place):
            await _record(setup.source, store, former, real, taken, at)


async def _tables(
    setup: SourceSetup, history: GhostHistory, place: int, *, first: bool
) -> _FoundGhosts:
    found = _FoundGhosts()
    upstream = Connection(setup.address)
    try:
        for name in await list_tables(upstream):
            beside = _beside(setup, name)
            if beside is None or (beside.trash and not first) or history.life(name, place):
                continue
            real = await read_table(upstream, beside.real)
            own = await read_table(upstream, name)
            if real is not None and own is not None:
                (found.trash if beside.trash else found.ghosts)[name] = (real, own)
        if found.ghosts or found.trash:
            found.end = await binlog_end(upstream)
        return found
    except MySQLError as error:
        raise refusal(setup.address, error, source=setup.source) from error
    finally:
        upstream.close()


def _beside(setup: SourceSetup, table: TableName) -> Beside | None:
    found = setup.router.online(table.schema, table.table)
    if found is None:
        return None
    return Beside(TableName(table.schema, found.real), found.use is OnlineUse.TRASH)


async def _record(
    source: str, store: OnlineDdlStore, real: Table, ghost: Table, name: TableName, at: int
) -> None:
    """Record a ghost's changes, derived from its structure and its real table's."""
    begun = GhostEntry(name, at, GhostAct.BEGUN)
    try:
        sql = derived_alter(real, ghost, name)
    except NotDerivableError as error:
        change = GhostEntry(name, at + 1, GhostAct.UNCLEAR, str(error))
        log.warning("online-ddl.unclear", source=source, table=str(name), reason=str(error))
    else:
        act = GhostAct.CHANGED if sql else GhostAct.SAME
        change = GhostEntry(name, at + 1, act, sql or rebuilding(ghost, name), name.schema)
        log.info("online-ddl.derived", source=source, table=str(name), statement=change.sql[:500])
    # The change is first: if the process dies before the start is saved, the change is ignored.
    for entry in (change, begun):
        await store.put(source, entry)


def _statements(_: Statement, parsed: ParsedStatement) -> Iterator[ParsedStatement]:
    if parsed.kind is not StatementKind.DML:
        yield parsed
