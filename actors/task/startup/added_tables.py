"""Tables that existed before the task followed them: they become shards, copied in the background.

The routes or the block-allow-list did not select such a table before, or the account could not see
it. It is saved with its structure as a shard without copied rows, and copied like any other
deferred shard (`actors.copying.deferred_copies`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import structlog

from actors.saved.lock_state import dump_group, load_group
from actors.setup.task_setup import SourceSetup
from actors.sharding.modes import SHARD_MODES
from actors.task.startup.past_statements import changes_between
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.downstream.meta.checkpoint import Checkpoint, MetaStore
from replicator.downstream.meta.chunks import CopyStore
from replicator.downstream.meta.decisions import DecisionRecord
from replicator.downstream.meta.row_owners import SavedOwners, note_rows_before, read_owners
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName
from replicator.mysql.server.binlog_end import binlog_end
from replicator.mysql.server.identity import ServerIdentity
from replicator.schema.registry.registry import (
    CopyState,
    KnownStructure,
    MemberRecord,
    Provenance,
)
from replicator.schema.structure.inspection import read_table, read_target
from replicator.schema.structure.structure import Table
from replicator.sharding.items import GroupState, MemberState
from replicator.watermark import Place

log = structlog.get_logger()


class TablesAddedError(Exception):
    """Tables have become shards: the run starts again from the saved state, and copies them."""


async def add_tables(
    setup: SourceSetup,
    meta: MetaStore,
    upstream: Connection,
    server: ServerIdentity,
    start: SourcePosition,
    tables: Mapping[TableName, TableName],
) -> None:
    """Save these tables of a copied source, each with its target, as shards to be copied.

    A table is skipped if its structure at ``start`` is not certain, or if its target has an open
    schema change, still has earlier rows of this table, or has no key but rows that the task has
    not written.

    Raises TablesAddedError if any were saved; FatalError, TransientError, DatabaseUnavailableError
    or the server's error.
    """
    copies = await CopyStore(meta).copies()
    checkpoint = await meta.load(setup.source)
    done = setup.source in copies and copies[setup.source].done
    if not done or checkpoint is None or checkpoint.shard_mode != meta.shard_mode:
        return
    owners = await read_owners(meta.connection, meta.schema, meta.task) or {}
    former = {(target, o.member) for target, saved in owners.items() for o in saved.owners}
    fresh = {
        name: target
        for name, target in tables.items()
        if (target, Member(setup.source, name)) not in former
    }
    fresh = await _without_others_rows(meta, fresh, owners)
    structures = await _certain(setup, upstream, server, start, fresh)
    mode = SHARD_MODES[meta.shard_mode]
    decided = await mode.decisions(meta)
    found = {
        name: (target, structures[name]) for name, target in fresh.items() if name in structures
    }
    targets = {target for target, _ in found.values()}
    first = mode.first_groups(decided, ((name, target) for name, (target, _) in found.items()))
    after = with_tables(checkpoint, found, targets - _open(checkpoint, decided, targets), first)
    added = [r for r in after.members if r not in checkpoint.members]
    if not added:
        return
    await meta.save_members([(checkpoint, after)])
    reach(Failpoint.TABLES_ADDED)
    names = sorted(str(record.member.name) for record in added)
    log.info("copy.tables-added", source=setup.source, members=names)
    raise TablesAddedError


async def _without_others_rows(
    meta: MetaStore,
    tables: Mapping[TableName, TableName],
    owners: Mapping[TableName, SavedOwners],
) -> dict[TableName, TableName]:
    """Return the tables except those whose target has no key but foreign rows.

    These are rows that the task has not written. For targets with a key, such rows are recorded, as
    at a first copy.
    """
    filled: set[TableName] = set()
    refused: set[TableName] = set()
    for name in set(tables.values()) - owners.keys():
        table = await read_target(meta.connection, name)
        if table is None or not await meta.connection.fetch(f"SELECT 1 FROM {name.quoted} LIMIT 1"):
            continue
        (refused if table.row_key is None else filled).add(name)
    await note_rows_before(meta, filled, ())
    for name in sorted(filled):
        log.warning("target.has-rows", target=str(name))
    return {name: target for name, target in tables.items() if target not in refused}


def with_tables(
    checkpoint: Checkpoint,
    tables: Mapping[TableName, tuple[TableName, Table]],
    targets: Iterable[TableName],
    first: Mapping[TableName, GroupState[TableName]],
) -> Checkpoint:
    """Return the checkpoint with more shards, without copied rows.

    Args:
        tables: the shards, each with its target and its structure.
        targets: the targets that can get shards.
        first: by target, the groups that these shards would form alone; empty if groups start
            without a state.
    """
    states = {name: load_group(text) for name, text in checkpoint.groups}
    allowed, records = set(targets), list(checkpoint.members)
    for name, (target, structure) in sorted(tables.items(), key=lambda item: item[0]):
        if target not in allowed:
            continue
        version = 0
        if target in states or target in first:
            there = states.get(target) or replace(first[target], members=())
            version = there.base
            members = (*there.members, (name, MemberState(version, Place(0, 0))))
            states[target] = replace(there, members=tuple(sorted(members)))
        held = KnownStructure(structure, Provenance.READ)
        member = Member(checkpoint.source, name)
        records.append(MemberRecord(member, target, version, 0, held, CopyState.LEFT_OUT))
    groups = tuple((name, dump_group(state)) for name, state in states.items())
    return replace(checkpoint, members=tuple(records), groups=groups)


def _open(
    checkpoint: Checkpoint, decided: Iterable[DecisionRecord], targets: Iterable[TableName]
) -> set[TableName]:
    """Return the targets with a schema change that not all shards of the source have finished."""
    versions: dict[TableName, int] = {}
    for record in decided:
        versions[record.target] = max(record.version, versions.get(record.target, 0))
    states = {name: load_group(text) for name, text in checkpoint.groups}
    return {
        name
        for name in targets
        if (there := states.get(name)) is not None
        and {state.version for _, state in there.members} | {versions.get(name, there.base)}
        != {there.base}
    }


async def _certain(
    setup: SourceSetup,
    upstream: Connection,
    server: ServerIdentity,
    start: SourcePosition,
    names: Iterable[TableName],
) -> dict[TableName, Table]:
    """Return the structures of tables that no statement after ``start`` may have changed."""
    found = {name: await read_table(upstream, name) for name in names}
    end = await binlog_end(upstream)
    if not found or end is None:
        return {}
    changes = await changes_between(setup, server, start, BinlogPosition(end.file, end.offset))
    return {
        name: table
        for name, table in found.items()
        if table is not None and not any(change.concerns(name) for change in changes)
    }
