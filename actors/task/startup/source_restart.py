"""Starts a source again at the present position of its binlog, while its targets keep their rows.

The events between the saved position and the present one can't be read any more. So the targets of
the source are reconciled, and until then all sources of these targets are in safe mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

import anyio.to_thread
import structlog
from pymysql.err import MySQLError

from actors.errors.faults import FatalError, TransientError, fault
from actors.errors.refusals import refusal
from actors.reading.binlog_lookups import anchor_before, reported_gtids
from actors.reading.source_faults import other_names
from actors.saved.lock_state import dump_group, histories, load_group
from actors.setup.task_setup import SourceSetup
from actors.sharding.modes import SHARD_MODES
from actors.task.failover.failover import begin_at
from actors.task.resources.resources import Resources
from actors.task.startup.structures_at_start import tables_at_end
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.checks.schema.agreement import member_disagreements
from replicator.downstream.meta.checkpoint import CHECKPOINT_TABLE, Checkpoint, MetaStore
from replicator.downstream.meta.decisions import DecisionRecord
from replicator.downstream.meta.late_cascades import LATE_CASCADE_TABLE
from replicator.downstream.meta.reconciliations import (
    RECONCILIATION_TABLE,
    queue_reconciliation,
)
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.asyncio_connection import Connection, Transaction
from replicator.mysql.errors import error_text
from replicator.mysql.names import Member, TableName
from replicator.mysql.server.binlog_end import BinlogEnd, binlog_end
from replicator.mysql.server.identity import ServerIdentity, server_identity
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.schema.registry.registry import (
    CopyState,
    KnownStructure,
    MemberRecord,
    Provenance,
)
from replicator.schema.structure.structure import Table

WRITERS_SECONDS = 60
"""Seconds to wait for transactions that have written to a shard."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class PresentShards:
    """The shards of a source at a position of its binlog, unchanged since.

    Attributes:
        tables: the shards with their structures.
        targets: by shard, its target.
    """

    position: SourcePosition
    server: ServerIdentity
    tables: Mapping[TableName, Table]
    targets: Mapping[TableName, TableName]

    def records(self, source: str) -> Iterator[MemberRecord]:
        """Yield the members of the source, without a version."""
        since = self.position.binlog.key - 1
        for name in sorted(self.tables):
            held = KnownStructure(self.tables[name], Provenance.READ)
            yield MemberRecord(Member(source, name), self.targets[name], 0, since, held)


async def restart_sources(resources: Resources) -> None:
    """Start the sources that the operator has requested at their present positions.

    Raises FatalError if that can't be exact, TransientError and DatabaseUnavailableError.
    """
    meta = resources.meta
    for source in await meta.to_begin_again():
        setup = resources.setups.get(source)
        checkpoint = await meta.load(source)
        if setup is None or checkpoint is None or source in resources.blocked.sources:
            continue
        with closing(Connection(setup.address)) as upstream:
            try:
                await _begin_again(setup, meta, checkpoint, upstream)
            except FatalError:
                # The operator must request it again.
                await meta.ask_to_begin_again(source, asked=False)
                raise
            except MySQLError as error:
                raise refusal(setup.address, error, source=source) from error


async def _begin_again(
    setup: SourceSetup, meta: MetaStore, checkpoint: Checkpoint, upstream: Connection
) -> None:
    source = setup.source
    server = await server_identity(upstream)
    if not checkpoint.server.names_alike(server):
        raise other_names(source, f"source {source} has another server", f"source {source}")
    if any(record.copying is not CopyState.COPIED for record in checkpoint.members):
        raise not_begun_again(source, "shards of it are being copied")
    shards = await _present_shards(setup, upstream, server)
    others = [await meta.load(other) for other in await meta.sources() if other != source]
    known = [record for other in (*others, checkpoint) if other for record in other.members]
    mode = SHARD_MODES[meta.shard_mode]
    decided = await mode.decisions(meta)
    after = replace(checkpoint, members=tuple(shards.records(source)), open_items=0)
    if mode.equal_structures:
        after = agreed(after, known, decided)
    else:
        left = changed_members(checkpoint, after)
        gone = {record.member.name for record in left}
        for target in sorted({record.target for record in left}):
            of_it = [record.member for record in left if record.target == target]
            await mode.leave(meta, target, of_it)
        after = replace(after, groups=tuple(_without(checkpoint.groups, gone)))
    await begin_at(
        setup,
        meta,
        checkpoint,
        server,
        shards.position,
        partial(_save, meta=meta, before=checkpoint, after=after, known=known, shards=shards),
    )
    log.warning(
        "source.begun-again",
        source=source,
        former_position=f"{checkpoint.file}:{checkpoint.offset}",
        position=str(shards.position.binlog),
        targets=sorted({str(record.target) for record in after.members}),
    )


