"""The start position of a source: its checkpoint, or the start in the task file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

import structlog
from pymysql.err import MySQLError

from actors.errors.faults import FatalError, fault, refuse_clash
from actors.errors.refusals import refusal
from actors.mailboxes.messages import GroupSaved
from actors.reading.binlog_lookups import anchor_before, look_up, reported_gtids
from actors.reading.source_faults import refuse_other_server
from actors.reading.source_relay import begin_relay
from actors.reading.uncopied_members import uncopied_members
from actors.saved.lock_state import load_group
from actors.saved.saved_position import saved_position
from actors.setup.task_setup import SourceSetup
from actors.sharding.modes import SHARD_MODES
from actors.sharding.shard_mode import ShardMode
from actors.task.startup.added_tables import add_tables
from actors.task.startup.changed_task import refuse_missed
from actors.task.startup.gtid_start import start_by_gtid
from actors.task.startup.past_statements import created_between
from actors.task.startup.structures_at_start import (
    names_at_start,
    note_structures,
    tables_at_end,
    targets_of_changed,
)
from replicator.binlog.errors import BinlogError
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.stream.gtid_positions import first_since, gtids_at
from replicator.downstream.meta.checkpoint import Checkpoint, MetaStore
from replicator.downstream.meta.chunks import CopyStore
from replicator.downstream.meta.decisions import DecisionRecord
from replicator.downstream.meta.declared_structures import DeclaredStructureStore, is_needed
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.connection.malformed_answers import parsing_answer
from replicator.mysql.errors import NO_SUCH_TABLE, error_code
from replicator.mysql.names import Member, TableName
from replicator.mysql.server.binlog_end import binlog_end
from replicator.mysql.server.identity import ServerIdentity, server_identity
from replicator.routing.routes import unused_routes
from replicator.schema.registry.registry import CopyState, SchemaRegistry
from replicator.schema.structure.inspection import list_tables
from replicator.watermark import Watermark

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SourceStart:
    """The state from which a source starts.

    Attributes:
        resume: boundary to save until the source advances; None if only a GTID set is known.
        groups, watermarks: by target.
        high_watermarks: by target, the highest watermark of any bucket.
        first: whether nothing is saved of the source, because it was never read.
    """

    read_from: SourcePosition | GtidStart
    resume: SourcePosition | None
    server: ServerIdentity
    groups: dict[int, GroupSaved]
    low_watermarks: dict[int, Watermark]
    high_watermarks: dict[int, Watermark]
    first: bool = False


async def load_start(
    setup: SourceSetup, registry: SchemaRegistry, meta: MetaStore, blocked: Set[TableName]
) -> SourceStart:
    """Return the state to start from, and register members and structures.

    Nothing is written to ``blocked`` targets. Raises FatalError if there is no start, or the start
    does not fit the server or the task file. If nothing is saved of the source, this is a fault of
    the whole task, because the targets that its shards share with others are unknown.
    """
    checkpoint = await meta.load(setup.source)
    try:
        return await _load(setup, registry, meta, checkpoint, blocked)
    except FatalError as error:
        if checkpoint is None:
            error.scope = None
        raise


async def _load(
    setup: SourceSetup,
    registry: SchemaRegistry,
    meta: MetaStore,
    checkpoint: Checkpoint | None,
    blocked: Set[TableName],
) -> SourceStart:
    mode = SHARD_MODES[meta.shard_mode]
    decided = await mode.decisions(meta)
    refuse_missed(setup.source, checkpoint, decided)
    upstream = Connection(setup.address)
    try:
        await _tell(setup, registry, meta, checkpoint)
        server = await server_identity(upstream)
        if checkpoint is not None and checkpoint.file and checkpoint.server.is_same(server):
            position = BinlogPosition(checkpoint.file, checkpoint.offset)
            known = await _gtids(setup, upstream, server, position, checkpoint.gtid)
            checkpoint = replace(checkpoint, gtid=known)
        tables = await list_tables(upstream)
        _report_unused(setup, tables)
        if checkpoint is not None:
            start = _from_checkpoint(setup, registry, checkpoint, server)
            begin_relay(setup, server, start.read_from)
            await refuse_uncopied(
                setup, registry, meta, upstream, server, start.read_from, tables, blocked
            )
            await _settle(setup, registry, meta, upstream, checkpoint, start)
        else:
            start = await _fresh(setup, registry, meta, upstream, server)
            start = replace(start, groups=_first_groups(setup, registry, start, mode, decided))
        for _, target in registry.targets():
            refuse_clash(registry, target, f"source {setup.source}")
        return start
    except MySQLError as error:
        raise refusal(setup.address, error, source=setup.source) from error
    finally:
        upstream.close()


async def _tell(
    setup: SourceSetup, registry: SchemaRegistry, meta: MetaStore, checkpoint: Checkpoint | None
) -> None:
    """Register the operator's declarations, except those that the checkpoint already has.

    The declarations that it has are deleted.
    """
    store = DeclaredStructureStore(meta)
    saved = (
        BinlogPosition(checkpoint.file, checkpoint.offset).key
        if checkpoint and checkpoint.file
        else 0
    )
    members = {record.member for record in checkpoint.members} if checkpoint else set()
    for declared in await store.load(setup.source):
        # A declaration for an uncopied table allows following the table, until it is a member.
        if is_needed(declared, checkpoint, saved) or declared.member not in members:
            registry.declare(declared.member, declared.since, declared.structure)
        else:
            await store.forget(declared)


async def load_stopped(
    source: str, registry: SchemaRegistry, meta: MetaStore
) -> BinlogPosition | None:
    """Return the saved position of a source that is not read now; None if nothing is saved.

    Its saved members are registered, because the effects of other sources' statements on a target
    depend on them. The server is not queried.
    """
    checkpoint = await meta.load(source)
    if checkpoint is None:
        return None
    _join_members(registry, checkpoint)
    return BinlogPosition(checkpoint.file, checkpoint.offset) if checkpoint.file else None


def _join_members(registry: SchemaRegistry, checkpoint: Checkpoint) -> dict[int, dict[int, int]]:
    """Register the members of a checkpoint; return their versions by target."""
    members: dict[int, dict[int, int]] = {}
    for record in checkpoint.members:
        number = registry.join(record.member, record.target)
        registry.learn(number, record.since, record.held)
        if record.copying is not CopyState.COPIED:
            registry.defer(number, record.copying)
        members.setdefault(registry.target(record.target), {})[number] = record.version
    return members


def _from_checkpoint(
    setup: SourceSetup, registry: SchemaRegistry, checkpoint: Checkpoint, server: ServerIdentity
) -> SourceStart:
    refuse_other_server(
        setup.source, setup.address, checkpoint.server, server, by_gtid=setup.use_gtid
    )
    if not checkpoint.file:
        raise fault("source.no-start", "without-binlog", source=setup.source)
    members = _join_members(registry, checkpoint)
    states = {registry.target(name): load_group(text) for name, text in checkpoint.groups}
    position = saved_position(checkpoint)
    return SourceStart(
        # By file and position even with `enable-gtid`: the binlog may have later transactions
        # without a GTID,
        # or with a lower one, which a start by GTID would skip.
        read_from=position,
        resume=position,
        server=server,
        groups={
            target: GroupSaved(tuple(members.get(target, {}).items()), states.get(target))
            for target in {*members, *states}
        },
        low_watermarks={
            registry.target(name): Watermark(*watermark)
            for name, watermark in checkpoint.low_watermarks
        },
        high_watermarks={
            registry.target(name): Watermark(*watermark)
            for name, watermark in checkpoint.high_watermarks
        },
    )


async def _settle(
    setup: SourceSetup,
    registry: SchemaRegistry,
    meta: MetaStore,
    upstream: Connection,
    checkpoint: Checkpoint,
    start: SourceStart,
) -> None:
    """Ask the server for structures that the checkpoint only guesses."""
    names = [r.member.name for r in checkpoint.members if not r.held.known]
    if names:
        found = await tables_at_end(setup, upstream, start.server, start.read_from)
        place = BinlogPosition(checkpoint.file, checkpoint.offset).key - 1
        there = [name for name in names if name in found.tables]
        targets = await targets_of_changed(meta.connection, setup.source, registry, found)
        note_structures(setup.source, registry, found, there, place, targets)


async def _fresh(
    setup: SourceSetup,
    registry: SchemaRegistry,
    meta: MetaStore,
    upstream: Connection,
    server: ServerIdentity,
) -> SourceStart:
    start = await _named_start(setup, upstream, server)
    if isinstance(start, SourcePosition):
        known = await _gtids(setup, upstream, server, start.binlog, start.gtid)
        anchor = await anchor_before(setup, server, start.binlog.file)
        start = replace(start, gtid=known, anchor=anchor)
        resume: SourcePosition | None = start
    else:
        resume = await start_by_gtid(setup, upstream, server, start)
        start = resume or start
    begin_relay(setup, server, start)
    found = await tables_at_end(setup, upstream, server, start)
    named = {change.table for change in found.changes if change.table is not None}
    names = names_at_start(found, (n for n in named if setup.router.route(n.schema, n.table)))
    members: dict[int, dict[int, int]] = {}
    for name in sorted(names):
        target = setup.router.route(name.schema, name.table)
        assert target is not None
        number = registry.join(Member(setup.source, name), TableName(target.schema, target.table))
        members.setdefault(registry.target_of(number), {})[number] = 0
    targets = await targets_of_changed(meta.connection, setup.source, registry, found)
    note_structures(setup.source, registry, found, sorted(names), 0, targets)
    return SourceStart(
        read_from=start,
        resume=resume,
        server=server,
        groups={t: GroupSaved(tuple(versions.items())) for t, versions in members.items()},
        low_watermarks={},
        high_watermarks={},
        first=True,
    )


def _first_groups(
    setup: SourceSetup,
    registry: SchemaRegistry,
    start: SourceStart,
    mode: ShardMode,
    decided: Sequence[DecisionRecord],
) -> dict[int, GroupSaved]:
    """Return the groups of a source without saved state."""
    members = (
        (registry.member(member).name, registry.target_name(target))
        for target, saved in start.groups.items()
        for member, _ in saved.members
    )
    key = start.resume.binlog.key if start.resume is not None else 0
    states = mode.first_groups(decided, members, setup.source, key)
    return {
        target: replace(saved, state=states.get(registry.target_name(target)))
        for target, saved in start.groups.items()
    }


async def _gtids(
    setup: SourceSetup,
    upstream: Connection,
    server: ServerIdentity,
    position: BinlogPosition,
    known: str,
) -> str:
    """Return the GTIDs executed at a position, unless they are ``known``; empty if undetermined.

    Raises DatabaseUnavailableError or the server's error.
    """
    if known:
        return known
    if not setup.use_gtid:
        return await reported_gtids(upstream, server, position)
    try:
        found = await look_up(setup, server, upstream, partial(gtids_at, position=position))
    except BinlogError:
        return ""
    return found or ""


async def _named_start(
    setup: SourceSetup, upstream: Connection, server: ServerIdentity
) -> SourcePosition | GtidStart:
    meta = setup.meta
    if meta is None:
        found = await binlog_end(upstream)
        end = f"binlog-name: {found.file}, binlog-pos: {found.offset}" if found else "…"
        raise fault("source.no-start", "no-position", source=setup.source, end=end)
    if meta.start_time is not None:
        found_at = await position_at(setup, upstream, server, meta.start_time)
        log.info(
            "source.start-found",
            source=setup.source,
            time=meta.start_time.isoformat(),
            position=str(found_at),
        )
        return SourcePosition(found_at)
    if meta.binlog_gtid and (setup.use_gtid or not meta.binlog_name):
        return GtidStart(meta.binlog_gtid)
    return SourcePosition(BinlogPosition(meta.binlog_name, meta.binlog_pos))


def _report_unused(setup: SourceSetup, tables: list[TableName]) -> None:
    names = [(name.schema, name.table) for name in tables]
    for unused in unused_routes(setup.routes, names):
        log.warning("route.unused", source=setup.source, message=unused.message)
    if not any(setup.router.route(*name) for name in names):
        log.warning("source.no-tables", source=setup.source, tables=len(names))


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
    """Raise FatalError if one of the source's ``tables`` is no member but should be.

    Tables of ``blocked`` targets are ignored, because nothing is written to these targets. The
    members are already in ``registry``. A table created by a statement after ``read_from`` will
    become one. Raises TablesAddedError if some could be made members; also TransientError,
    DatabaseUnavailableError, the server's error.
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
        and not registry.is_declared(Member(setup.source, name))
    }
    for name in [*strangers]:
        try:
            # A server may show a table before its CREATE is in the binlog, and locks the table
            # until then.
            await upstream.fetch(f"SELECT 1 FROM {name.quoted} LIMIT 0")
        except MySQLError as error:
            if error_code(error) not in NO_SUCH_TABLE:
                raise
            # The table was dropped or renamed since the tables were listed.
            del strangers[name]
    end = await binlog_end(upstream) if strangers else None
    if end is None:
        return
    place = BinlogPosition(end.file, end.offset)
    lost = strangers.keys() - await created_between(setup, server, read_from, place)
    if lost and copied and isinstance(read_from, SourcePosition):
        missing = {name: strangers[name] for name in lost}
        await add_tables(setup, meta, upstream, server, read_from, missing)
    if lost:
        raise uncopied_members(
            setup.source,
            {name: strangers[name] for name in lost},
            "a table was never copied" if copied else "a table was not followed before",
            f"source {setup.source}, saved at {read_from}",
            unread=True,
        )


