"""Groups and decisions of the version rule as text, for the meta tables, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from replicator.binlog.segment import Statement
from replicator.downstream.decisions import DecisionRecord
from replicator.mysql.names import Member, TableName
from replicator.sharding.items import Cutover, GroupState, Item, Past
from replicator.sharding.lock import Resolution
from replicator.watermark import Place


@dataclass(frozen=True, slots=True)
class Decision:
    """What a decision record holds besides its columns."""

    past: Past
    cutovers: dict[str, Cutover]
    ordinal: int
    statement: Statement | None


@dataclass(slots=True)
class LockHistory:
    """What the meta tables say of one target's items."""

    history: list[Past] = field(default_factory=list)
    cutovers: dict[str, list[Cutover]] = field(default_factory=dict)
    pending: Resolution | None = None
    statement: Statement | None = None
    """The event that the pending item comes from."""


_GROUP = TypeAdapter(GroupState)
_DECISION = TypeAdapter(Decision)


def dump_group(state: GroupState) -> str:
    """A group's state as JSON."""
    return _GROUP.dump_json(state).decode()


def load_group(text: str) -> GroupState:
    """The state that `dump_group` wrote."""
    return _GROUP.validate_json(text)


def record_of(
    target: TableName, resolution: Resolution, statement: Statement | None
) -> DecisionRecord:
    """A resolution as it is saved before it is executed, with the event it comes from."""
    item = resolution.item
    decision = Decision(resolution.past, dict(resolution.cutovers), item.at.ordinal, statement)
    return DecisionRecord(
        target=target,
        version=resolution.version,
        statement=item.statements[0],
        member=Member(resolution.owner, TableName(*item.member.split(".", 1))),
        transaction=item.at.transaction,
        decision=_DECISION.dump_json(decision).decode(),
        done=False,
    )


def histories(records: Iterable[DecisionRecord]) -> Mapping[TableName, LockHistory]:
    """The history of each target from its records, which come in order of their versions."""
    found: dict[TableName, LockHistory] = {}
    for record in records:
        history = found.setdefault(record.target, LockHistory())
        decision = _DECISION.validate_json(record.decision)
        for source, cutover in decision.cutovers.items():
            history.cutovers.setdefault(source, []).append(cutover)
        if record.done:
            history.history.append(decision.past)
        else:
            history.pending = _resolution(record, decision)
            history.statement = decision.statement
    return found


def _resolution(record: DecisionRecord, decision: Decision) -> Resolution:
    statements: Sequence[str] = (record.statement,)
    item = Item(
        text=decision.past.text,
        statements=tuple(statements),
        member=str(record.member.name),
        at=Place(record.transaction, decision.ordinal),
    )
    return Resolution(record.version, record.member.source, item, decision.past, decision.cutovers)
