"""A task file that has changed since the checkpoint: refusals, and members with other targets.

The saved state depends on the shard-mode and the routes of that time. Another mode counts the
versions of a target differently, so it can be accepted only if there is nothing left to count.
Under other routes, an open schema change would belong to another target, and rows that were applied
once could be applied again there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from actors.errors.faults import FatalError, fault
from actors.saved.lock_state import dump_group, histories, load_group
from actors.setup.task_setup import SourceSetup
from actors.sharding.modes import SHARD_MODES
from replicator.binlog.positions.position import BinlogPosition
from replicator.checks.schema.agreement import member_disagreements
from replicator.downstream.meta.checkpoint import Checkpoint, MetaStore
from replicator.downstream.meta.decisions import DecisionRecord, DecisionStore
from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import CopyState, MemberRecord
from replicator.schema.structure.structure import Table
from replicator.sharding.items import MemberState
from replicator.watermark import Place

log = structlog.get_logger()

_SHOWN = 5
"""Maximum number of moved tables that a message names."""


@dataclass(frozen=True, slots=True)
class Move:
    """A member whose route has changed; ``to`` is None if it is no longer replicated."""

    record: MemberRecord
    to: TableName | None

    def __str__(self) -> str:
        now = f"now to {self.to}" if self.to else "and is no longer replicated"
        return f"{self.record.member.name} went to {self.record.target}, {now}"


async def take_mode(meta: MetaStore) -> None:
    """Continue with another shard-mode than the saved one, with new version numbers.

    Raises FatalError if anything is open, or will be read again, or if the mode needs equal shards
    and they differ.
    """
    found = [await meta.load(source) for source in await meta.sources()]
    checkpoints = [c for c in found if c is not None and c.shard_mode != meta.shard_mode]
    if not checkpoints:
        return
    store = DecisionStore(meta)
    versions = _versions(await store.load())
    for checkpoint in checkpoints:
        reason = _open(checkpoint, versions)
        place = BinlogPosition(checkpoint.file, checkpoint.offset).key if checkpoint.file else 0
        if not reason and await store.unfinished(checkpoint.source, place):
            reason = "a schema change that is executed will be read again"
        if not reason and any(r.copying is not CopyState.COPIED for r in checkpoint.members):
            reason = "shards of it are being copied"
        if reason:
            raise _other_mode(meta, checkpoint, reason)
    if SHARD_MODES[meta.shard_mode].equal_structures:
        _refuse_unlike(meta, checkpoints)
    await store.begin_anew()
    former = sorted({checkpoint.shard_mode for checkpoint in checkpoints})
    log.info("task.other-mode", former=former, mode=meta.shard_mode)


def _refuse_unlike(meta: MetaStore, checkpoints: Sequence[Checkpoint]) -> None:
    first: dict[TableName, tuple[Member, Table]] = {}
    for checkpoint in checkpoints:
        for record in checkpoint.members:
            structure = record.held.structure
            if structure is None:
                continue
            other, its = first.setdefault(record.target, (record.member, structure))
            if words := member_disagreements(its, structure):
                reason = f"{record.member} differs from {other}: {'; '.join(words)}"
                raise _other_mode(meta, checkpoint, reason)


def _other_mode(meta: MetaStore, checkpoint: Checkpoint, reason: str) -> FatalError:
    return fault(
        "task.mode-changed",
        mode=meta.shard_mode,
        source=checkpoint.source,
        former=checkpoint.shard_mode,
        reason=reason,
        position=f"{checkpoint.file}:{checkpoint.offset}",
    )


def refuse_missed(
    source: str, checkpoint: Checkpoint | None, decided: Sequence[DecisionRecord]
) -> None:
    """Raise FatalError if a schema change was decided without the source.

    The source was not in the task file then, and its older rows would be skipped after the change.
    A group without a saved state starts at the version of its target. This version is too low if
    the target's next change has been decided but not yet executed.
    """
    groups = dict(checkpoint.groups) if checkpoint is not None else {}
    for name, history in histories(decided).items():
        last = max(history.versions, default=0)
        base = load_group(groups[name]).base if name in groups else last
        decided_items = {*history.versions, *([history.pending.version] if history.pending else ())}
        cutovers = {cutover.version for cutover in history.cutovers.get(source, ())}
        missed = sorted(v for v in decided_items - cutovers if v > base)
        if not missed:
            continue
        raise fault(
            "source.missed-ddl",
            target=name,
            version=missed[0],
            source=source,
            saved_at=f", saved at {checkpoint.file}:{checkpoint.offset}" if checkpoint else "",
        )


def moves_of(setup: SourceSetup, checkpoint: Checkpoint) -> tuple[Move, ...]:
    """Return the members of a checkpoint whose target the task file's routes have changed."""
    found = []
    for record in checkpoint.members:
        name = record.member.name
        routed = setup.router.route(name.schema, name.table)
        target = TableName(routed.schema, routed.table) if routed else None
        if target != record.target:
            found.append(Move(record, target))
    return tuple(found)