async def position_at(
    setup: SourceSetup, upstream: Connection, server: ServerIdentity, moment: datetime
) -> BinlogPosition:
    """Return the start of the first transaction written at ``moment`` or later; otherwise the end.

    Times are by the clock of the source, in whole seconds. Raises FatalError if the binlog does not
    reach back so far, or has no such times; BinlogError, DatabaseUnavailableError, the server's
    error.
    """
    wanted = int(moment.timestamp())
    rows = await upstream.fetch("SELECT UNIX_TIMESTAMP()")
    with parsing_answer("SELECT UNIX_TIMESTAMP()"):
        clock = int(rows[0][0])
    if wanted > clock:
        raise _no_start(setup, moment, f"it is only {_shown(clock)} by its clock", "future")
    rows = await upstream.fetch("SHOW BINARY LOGS")
    with parsing_answer("SHOW BINARY LOGS"):
        files = [str(row[0]) for row in rows]
    file = await _file_before(setup, server, files, moment)
    found = await look_up(setup, server, upstream, partial(first_since, file=file, moment=wanted))
    if found is None:
        why = "its binlog does not show where transactions begin"
        raise _no_start(setup, moment, why, "transactions")
    return found


async def _file_before(
    setup: SourceSetup, server: ServerIdentity, files: list[str], moment: datetime
) -> str:
    """Return the newest file started before a time; its transactions may be older, never newer."""
    wanted = int(moment.timestamp())
    begun = await _begun(setup, server, files[0], moment) if files else 0
    if not files or begun >= wanted:
        oldest = f"its oldest binlog file, {files[0]}, begins at {_shown(begun)}" if files else ""
        raise _no_start(setup, moment, oldest or "it has no binlog", "past")
    first, last = 0, len(files)
    while last - first > 1:
        middle = (first + last) // 2
        if await _begun(setup, server, files[middle], moment) < wanted:
            first = middle
        else:
            last = middle
    return files[first]


async def _begun(setup: SourceSetup, server: ServerIdentity, file: str, moment: datetime) -> int:
    anchor = await anchor_before(setup, server, file)
    if anchor is None:
        raise _no_start(setup, moment, f"its binlog file {file} can't be read", "file")
    return anchor.created


def _no_start(setup: SourceSetup, moment: datetime, why: str, kind: str) -> FatalError:
    """Return the fault that a time is no start; ``kind`` is as in the catalogue of faults."""
    return fault(
        "source.no-start",
        "time",
        source=setup.source,
        moment=moment,
        reason=why,
        kind=kind,
    )


def _shown(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
