"""Converts groups and decisions of the version rule to text for the meta tables, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter

from replicator.binlog.segments.segment import Statement
from replicator.downstream.meta.decisions import DecisionRecord
from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import dump_structure
from replicator.schema.structure.structure import Table
from replicator.sharding.items import Cutover, GroupState, Item, MemberState, ResolvedItem
from replicator.sharding.pessimistic.lock import Resolution
from replicator.watermark import Place


@dataclass(frozen=True, slots=True)
class ShardStatement:
    """The event of an item: the statement in the binlog of its shard.

    ``instead`` is what the operator wants executed on the target in its place, if anything.
    """

    statement: Statement
    instead: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class SavedDecision:
    """The part of a decision record that has no column.

    ``before`` is the target's structure before the item (`dump_structure`); empty if an older
    release has not saved it. ``shown``: the later items of members that show earlier items, with
    the numbers of these (`replicator.sharding.pessimistic.lock.TargetLock.shown`).
    """

    resolved: ResolvedItem
    cutovers: dict[str, Cutover]
    ordinal: int
    event: ShardStatement
    before: str = ""
    shown: tuple[tuple[str, Place, tuple[int, ...]], ...] = ()


@dataclass(slots=True)
class LockHistory:
    """The items of one target, from the meta tables.

    Attributes:
        versions: the numbers of the items in ``history``.
        structures: the target's structures by version, as texts (`dump_structure`).
        outside: shards whose rows the target has, of sources that are not in the task file.
        earlier: the items before version 0, the last one first.
        shown: as in `SavedDecision`.
    """

    history: list[ResolvedItem] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    cutovers: dict[str, list[Cutover]] = field(default_factory=dict)
    pending: Resolution[TableName, ShardStatement] | None = None
    structures: dict[int, str] = field(default_factory=dict)
    outside: tuple[str, ...] = ()
    earlier: list[ResolvedItem] = field(default_factory=list)
    shown: dict[tuple[str, Place], frozenset[int]] = field(default_factory=dict)


_GROUP = TypeAdapter(GroupState[TableName])
_DECISION = TypeAdapter(SavedDecision)


def dump_group(state: GroupState[TableName]) -> str:
    """Return a group's state as JSON."""
    return _GROUP.dump_json(state).decode()


def load_group(text: str) -> GroupState[TableName]:
    """Return the state that `dump_group` wrote."""
    return _GROUP.validate_json(text)


def dump_decision(decision: SavedDecision) -> str:
    """Return a decision as JSON."""
    return _DECISION.dump_json(decision).decode()


def load_decision(text: str) -> SavedDecision:
    """Return the decision that `dump_decision` wrote."""
    return _DECISION.validate_json(text)


def record_of(
    target: TableName,
    resolution: Resolution[TableName, ShardStatement],
    before: str = "",
    shown: Mapping[tuple[str, Place], Iterable[int]] = {},
) -> DecisionRecord:
    """Return a resolution in the form that is saved before it is executed.

    ``before`` and ``shown`` are as in `SavedDecision`.
    """
    item, resolved = resolution.item, resolution.resolved
    cutovers = dict(resolution.cutovers)
    later = tuple((*key, tuple(sorted(numbers))) for key, numbers in shown.items())
    decision = SavedDecision(resolved, cutovers, item.at.ordinal, item.event, before, later)
    return DecisionRecord(
        target=target,
        version=resolution.version,
        statement=item.statements[0],
        member=Member(resolution.owner, item.member),
        transaction=item.at.transaction,
        decision=dump_decision(decision),
        done=False,
    )


def earlier_record(
    target: TableName,
    version: int,
    source: str,
    item: Item[TableName, ShardStatement],
    before: Table | None,
) -> DecisionRecord:
    """Return the record of an item that the target had already when it was created.

    No statement is executed for it, so it has no place.
    """
    made = Resolution(version, source, item, ResolvedItem(item.text), {})
    return replace(record_of(target, made, dump_structure(before)), transaction=0, done=True)


def histories(records: Iterable[DecisionRecord]) -> dict[TableName, LockHistory]:
    """Return the history of each target from its records, which come in order of their versions."""
    found: dict[TableName, LockHistory] = {}
    for record in records:
        history = found.setdefault(record.target, LockHistory())
        decision = load_decision(record.decision)
        for source, cutover in decision.cutovers.items():
            history.cutovers.setdefault(source, []).append(cutover)
        for source, at, numbers in decision.shown:
            history.shown[source, at] = frozenset(numbers)
        if decision.before:
            history.structures[record.version - 1] = decision.before
        if record.version <= 0:
            history.earlier.insert(0, decision.resolved)
        elif record.done:
            history.history.append(decision.resolved)
            history.versions.append(record.version)
        else:
            history.pending = _resolution(record, decision)
    return found


def first_groups(
    decided: Iterable[DecisionRecord],
    members: Iterable[tuple[TableName, TableName]],
    source: str = "",
    start: int = 0,
) -> Mapping[TableName, GroupState[TableName]]:
    """Return the groups, by target, of a source for which nothing is saved.

    A group starts at the version that its target has at this moment. The first checkpoint saves it,
    because the target may advance while the task file does not name the source. If the task ends
    before that checkpoint, the statements of the cutovers since ``start`` are read again.

    Args:
        members: the shards of the source, each with its target.
        start: the key of the position from which the source is read.
    """
    past = histories(decided)
    by_target: dict[TableName, list[TableName]] = {}
    for member, target in members:
        by_target.setdefault(target, []).append(member)
    found = {}
    for target, names in by_target.items():
        history = past.get(target, LockHistory())
        again = (c.version for c in history.cutovers.get(source, ()) if c.at.transaction >= start)
        base = min((version - 1 for version in again), default=max(history.versions, default=0))
        state = MemberState(base, Place(0, 0))
        found[target] = GroupState(base, tuple((name, state) for name in sorted(names)))
    return found


def _resolution(
    record: DecisionRecord, decision: SavedDecision
) -> Resolution[TableName, ShardStatement]:
    item = Item(
        text=decision.resolved.text,
        statements=(record.statement,),
        member=record.member.name,
        at=Place(record.transaction, decision.ordinal),
        event=decision.event,
    )
    owner = record.member.source
    return Resolution(record.version, owner, item, decision.resolved, decision.cutovers)
