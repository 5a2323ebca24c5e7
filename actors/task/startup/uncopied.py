"""At a start behind a full copy: tables that the routes take, and that were never copied."""

from __future__ import annotations

from collections.abc import Iterable, Set

from actors.reading.uncopied_members import uncopied_members
from actors.task.startup.past_statements import created_between
from actors.task_setup import SourceSetup
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.chunks import CopyStore
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName
from replicator.mysql.server.binlog_end import binlog_end
from replicator.mysql.server.identity import ServerIdentity
from replicator.schema.registry.registry import SchemaRegistry


async def refuse_uncopied(
    setup: SourceSetup,
    registry: SchemaRegistry,
    meta: MetaStore,
    upstream: Connection,
    server: ServerIdentity,
    read_from: SourcePosition | GtidStart,
    tables: Iterable[TableName],
    blocked: Set[TableName],
) -> None:
    """Raise FatalError where one of the source's ``tables`` is no member and should be.

    Those of ``blocked`` targets are not looked at, since nothing is written there. Members are in
    ``registry`` by now. A table that a statement behind ``read_from`` creates is going to be one.
    Raises TransientError, DatabaseUnavailableError, the server's error, too.
    """
    copied = setup.source in await CopyStore(meta).copies()
    members = {registry.member(number).name for number in registry.members_in(setup.source)}
    routed = {name: setup.router.route(name.schema, name.table) for name in tables}
    strangers = {
        name: TableName(*target)
        for name, target in routed.items()
        if target is not None
        and name not in members
        and TableName(*target) not in blocked
        and not registry.is_told(Member(setup.source, name))
    }
    for name in strangers:
        # A server may show a table before its CREATE is in the binlog, and locks it until then.
        await upstream.fetch(f"SELECT 1 FROM {name.quoted} LIMIT 0")
    end = await binlog_end(upstream) if strangers else None
    if end is None:
        return
    place = BinlogPosition(end.file, end.offset)
    lost = strangers.keys() - await created_between(setup, server, read_from, place)
    if lost:
        raise uncopied_members(
            setup.source,
            {name: strangers[name] for name in lost},
            "a table was never copied" if copied else "a table was not followed before",
            f"source {setup.source}, saved at {read_from}",
        )
