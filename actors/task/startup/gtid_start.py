"""The position at which reading begins if the task file names a GTID set."""

from __future__ import annotations

from functools import partial

from actors.errors.faults import fault
from actors.reading.binlog_lookups import anchor_before, look_up
from actors.reading.source_faults import source_fault
from actors.setup.task_setup import SourceSetup
from replicator.binlog.errors import BinlogError, GtidModeError, WithoutGtidError
from replicator.binlog.positions.gtid import GtidStart, MariaDBGtids
from replicator.binlog.positions.position import SourcePosition
from replicator.binlog.stream.gtid_positions import first_new, gtids_at
from replicator.binlog.stream.nameless_transactions import refuse_nameless
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.connection.malformed_answers import parsing_answer
from replicator.mysql.server.identity import ServerIdentity


async def start_by_gtid(
    setup: SourceSetup, upstream: Connection, server: ServerIdentity, start: GtidStart
) -> SourcePosition | None:
    """Return the position of the first transaction that the set lacks, to be saved before any row.

    From this position on, the source is read by file and position. Return None if the position
    can't be determined; the reader reports the reason. Raises FatalError if the set and the binlog
    before the position have different transactions.
    """
    try:
        executed = start.normalised(mariadb=not server.server_uuid)
        first = await look_up(setup, server, upstream, partial(first_new, executed=executed))
        if first is None:
            return None
        if server.server_uuid:
            await look_up(setup, server, upstream, partial(refuse_nameless, at=first))
        there = await look_up(setup, server, upstream, partial(gtids_at, position=first)) or ""
    except (GtidModeError, WithoutGtidError) as error:
        raise source_fault(setup.source, start, error) from error
    except BinlogError:
        return None
    later = await (_mysql_later if server.server_uuid else _mariadb_later)(
        upstream, executed, there
    )
    if later:
        raise fault("source.no-start", "gaps", source=setup.source, later=later, first=first)
    return SourcePosition(first, there, await anchor_before(setup, server, first.file))


async def _mysql_later(upstream: Connection, executed: str, there: str) -> str:
    """Return a set's transactions that the server has executed, but not before the position."""
    rows = await upstream.fetch(
        "SELECT GTID_SUBTRACT(GTID_SUBTRACT(%s, GTID_SUBTRACT(%s, @@GLOBAL.gtid_executed)), %s)",
        (executed, executed, there),
    )
    with parsing_answer("GTID_SUBTRACT"):
        ((later,),) = rows
        return str(later).replace("\n", "")


async def _mariadb_later(_upstream: Connection, executed: str, there: str) -> str:
    """Return the set's last transactions in domains where the position has another one."""
    before, named = MariaDBGtids(there), MariaDBGtids(executed)
    return ",".join(
        str(named.newest(domain))
        for domain in sorted(named.domains & before.domains)
        if named.newest(domain) != before.newest(domain)
    )
