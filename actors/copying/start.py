"""The start of a source's copy: its members, and the position from which its binlog is replayed."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace

import anyio.to_thread
from pymysql.err import MySQLError

from actors.errors.faults import fault
from actors.errors.refusals import refusal
from actors.reading.binlog_lookups import anchor_before, reported_gtids
from actors.reading.ghosts_at_start import record_ghosts
from actors.reading.source_faults import refuse_other_server
from actors.saved.lock_state import dump_group
from actors.saved.saved_position import saved_position
from actors.setup.task_setup import SourceSetup
from actors.sharding.modes import SHARD_MODES
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.downstream.meta.checkpoint import Checkpoint, MetaStore
from replicator.downstream.meta.chunks import CopyStore
from replicator.downstream.meta.online_ddl_records import OnlineDdlStore
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.mysql.errors import MISSING_PRIVILEGE, error_code
from replicator.mysql.names import Member, TableName
from replicator.mysql.server.binlog_end import BinlogEnd, binlog_end
from replicator.mysql.server.identity import ServerIdentity, server_identity
from replicator.pipeline.copy.source_stream import SnapshotPlace, SourceStream
from replicator.schema.registry.registry import KnownStructure, MemberRecord, Provenance
from replicator.schema.structure.inspection import list_tables, read_tables
from replicator.schema.structure.structure import Table


@dataclass(frozen=True, slots=True)
class CopyMember:
    """A shard to copy, with the structure that it had when its copy began.

    ``since``: key of the position of this structure; 0 for the source's saved position.
    """

    name: TableName
    target: TableName
    structure: Table
    since: int = 0


@dataclass(frozen=True, slots=True)
class CopyStart:
    """The members to copy, and the saved position from which the binlog is followed, if any.

    ``server``: the server that wrote that binlog; None if nothing is known about the source.
    """

    members: tuple[CopyMember, ...]
    position: SourcePosition | None
    server: ServerIdentity | None


async def begin_copy(
    setup: SourceSetup, meta: MetaStore, store: CopyStore, *, follow: bool
) -> CopyStart:
    """Return the members to copy: the ones that an earlier start recorded, or the present ones.

    The structures are read first, then the position, then both are saved. If a structure changes in
    between, the change is found when the shard is planned. If ``follow``, the source must have a
    binlog. Raises FatalError, DatabaseUnavailableError.
    """
    with closing(Connection(setup.address)) as upstream:
        try:
            checkpoint = await meta.load(setup.source)
            server = await server_identity(upstream)
            if checkpoint is None:
                await store.begin(setup.source)
                checkpoint = await _fresh(setup, upstream, server, follow=follow)
                mode = SHARD_MODES[meta.shard_mode]
                members = ((m.member.name, m.target) for m in checkpoint.members)
                groups = mode.first_groups(await mode.decisions(meta), members)
                texts = tuple((target, dump_group(state)) for target, state in groups.items())
                checkpoint = replace(checkpoint, groups=texts)
                await meta.save([checkpoint], members=frozenset({setup.source}))
                reach(Failpoint.COPY_BEGUN)
            else:
                refuse_other_server(
                    setup.source, setup.address, checkpoint.server, server, by_gtid=False
                )
            start = resumed(checkpoint)
            if follow and start.position is not None:
                # When everything is copied, the present ghosts may have replaced their tables.
                place = start.position.binlog.key
                ghosts = OnlineDdlStore(meta)
                await record_ghosts(setup, server, start.position, place, ghosts, first=True)
            return start
        except MySQLError as error:
            raise refusal(setup.address, error, source=setup.source) from error


async def begun_copy(source: str, meta: MetaStore) -> CopyStart:
    """Return a source's members and position as recorded, without a query to the source."""
    checkpoint = await meta.load(source)
    if checkpoint is None:
        return CopyStart((), None, None)
    return resumed(checkpoint)


def resumed(checkpoint: Checkpoint) -> CopyStart:
    """Return the members and the position of a checkpoint."""
    members = tuple(
        CopyMember(record.member.name, record.target, record.held.structure)
        for record in checkpoint.members
        if record.held.structure is not None
    )
    saved = saved_position(checkpoint) if checkpoint.file else None
    return CopyStart(members, saved, checkpoint.server)


async def visible_binlog_end(upstream: Connection, *, needed: bool) -> BinlogEnd | None:
    """Return the present end of a binlog, if the account may see it.

    Returns None if the server writes no binlog; unless ``needed``, also if the account lacks the
    privilege. Raises DatabaseUnavailableError or the server's error.
    """
    try:
        return await binlog_end(upstream)
    except MySQLError as error:
        if error_code(error) in MISSING_PRIVILEGE and not needed:
            return None
        raise


async def members_of(setup: SourceSetup, upstream: Connection) -> list[MemberRecord]:
    """Return the present shards of a source. Raises RouteError or the server's error."""
    targets = {
        name: TableName(target.schema, target.table)
        for name in await list_tables(upstream)
        if (target := setup.router.route(*_pair(name)))
    }
    structures = await read_tables(upstream, [*targets])
    return [
        MemberRecord(
            Member(setup.source, name),
            targets[name],
            version=0,
            since=0,
            held=KnownStructure(structures[name], Provenance.READ),
        )
        for name in targets
        if name in structures
    ]


def _pair(name: TableName) -> tuple[str, str]:
    return name.schema, name.table


def _snapshot_place(address: DatabaseAddress) -> SnapshotPlace | None:
    with closing(SourceStream(address)) as stream:
        return stream.begin_snapshot()


async def _fresh(
    setup: SourceSetup, upstream: Connection, server: ServerIdentity, *, follow: bool
) -> Checkpoint:
    while True:
        members = await members_of(setup, upstream)
        end = await visible_binlog_end(upstream, needed=follow)
        place = await anyio.to_thread.run_sync(_snapshot_place, setup.address)
        if place is not None and end is not None:
            end = BinlogEnd(place.file, place.offset)
        found = {name for name in await list_tables(upstream) if setup.router.route(*_pair(name))}
        # A table created after the list of members was read, but before the position, would be
        # neither copied nor found in the binlog.
        if found == {record.member.name for record in members}:
            break
    if end is None and follow:
        raise fault("source.no-binlog", source=setup.source)
    end = end or BinlogEnd("", 0)
    at = BinlogPosition(end.file, end.offset)
    return Checkpoint(
        source=setup.source,
        file=end.file,
        offset=end.offset,
        gtid=end.gtid or await reported_gtids(upstream, server, at),
        server=server,
        anchor=await anchor_before(setup, server, end.file) if follow else None,
        members=tuple(members),
        low_watermarks=(),
    )
