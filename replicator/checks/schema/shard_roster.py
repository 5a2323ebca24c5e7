"""Finds every shard that a target may have rows of: readable, unreadable, or no longer existing.

A row that only the target has is wrong only if every shard was read that can own it. So the shards
are taken from the servers' lists and from the task's saved state. A saved shard that is not listed
is queried by its name, since a server lists only tables that the account has a privilege on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field

import anyio
from pymysql.err import MySQLError

from replicator.checks.checked_task import SourceToCheck, TaskToCheck
from replicator.checks.connecting import account_of
from replicator.checks.routes import routed_tables
from replicator.checks.schema.agreement import Shard
from replicator.checks.source.followed_shards import why_unread
from replicator.checks.source.source_checks import check_hidden_tables
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.errors import error_text
from replicator.mysql.names import Member, TableName
from replicator.routing.routes import RouteError
from replicator.schema.structure.inspection import default_collations, list_tables, read_table
from replicator.schema.structure.structure import Table

SOURCES_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class UnreadShard:
    """A shard that can't be read. ``grant``: the statement that permits it, if there is one."""

    member: Member
    reason: str
    grant: str = ""

    def __str__(self) -> str:
        remedy = f"; on source {self.member.source}: {self.grant}" if self.grant else ""
        return f"{self.member} can't be read: {self.reason}{remedy}"


@dataclass(frozen=True, slots=True)
class RetiredShard:
    """A shard that does not exist any more, or is not replicated any more."""

    member: Member
    reason: str

    def __str__(self) -> str:
        return f"{self.member} ({self.reason})"


@dataclass(slots=True)
class TargetRoster:
    """The shards of one target.

    Attributes:
        shards: the readable shards, in their order.
        unread: the unreadable shards.
        retired: shards that do not exist any more; the target keeps their rows.
        unseen: why there may be unknown shards; empty if there can be none.
    """

    shards: list[Shard] = field(default_factory=list)
    unread: list[UnreadShard] = field(default_factory=list)
    retired: list[RetiredShard] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _SourceShards:
    """The tables of one source: by target, the readable shards and the others.

    ``failure``: why nothing is known; ``unseen``: which further tables the source may have.
    """

    shards: dict[TableName, list[Shard]] = field(default_factory=dict)
    unread: dict[TableName, list[UnreadShard]] = field(default_factory=dict)
    unseen: str = ""
    failure: str = ""


async def read_rosters(
    task: TaskToCheck,
    saved: Mapping[TableName, Iterable[Member]],
    *,
    complete: bool,
    behind: Mapping[str, str],
) -> dict[TableName, TargetRoster]:
    """Return the shards of all targets.

    Args:
        task: the task, with its sources.
        saved: by target, the shards that the task may have written rows of.
        complete: whether no other shard can have rows on a target in ``saved``.
        behind: by source, why its server may lack changes that the task has read.
    """
    found: dict[str, _SourceShards] = {}
    limit = anyio.CapacityLimiter(SOURCES_AT_ONCE)

    async def read(source: SourceToCheck) -> None:
        own = {
            member.name
            for members in saved.values()
            for member in members
            if member.source == source.source_id
        }
        if reason := behind.get(source.source_id):
            found[source.source_id] = _SourceShards(failure=reason)
            return
        async with limit:
            found[source.source_id] = await _read_source(source, own)

    async with anyio.create_task_group() as group:
        for source in task.sources:
            group.start_soon(read, source)
    targets = {target for part in found.values() for target in (*part.shards, *part.unread)}
    return {
        target: _roster(task, target, found, saved.get(target), complete=complete)
        for target in sorted(targets | saved.keys())
    }


def _roster(
    task: TaskToCheck,
    target: TableName,
    found: Mapping[str, _SourceShards],
    saved: Iterable[Member] | None,
    *,
    complete: bool,
) -> TargetRoster:
    roster = TargetRoster()
    known = saved is not None and complete
    for source in task.sources:
        part = found[source.source_id]
        roster.shards += part.shards.get(target, [])
        roster.unread += part.unread.get(target, [])
        if part.failure and not known:
            name = TableName(target.schema, target.table)
            roster.unread.append(UnreadShard(Member(source.source_id, name), part.failure))
        if part.unseen and not known:
            roster.unseen.append(part.unseen)
    roster.shards.sort(key=lambda shard: shard.member)
    sources = {source.source_id: source for source in task.sources}
    listed_here = {shard.member for shard in roster.shards} | {u.member for u in roster.unread}
    for member in saved or ():
        if member in listed_here:
            continue
        if member in task.retired:
            roster.retired.append(RetiredShard(member, "it is retired"))
            continue
        source_of = sources.get(member.source)
        if source_of is None:
            roster.retired.append(RetiredShard(member, "its source is not in the task file"))
            continue
        part = found[member.source]
        if not _routed(source_of, member.name, target):
            roster.retired.append(RetiredShard(member, "the task file does not route it here"))
        elif part.failure:
            roster.unread.append(UnreadShard(member, part.failure))
        else:
            roster.retired.append(RetiredShard(member, "it does not exist"))
    return roster


def _routed(source: SourceToCheck, name: TableName, target: TableName) -> bool:
    try:
        routed = source.router.route(name.schema, name.table)
    except RouteError:
        return False
    return routed is not None and TableName(*routed) == target


async def _read_source(source: SourceToCheck, saved: Iterable[TableName]) -> _SourceShards:
    part = _SourceShards()
    with closing(Connection(source.address)) as connection:
        try:
            await _read_tables(source, connection, saved, part)
        except (DatabaseUnavailableError, RouteError) as error:
            part.failure = str(error)
        except MySQLError as error:
            part.failure = f"source {source.source_id}: {error_text(error)}"
    return part


async def _read_tables(
    source: SourceToCheck,
    connection: Connection,
    saved: Iterable[TableName],
    part: _SourceShards,
) -> None:
    collations = await default_collations(connection)
    account = await account_of(connection)
    tables = await list_tables(connection)
    pairs = dict(routed_tables(source, tables))
    for name in saved:
        routed = source.router.route(name.schema, name.table)
        if routed is not None:
            pairs.setdefault(name, TableName(*routed))
    for name, target in pairs.items():
        member = Member(source.source_id, name)
        table = await _structure(connection, name)
        why = await why_unread(connection, name, account)
        if table is not None and why is None:
            rules = source.columns.of(name.schema, name.table)
            shard = Shard(member, table, False, collations, False, rules)
            part.shards.setdefault(target, []).append(shard)
        elif why is not None:
            unread = UnreadShard(member, why.reason, why.grant)
            part.unread.setdefault(target, []).append(unread)
    hidden = await check_hidden_tables(source, connection, tables)
    part.unseen = "; ".join(
        " ".join((result.finding, *result.remedies))
        for result in hidden
        if result.state != "passed"
    )


async def _structure(connection: Connection, name: TableName) -> Table | None:
    try:
        return await read_table(connection, name)
    except MySQLError:
        return None  # `why_unread` gives the reason.
