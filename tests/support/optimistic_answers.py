"""The answers of the optimistic rule, one after the other, as pure tests ask for them."""

from __future__ import annotations

from dataclasses import replace

from replicator.schema.effects.touched_parts import column_part
from replicator.schema.structure.structure import Table
from replicator.sharding.optimistic.answers import JoinVerdict, StatementAnswer, answer
from replicator.sharding.optimistic.conflicts import Change
from replicator.sharding.optimistic.history import (
    EntryKind,
    HistoryEntry,
    TargetHistory,
    entry_of,
)
from replicator.sharding.optimistic.shard_states import Action, ConflictKind, ShardState
from replicator.watermark import Place
from tests.simulation.optimistic_estate import Definition, table, touched_by

B: Definition = ("b", "smallint", "")


def history_of(*members: str) -> TargetHistory[str]:
    first = ShardState(table((B,)))
    return TargetHistory(HistoryEntry(EntryKind.MEMBER, m, first, {}) for m in members)


def bring(
    found: TargetHistory[str],
    member: str,
    columns: tuple[Definition, ...],
    action: Action | None = None,
    *,
    reconciles: bool = False,
    **touched: str,
) -> JoinVerdict[str]:
    """A member's statement that leaves it with these columns: answered, and taken in.

    ``touched``: columns of each kind (`Touched`), with spaces in between.
    """
    shard_state = found.state.members[member]
    parts = {name: set(map(column_part, names.split())) for name, names in touched.items()}
    text = f"{touched} {columns}"
    before = shard_state.taken
    after: Table = table(columns)
    change = Change(member, Place(1, 0), text, text, before, after, touched_by(parts))
    verdict = answer(found.state, replace(change, action=action, reconciles=reconciles))
    found.take(entry_of(member, verdict, ()))
    return verdict


def conflict(verdict: JoinVerdict[str]) -> ConflictKind:
    assert verdict.answer is StatementAnswer.OPEN
    assert verdict.shard_state.open is not None
    return verdict.shard_state.open.conflict
