"""The sizes of the targets before the merge, as estimated by the sources' servers."""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio
import pymysql.err

from replicator.checks.checked_task import SourceToCheck, TaskToCheck
from replicator.checks.routes import routed_tables
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.names import TableName
from replicator.routing.routes import RouteError
from replicator.schema.structure.inspection import TableSize, list_tables, table_sizes

SOURCES_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class TargetEstimate:
    """One target: its shards, and the number of their sources.

    ``rows`` and ``bytes`` (of the shards' data) are the servers' estimates, from
    information_schema.TABLES.
    """

    target: str
    shards: int
    sources: int
    rows: int
    bytes: int


@dataclass(slots=True)
class _Estimated:
    shards: int = 0
    sources: set[str] = field(default_factory=set)
    rows: int = 0
    size: int = 0


async def estimate_targets(task: TaskToCheck) -> list[TargetEstimate]:
    """Return all targets by name.

    An unavailable source is left out; its checks report the reason.
    """
    found: dict[TableName, _Estimated] = {}
    limit = anyio.CapacityLimiter(SOURCES_AT_ONCE)

    async def look_at(source: SourceToCheck) -> None:
        async with limit:
            await _add_source(source, found)

    async with anyio.create_task_group() as group:
        for source in task.sources:
            group.start_soon(look_at, source)
    return [
        TargetEstimate(str(name), each.shards, len(each.sources), each.rows, each.size)
        for name, each in sorted(found.items())
    ]


async def _add_source(source: SourceToCheck, found: dict[TableName, _Estimated]) -> None:
    connection = Connection(source.address)
    try:
        pairs = routed_tables(source, await list_tables(connection))
        sizes = await table_sizes(connection, (name for name, _ in pairs))
    except (RouteError, DatabaseUnavailableError, pymysql.err.MySQLError):
        return
    finally:
        connection.close()
    for name, target in pairs:
        estimate = sizes.get(name, TableSize(0, 0))
        each = found.setdefault(target, _Estimated())
        each.shards += 1
        each.sources.add(source.source_id)
        each.rows += estimate.rows
        each.size += estimate.size
