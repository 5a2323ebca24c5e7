"""Later copies of shards whose former structure can no longer be read.

The statements that changed the structure are in the binlog and are executed on the target.
Meanwhile, the shard's rows from the binlog are applied in safe mode. When the saved position is
after every statement that the source has logged for the shard, the shard has the target's
structure. Then it is copied from that position, in full, as at the beginning of a task: the rows
read are not older than the applied ones, and newer ones are in the binlog and applied later.

Another target may hold the saved position back. So it is enough if the shard's own target has
everything up to a later position: the copy begins at that position, and earlier events are skipped
when they are read again. The shard's structure at that position is saved separately, since the
saved structure must fit the rows that are read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog
from pymysql.err import MySQLError

from actors.copying.start import CopyMember, CopyStart, resumed
from actors.copying.statements import CopyStatements
from actors.errors.faults import FatalError, TaskParts, fault
from actors.errors.refusals import refusal
from actors.reading.ghosts_at_start import record_ghosts
from actors.reading.source_faults import refuse_other_server
from actors.setup.task_setup import SourceSetup, columns_of
from replicator.ddl.online.online_ddl import GhostHistory
from replicator.ddl.parser.statement import StatementKind
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.chunks import CopyStore, LaterCopy
from replicator.downstream.meta.online_ddl_records import OnlineDdlStore
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.mysql.server.identity import server_identity
from replicator.pipeline.copy.copy_plan import keyed_by_target
from replicator.schema.effects.traced_columns import TableChange
from replicator.schema.registry.registry import CopyState, MemberRecord
from replicator.schema.structure.inspection import read_table, read_target
from replicator.schema.structure.structure import Table

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class DeferredCopy:
    """The shards of a source that are copied later.

    Attributes:
        start: the shards that can be copied now.
        held: shards of blocked targets.
        waiting: the other shards, which can't be copied yet.
        look_at: key of the saved position from which another check can help.
        targets: another check can also help as soon as one of these targets has everything up to
            ``look_at``.
    """

    start: CopyStart
    held: Sequence[TableName] = ()
    waiting: Sequence[TableName] = ()
    look_at: int = 0
    targets: frozenset[TableName] = frozenset()


async def deferred_copy(
    setup: SourceSetup,
    meta: MetaStore,
    store: CopyStore,
    blocked: TaskParts,
    applied: Mapping[TableName, int],
) -> DeferredCopy | None:
    """Return the later copies of a source whose first copy is done; None if there are none.

    Shards that can be copied now are recorded as begun. Raises FatalError, TransientError,
    DatabaseUnavailableError.

    Args:
        applied: for each target, the key of a binlog position up to which it has everything.
    """
    checkpoint = await meta.load(setup.source)
    if checkpoint is None or setup.source in blocked.sources:
        return None
    uncopied = [r for r in checkpoint.members if r.copying is not CopyState.COPIED]
    if not uncopied:
        return None
    found = [record for record in uncopied if record.target not in blocked.targets]
    held = [record.member.name for record in uncopied if record.target in blocked.targets]
    if not found:
        return DeferredCopy(CopyStart((), None, None), held)
    upstream = Connection(setup.address)
    try:
        server = await server_identity(upstream)
        refuse_other_server(setup.source, setup.address, checkpoint.server, server, by_gtid=False)
        start = resumed(checkpoint)
        assert start.position is not None, f"{setup.source} is followed from no position"
        place = start.position.binlog.key
        recorded = OnlineDdlStore(meta)
        await record_ghosts(setup, server, start.position, place, recorded, first=False)
        waiting = [record for record in found if record.copying is not CopyState.AGAIN]
        present = {r.member.name: await read_table(upstream, r.member.name) for r in waiting}
        ghosts = GhostHistory(await recorded.load(setup.source))
        statements = CopyStatements(setup, server, start.position, ghosts)
        if waiting:
            await statements.read(upstream)
    except MySQLError as error:
        raise refusal(setup.address, error, source=setup.source) from error
    finally:
        upstream.close()
    structures, later, targets = _ready(waiting, statements.changes, present, applied)
    tables = structures | {name: copy.structure for name, copy in later.items()}
    doubling = [r for r in waiting if await _would_double(setup, meta, r, tables)]
    if doubling:
        await _have_emptied(store, doubling)
        for record in doubling:
            structures.pop(record.member.name, None)
            later.pop(record.member.name, None)
    if structures or later:
        await store.begin_again(setup.source, structures, later)
        reach(Failpoint.COPY_BEGUN_AGAIN)
    begun = {r.member.name: r for r in found if r.copying is CopyState.AGAIN}
    known = await store.later_copies(setup.source)
    later |= {name: copy for name, copy in known.items() if name in begun}
    structures |= {n: r.held.structure for n, r in begun.items() if r.held.structure is not None}
    members = _members(found, structures, later)
    if members:
        names = sorted(str(member.name) for member in members)
        log.info("copy.recopied", source=setup.source, members=names)
    return DeferredCopy(
        CopyStart(members, start.position, checkpoint.server),
        held,
        [r.member.name for r in found if r.member.name not in {m.name for m in members}],
        statements.known_to,
        targets,
    )


def _ready(
    waiting: Sequence[MemberRecord],
    changes: Sequence[TableChange],
    present: Mapping[TableName, Table | None],
    applied: Mapping[TableName, int],
) -> tuple[dict[TableName, Table], dict[TableName, LaterCopy], frozenset[TableName]]:
    """Return the shards to copy now: from the saved position, and from later positions.

    The third result has the targets whose shards can be copied when the targets have everything.
    Raises FatalError.
    """
    structures: dict[TableName, Table] = {}
    later: dict[TableName, LaterCopy] = {}
    targets = set()
    for record in waiting:
        name = record.member.name
        own = [change for change in changes if _concerns(change, name)]
        known_to = applied.get(record.target, 0)
        in_place = _keeps_its_name(name, own)
        if own and not (in_place and max(change.at for change in own) < known_to):
            targets |= {record.target} if in_place else set()
            continue
        structure = present[name]
        if structure is None:
            raise _gone(record)
        if own:
            later[name] = LaterCopy(known_to, structure)
        else:
            structures[name] = structure
    return structures, later, frozenset(targets)


def _members(
    records: Sequence[MemberRecord],
    structures: Mapping[TableName, Table],
    later: Mapping[TableName, LaterCopy],
) -> tuple[CopyMember, ...]:
    """Return the members that are being copied again, some from a ``later`` position."""
    members = []
    for record in records:
        name = record.member.name
        if name in later:
            members.append(
                CopyMember(name, record.target, later[name].structure, later[name].place)
            )
        elif name in structures:
            members.append(CopyMember(name, record.target, structures[name]))
    return tuple(members)


def _keeps_its_name(name: TableName, changes: Sequence[TableChange]) -> bool:
    """Return whether a shard is the same table, under the same name, after these statements."""
    return all(
        change.table == name
        and change.statement.kind in _IN_PLACE
        and not (change.trouble or change.statement.error or change.statement.renames)
        for change in changes
    )


_IN_PLACE = frozenset(
    {
        StatementKind.ALTER_TABLE,
        StatementKind.CREATE_INDEX,
        StatementKind.DROP_INDEX,
        StatementKind.TRUNCATE_TABLE,
    }
)


def _concerns(change: TableChange, name: TableName) -> bool:
    """Return whether a statement may have changed a table, its rows or its name."""
    statement = change.statement
    if statement.temporary:
        return False
    if statement.kind is StatementKind.DROP_DATABASE:
        return change.table.schema == name.schema
    renamed = (TableName(table.schema, table.table) for pair in statement.renames for table in pair)
    return change.table == name or name in renamed


async def _would_double(
    setup: SourceSetup, meta: MetaStore, record: MemberRecord, tables: Mapping[TableName, Table]
) -> bool:
    """Return whether a copy would duplicate rows that the target already has.

    ``tables``: the structures of the shards that can be copied now.
    """
    structure = tables.get(record.member.name)
    if structure is None or record.copying is not CopyState.DEFERRED:
        return False
    target = await read_target(meta.connection, record.target)
    rules = columns_of({setup.source: setup})(record.member)
    return target is not None and not keyed_by_target(structure, target, rules)


async def _have_emptied(store: CopyStore, records: Sequence[MemberRecord]) -> None:
    """Mark the targets of these shards to be emptied, if all of their rows are copied ones.

    Raises FatalError if a target has other rows, DatabaseUnavailableError, FencedError.
    """
    ours = await store.began_empty()
    for record in records:
        if record.target not in ours:
            raise fault(
                "copy.shard-changed", "key-lost", member=record.member, target=record.target
            )
    await store.note_key_lost({record.target for record in records})


def _gone(record: MemberRecord) -> FatalError:
    return fault("copy.shard-changed", "gone", member=record.member, target=record.target)
