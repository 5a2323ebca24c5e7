"""Online schema changes that had begun before the place that a task reads from.

The statements that made a ghost table can't be had any more. But where neither the ghost nor its
real table has been changed since that place, the server tells what both of them are there; what
leads from the one to the other is recorded as what the ghost went through.
"""

from __future__ import annotations

from collections.abc import Iterator

import structlog
from pymysql.err import MySQLError

from actors.faults import TransientError
from actors.reading.source_faults import source_fault
from actors.reading.statements_between import statements_between
from actors.refusals import refusal
from actors.task_setup import SourceSetup
from replicator.binlog.errors import BinlogError, StreamLostError
from replicator.binlog.gtid import GtidStart
from replicator.binlog.position import BinlogPosition, SourcePosition
from replicator.binlog.segment import Statement
from replicator.ddl.changed_tables import changed_tables, concerns
from replicator.ddl.online_ddl import GhostAct, GhostEntry, GhostHistory
from replicator.ddl.statement import Recognised
from replicator.downstream.online_ddl import OnlineDdlStore
from replicator.mysql.binlog_end import BinlogEnd, binlog_end
from replicator.mysql.connection import Connection
from replicator.mysql.identity import ServerIdentity
from replicator.mysql.names import TableName
from replicator.routing.online_tables import OnlineUse
from replicator.schema.derived_change import NotDerivableError, derived_alter, rebuilding
from replicator.schema.inspection import list_tables, read_table
from replicator.schema.structure import Table

log = structlog.get_logger()


async def record_ghosts(
    setup: SourceSetup,
    server: ServerIdentity,
    start: SourcePosition | GtidStart,
    place: int,
    store: OnlineDdlStore,
) -> None:
    """Record what the ghosts of a source had gone through before ``start``, where it is not known.

    ``place`` is that of ``start``, 0 where it is not known. Does nothing about a ghost that was
    made or changed behind it. Raises FatalError, TransientError or DatabaseUnavailableError.
    """
    found, end = await _ghosts(setup, GhostHistory(await store.load(setup.source)), place)
    if end is None:
        return
    to = BinlogPosition(end.file, end.offset)
    try:
        changed = await statements_between(setup, server, start, to, _changed)
    except StreamLostError as error:
        raise TransientError(f"source {setup.source}: {error}") from error
    except BinlogError as error:
        raise source_fault(setup.source, start, error) from error
    for name, (real, ghost) in found.items():
        own = (name, TableName(real.schema, real.name))
        if not any(concerns(table, one) for table in changed for one in own):
            # Nothing in a binlog has these places: they are inside what stands before it.
            await _record(setup.source, store, real, ghost, name, max(place - 2, 0))


async def _ghosts(
    setup: SourceSetup, history: GhostHistory, place: int
) -> tuple[dict[TableName, tuple[Table, Table]], BinlogEnd | None]:
    """The ghosts whose beginning is not known, each behind its real table, and a place in the
    binlog behind their reading; no place where there are none."""
    found: dict[TableName, tuple[Table, Table]] = {}
    upstream = Connection(setup.address)
    try:
        for name in await list_tables(upstream):
            beside = setup.router.online(name.schema, name.table)
            if beside is None or beside.use is OnlineUse.TRASH or history.life(name, place):
                continue
            real = await read_table(upstream, TableName(name.schema, beside.real))
            ghost = await read_table(upstream, name)
            if real is not None and ghost is not None:
                found[name] = (real, ghost)
        return found, await binlog_end(upstream) if found else None
    except MySQLError as error:
        raise refusal(setup.address, error, source=setup.source) from error
    finally:
        upstream.close()


async def _record(
    source: str, store: OnlineDdlStore, real: Table, ghost: Table, name: TableName, at: int
) -> None:
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
    # A change without a beginning counts for nothing, should the process die in between.
    for entry in (change, begun):
        await store.put(source, entry)


def _changed(_: Statement, recognised: Recognised) -> Iterator[TableName]:
    return changed_tables(recognised)