def refuse_unfinished(
    checkpoint: Checkpoint, what: str, texts: Sequence[str], decided: Iterable[DecisionRecord]
) -> None:
    """Raise FatalError if a source has open or unread changes while its routes or filters change.

    Args:
        what: the changed rules, for the message.
        texts: the change of each member.
    """
    reason = _open(checkpoint, _versions(decided)) if texts else ""
    if not reason:
        return
    more = f", and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    raise fault(
        "task.routes-changed",
        rules=what,
        source=checkpoint.source,
        changes=f"{'; '.join(texts[:_SHOWN])}{more}",
        reason=reason,
        position=f"{checkpoint.file}:{checkpoint.offset}",
    )


def moved(checkpoint: Checkpoint, moves: Sequence[Move]) -> Checkpoint:
    """Return the checkpoint as if the members had always had their present targets.

    This is valid only if nothing is open: then each target has one version, which also applies to
    its new members.
    """
    gone = {move.record.member.name for move in moves}
    states = {name: load_group(text) for name, text in checkpoint.groups}
    for target, state in states.items():
        kept = (m for m in state.members if m[0] not in gone)
        states[target] = replace(state, members=tuple(kept))
    records = [record for record in checkpoint.members if record.member.name not in gone]
    for move in moves:
        if move.to is None:
            continue
        version, there = 0, states.get(move.to)
        if there is not None:
            version = there.base
            member = MemberState(version, Place(move.record.since, 0))
            members = (*there.members, (move.record.member.name, member))
            states[move.to] = replace(there, members=tuple(sorted(members)))
        records.append(replace(move.record, target=move.to, version=version))
    groups = tuple((name, dump_group(state)) for name, state in states.items())
    return replace(checkpoint, members=tuple(records), groups=groups)


def _open(checkpoint: Checkpoint, versions: Mapping[TableName, int]) -> str:
    """Return the unfinished part of a source, as subject and verb; empty if there is none."""
    if checkpoint.open_items:
        several = checkpoint.open_items > 1
        changes = "schema changes of its shards are" if several else "schema change of a shard is"
        return f"{checkpoint.open_items} {changes} open"
    for name, text in checkpoint.groups:
        state = load_group(text)
        behind = [m for m, saved in state.members if saved.version < versions.get(name, 0)]
        if behind:
            return f"{behind[0]} has not reached the newest schema change of {name}"
    low_watermarks = dict(checkpoint.low_watermarks)
    if any(low_watermarks.get(name) != watermark for name, watermark in checkpoint.high_watermarks):
        return "the last run did not end in order, so that rows will be read again"
    saved = BinlogPosition(checkpoint.file, checkpoint.offset).key if checkpoint.file else 0
    ahead = [name for name, mark in checkpoint.low_watermarks if mark.transaction > saved]
    if ahead:
        return f"rows of {ahead[0]} that are applied will be read again"
    return ""


def _versions(decided: Iterable[DecisionRecord]) -> dict[TableName, int]:
    """Return the version of each target, including decided but unexecuted changes."""
    found: dict[TableName, int] = {}
    for record in decided:
        found[record.target] = max(record.version, found.get(record.target, 0))
    return found
