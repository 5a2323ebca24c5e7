"""A task file that has changed since the checkpoint: what is refused, and how members move.

What was saved was decided under the shard-mode and the routes of that time. Another mode counts the
versions of a target differently. Under other routes, an open schema change would belong to another
target, and rows that were applied once could be applied again there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from actors.faults import COPY_ANEW, FatalError, of_source
from actors.lock_state import dump_group, histories, load_group
from actors.task_setup import SourceSetup
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.meta.checkpoint import Checkpoint
from replicator.downstream.meta.decisions import DecisionRecord
from replicator.mysql.names import TableName
from replicator.schema.registry.registry import MemberRecord
from replicator.sharding.items import MemberState
from replicator.watermark import Place

_SHOWN = 5
"""How many moved tables a message names."""


@dataclass(frozen=True, slots=True)
class Move:
    """A member whose route has changed; ``to`` is None where it is no longer replicated."""

    record: MemberRecord
    to: TableName | None

    def __str__(self) -> str:
        now = f"now to {self.to}" if self.to else "and is no longer replicated"
        return f"{self.record.member.name} went to {self.record.target}, {now}"


def refuse_other_mode(checkpoint: Checkpoint, shard_mode: str) -> None:
    """Raise FatalError where the checkpoint was saved under another shard-mode."""
    if checkpoint.shard_mode == shard_mode:
        return
    raise FatalError(
        "task.mode-changed",
        f"the checkpoint of source {checkpoint.source} was saved with shard-mode:"
        f' "{checkpoint.shard_mode}", but the task file says "{shard_mode}". The two modes count'
        " the schema changes of a target differently, so rows would be lost or duplicated",
        where=f"source {checkpoint.source}, saved at {checkpoint.file}:{checkpoint.offset}",
        remedies=(
            f'set shard-mode: "{checkpoint.shard_mode}" again, then start the task',
            "to change the mode: let the task read to the end of the binlogs with the former"
            " mode, until no lock is open, and `replicator stop`. Then set the new mode,"
            " `task-mode: incremental`, and meta: of every instance to its saved position"
            f" ({checkpoint.source}: binlog-name: {checkpoint.file}, binlog-pos:"
            f" {checkpoint.offset}), and `replicator run --remove-meta`",
        ),
    )


def refuse_missed(
    source: str, checkpoint: Checkpoint | None, decided: Sequence[DecisionRecord]
) -> None:
    """Raise FatalError where a schema change was decided without the source.

    It was not in the task file then. After the change, its older rows would be left out. A group
    that nothing is saved of starts at the version of its target; it is too early for that where
    the target's next change is decided and not executed yet.
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
        raise FatalError(
            "source.missed-ddl",
            f"the target {name} got its schema change number {missed[0]} while source {source}"
            " was not in the task file. The source's older rows no longer fit, and would be lost",
            where=f"source {source}"
            + (f", saved at {checkpoint.file}:{checkpoint.offset}" if checkpoint else ""),
            scope=of_source(source),
            remedies=(
                "remove the source from the task file again, and start the task",
                COPY_ANEW,
            ),
        )


def moves_of(setup: SourceSetup, checkpoint: Checkpoint) -> tuple[Move, ...]:
    """The members of a checkpoint that the routes of the task file send elsewhere."""
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
    """Raise FatalError where ``what`` (routes, filters) of a source has changed while something is
    open there, or will be read again. ``texts``: each change of a member."""
    reason = _open(checkpoint, _versions(decided)) if texts else ""
    if not reason:
        return
    more = f", and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    raise FatalError(
        "task.routes-changed",
        f"the {what} of source {checkpoint.source} have changed"
        f" ({'; '.join(texts[:_SHOWN])}{more}) while {reason}. The task must first finish what it"
        f" has read by the former {what}",
        where=f"source {checkpoint.source}, saved at {checkpoint.file}:{checkpoint.offset}",
        remedies=(
            "restore the former routes, block-allow-list and filters, and run the task until"
            " `replicator show-ddl-locks` shows nothing open, `replicator status` nothing"
            f" blocked, and the lag is 0; `replicator stop`, then change the {what}",
        ),
    )


def moved(checkpoint: Checkpoint, moves: Sequence[Move]) -> Checkpoint:
    """The checkpoint as it would be if the members had always gone where they go now.

    Only where nothing is open: then each target has one version, and its new members have it, too.
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
    """What is not finished in a source, as the subject and verb of a sentence; empty: nothing."""
    if checkpoint.open_items:
        return f"{checkpoint.open_items} schema changes of its shards are open"
    for name, text in checkpoint.groups:
        state = load_group(text)
        behind = [m for m, saved in state.members if saved.version < versions.get(name, 0)]
        if behind:
            return f"{behind[0]} has not come to the newest schema change of {name}"
    low_watermarks = dict(checkpoint.low_watermarks)
    if any(low_watermarks.get(name) != watermark for name, watermark in checkpoint.high_watermarks):
        return "the last run did not end in order, so that rows will be read again"
    saved = BinlogPosition(checkpoint.file, checkpoint.offset).key if checkpoint.file else 0
    ahead = [name for name, mark in checkpoint.low_watermarks if mark.transaction > saved]
    if ahead:
        return f"rows of {ahead[0]} that are applied will be read again"
    return ""


def _versions(decided: Iterable[DecisionRecord]) -> dict[TableName, int]:
    """The version of each target, counting what is decided and not executed yet."""
    found: dict[TableName, int] = {}
    for record in decided:
        found[record.target] = max(record.version, found.get(record.target, 0))
    return found
