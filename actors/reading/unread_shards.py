"""Finds followed shards that the task can't read."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing

import structlog
from pymysql.err import MySQLError

from actors.counting.task_counts import Unreadable, UnreadableShards
from replicator.checks.connecting import account_of
from replicator.checks.source.followed_shards import UnreadTable, why_unread
from replicator.mysql.connection.asyncio_connection import (
    Connection,
    DatabaseAddress,
    DatabaseUnavailableError,
)
from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.structure.inspection import list_tables

LIST_SECONDS = 60.0
"""Seconds between two reads of a server's list of tables; other checks read only the grants."""

log = structlog.get_logger()


class UnreadShards:
    """Checks members that have joined, and all members if the account's privileges change.

    Checks are needed because the binlog of a schema needs no privilege on the schema. ``addresses``
    are the sources' servers; ``unreadable`` gets the shards found.
    """

    def __init__(
        self,
        addresses: Mapping[str, DatabaseAddress],
        registry: SchemaRegistry,
        unreadable: UnreadableShards,
    ) -> None:
        self._addresses = addresses
        self._registry = registry
        self._unreadable = unreadable
        self._known: set[tuple[str, TableName]] = set()
        self._grants: dict[str, frozenset[str]] = {}
        self._listed: dict[str, float] = {}

    async def look(self, source: str) -> None:
        """Log and record the members of a source that can't be read, each once while that lasts."""
        members = map(self._registry.member, self._registry.members_in(source))
        names = [m.name for m in members if m.name.table]
        self._forget(source, names)
        if not names:
            return
        try:
            with closing(Connection(self._addresses[source])) as connection:
                found = await self._unread(source, connection, names)
        except (DatabaseUnavailableError, MySQLError):
            return  # The reader reports a source that is unreachable.
        for name, table in found.items():
            self._keep(Member(source, name), table)

    async def _unread(
        self, source: str, connection: Connection, names: Sequence[TableName]
    ) -> dict[TableName, UnreadTable | None]:
        """Return the checked tables, with the reason if a table can't be read."""
        grants = frozenset(str(row[0]) for row in await connection.fetch("SHOW GRANTS"))
        new = [name for name in names if (source, name) not in self._known]
        changed = grants != self._grants.get(source, grants)
        every = changed or time.monotonic() >= self._listed.get(source, 0.0)
        looked_at = names if every else new
        if not looked_at:
            return {}
        # Another privilege may list a table although it can't be read.
        tried = {m.name for m in self._unreadable.found if m.source == source}
        account = await account_of(connection)
        listed = set() if changed else set(await list_tables(connection)) - tried
        found = {
            name: None if name in listed else await why_unread(connection, name, account)
            for name in looked_at
        }
        self._grants[source] = grants
        self._known.update((source, name) for name in looked_at)
        if every:
            self._listed[source] = time.monotonic() + LIST_SECONDS
        return found

    def _forget(self, source: str, names: Sequence[TableName]) -> None:
        for member in [m for m in self._unreadable.found if m.source == source]:
            if member.name not in names:
                del self._unreadable.found[member]

    def _keep(self, member: Member, table: UnreadTable | None) -> None:
        if table is None:
            self._unreadable.found.pop(member, None)
            return
        known = member in self._unreadable.found
        self._unreadable.found[member] = Unreadable(table.reason, table.grant)
        if not known:
            log.warning(
                "shard.unreadable",
                source=member.source,
                shard=str(member.name),
                reason=table.reason,
                remedy=table.grant,
            )