async def _save(
    transaction: Transaction,
    *,
    meta: MetaStore,
    before: Checkpoint,
    after: Checkpoint,
    known: Sequence[MemberRecord],
    shards: PresentShards,
) -> None:
    await meta.write_members(transaction, before, after)
    await transaction.fetch(
        f"DELETE FROM {meta.table(LATE_CASCADE_TABLE)} WHERE source = %s", (after.source,)
    )
    await transaction.fetch(
        f"UPDATE {meta.table(CHECKPOINT_TABLE)} SET gtid = %s, open_items = 0, begin_again = 0"
        " WHERE source = %s",
        (shards.position.gtid, after.source),
    )
    targets = {record.target for record in (*before.members, *after.members)}
    for target in sorted(targets):
        present = {r.member.source for r in known if r.target == target} | {after.source}
        queue = meta.table(RECONCILIATION_TABLE)
        await queue_reconciliation(transaction, queue, target, safe_sources=present)


def agreed(
    after: Checkpoint, known: Iterable[MemberRecord], decided: Sequence[DecisionRecord]
) -> Checkpoint:
    """Return a checkpoint whose groups have the versions of their targets.

    ``after`` has the present members; ``known`` are the saved members of all sources. Raises
    FatalError if a member does not have the structure of its target's version.
    """
    past = histories(decided)
    newest = {target: max(history.versions, default=0) for target, history in past.items()}
    for target in {record.target for record in after.members}:
        if target in past and past[target].pending is not None:
            raise not_begun_again(after.source, f"a schema change of {target} is decided")
    models: dict[TableName, MemberRecord] = {}
    for record in known:
        if record.version == newest.get(record.target, 0) and record.held.structure is not None:
            models.setdefault(record.target, record)
    members = []
    for record in after.members:
        version, model = newest.get(record.target, 0), models.get(record.target)
        words = _disagreements(model, record) if model is not None else ()
        if words:
            assert model is not None
            raise fault(
                "source.not-begun-again",
                "other-structure",
                source=after.source,
                member=record.member.name,
                target=record.target,
                other=model.member,
                differences="; ".join(words),
            )
        members.append(replace(record, version=version))
    pairs = [(record.member.name, record.target) for record in members]
    groups = SHARD_MODES["pessimistic"].first_groups(decided, pairs)
    texts = tuple((target, dump_group(state)) for target, state in groups.items())
    return replace(after, members=tuple(members), groups=texts)


def _disagreements(model: MemberRecord, record: MemberRecord) -> list[str]:
    assert model.held.structure is not None
    assert record.held.structure is not None
    return member_disagreements(model.held.structure, record.held.structure)


def changed_members(before: Checkpoint, after: Checkpoint) -> list[MemberRecord]:
    """Return the former members that are gone, have another target or another structure."""
    present = {record.member.name: record for record in after.members}
    return [
        record
        for record in before.members
        if (now := present.get(record.member.name)) is None
        or now.target != record.target
        or record.held.structure is None
        or _disagreements(record, now)
    ]


def _without(
    groups: Iterable[tuple[TableName, str]], gone: set[TableName]
) -> Iterator[tuple[TableName, str]]:
    for target, text in groups:
        state = load_group(text)
        members = tuple(member for member in state.members if member[0] not in gone)
        same = len(members) == len(state.members)
        yield target, text if same else dump_group(replace(state, members=members))


async def _present_shards(
    setup: SourceSetup, upstream: Connection, server: ServerIdentity
) -> PresentShards:
    """Read the shards at a position of the binlog.

    Raises TransientError if one changes meanwhile.
    """
    try:
        end = await anyio.to_thread.run_sync(_snapshot_end, setup.address)
        exact = end is not None
        end = end or await binlog_end(upstream)
        anchor = await anchor_before(setup, server, end.file) if end else None
        if end is None or anchor is None:
            raise not_begun_again(setup.source, "it writes no binlog, or its binlog can't be read")
        position = BinlogPosition(end.file, end.offset)
        gtid = end.gtid or await reported_gtids(upstream, server, position)
        start = SourcePosition(position, gtid=gtid, anchor=anchor)
        found = await tables_at_end(setup, upstream, server, start)
        if found.changes:
            raise TransientError(f"shards of source {setup.source} are being changed")
        if not exact:
            tables = list(found.tables)
            await anyio.to_thread.run_sync(_await_writers, setup.address, tables)
    except MySQLError as error:
        raise refusal(setup.address, error, source=setup.source) from error
    targets = {}
    for name in found.tables:
        target = setup.router.route(name.schema, name.table)
        assert target is not None, f"{name} is routed"
        targets[name] = TableName(target.schema, target.table)
    return PresentShards(start, server, found.tables, targets)


def _snapshot_end(address: DatabaseAddress) -> BinlogEnd | None:
    """Return a position before which all transactions are visible, if the server knows one."""
    with closing(SourceStream(address)) as stream:
        place = stream.begin_snapshot()
    return BinlogEnd(place.file, place.offset) if place is not None and place.exact else None


def _await_writers(address: DatabaseAddress, tables: Iterable[TableName]) -> None:
    """Wait until other sessions see all changes of these tables that the binlog has."""
    with closing(SourceStream(address)) as stream:
        for name in tables:
            try:
                stream.await_writers(name.quoted.encode(), WRITERS_SECONDS)
            except MySQLError as error:
                raise TransientError(
                    f"{address}: {name} can't be locked for a moment: {error_text(error)}"
                ) from error


def not_begun_again(source: str, reason: str) -> FatalError:
    """Return the fault that a source can't be started at its present position."""
    return fault("source.not-begun-again", "busy", source=source, reason=reason)
