"""Logs each shard that the task follows and can't read, once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

import structlog
from pymysql.err import MySQLError

from replicator.checks.source.followed_shards import unread_tables
from replicator.mysql.connection.asyncio_connection import (
    Connection,
    DatabaseAddress,
    DatabaseUnavailableError,
)
from replicator.mysql.names import TableName
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.structure.inspection import list_tables

log = structlog.get_logger()


class UnreadShards:
    """Looks at members that have joined: the binlog of a schema needs no privilege on it.

    ``addresses``: by source, its server.
    """

    def __init__(self, addresses: Mapping[str, DatabaseAddress], registry: SchemaRegistry) -> None:
        self._addresses = addresses
        self._registry = registry
        self._known: set[tuple[str, TableName]] = set()

    async def look(self, source: str) -> None:
        """Look at the members of a source that have joined since the last look."""
        members = map(self._registry.member, self._registry.members_in(source))
        new = [m.name for m in members if m.name.table and (source, m.name) not in self._known]
        if not new:
            return
        try:
            with closing(Connection(self._addresses[source])) as connection:
                unread = await unread_tables(connection, new, await list_tables(connection))
        except (DatabaseUnavailableError, MySQLError):
            return  # The reader reports a source that is unreachable.
        self._known.update((source, name) for name in new)
        for table in unread:
            log.warning(
                "shard.unreadable",
                source=source,
                shard=str(table.name),
                reason=table.reason,
                remedy=table.grant,
            )
