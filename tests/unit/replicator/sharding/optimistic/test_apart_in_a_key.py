"""Members that compare a key's column by different collations, beside one without the key."""

from __future__ import annotations

import pytest

from replicator.schema.effects.touched_parts import Touched
from replicator.schema.structure.structure import Column, Table, UniqueKey
from replicator.sharding.optimistic.answers import StatementAnswer, answer
from replicator.sharding.optimistic.conflicts import Change
from replicator.sharding.optimistic.history import EntryKind, HistoryEntry, TargetHistory
from replicator.sharding.optimistic.shard_states import ConflictKind, ShardState
from replicator.watermark import Place

GENERAL, UNICODE = "utf8mb4_general_ci", "utf8mb4_unicode_ci"


def mail(collation: str, *, unique: bool = True, more: str = "") -> Table:
    lines = [f"`host` varchar(9) COLLATE {collation}", more, "PRIMARY KEY (`id`)"]
    lines += ["UNIQUE KEY `u` (`host`)"] * unique
    columns = [
        Column("id", "int", nullable=False),
        Column("host", "varchar(9)", "utf8mb4", collation),
        *([Column("n", "int")] if more else []),
    ]
    keys = [UniqueKey("PRIMARY", ("id",)), *[UniqueKey("u", ("host",), nullable=True)] * unique]
    text = ",\n  ".join(filter(None, ["`id` int NOT NULL", *lines]))
    return Table("d", "t", tuple(columns), tuple(keys), f"CREATE TABLE `t` (\n  {text}\n)")


@pytest.fixture
def history() -> TargetHistory[str]:
    """A and B have the key; the target does not, since C has none."""
    tables = {"A": mail(GENERAL), "B": mail(UNICODE), "C": mail(GENERAL, unique=False)}
    entries = [HistoryEntry(EntryKind.MEMBER, n, ShardState(t), {}) for n, t in tables.items()]
    return TargetHistory([entries[2], *entries[:2]])


def test_the_key_comes_back_where_the_others_compare_it_otherwise(
    history: TargetHistory[str],
) -> None:
    before = history.state.members["C"].taken
    change = Change("C", Place(1, 0), "ADD", "ADD", before, mail(GENERAL), Touched())
    verdict = answer(history.state, change)
    assert verdict.shard_state.open is not None
    assert verdict.shard_state.open.conflict is ConflictKind.TYPE
    assert "different collations" in verdict.shard_state.open.reason


def test_the_member_without_the_key_leaves(history: TargetHistory[str]) -> None:
    shape = history.state.joined()
    history.take(HistoryEntry(EntryKind.LEFT, "C", gone=("C",)))
    assert history.state.joined() == shape
    before = history.state.members["A"].taken
    more = mail(GENERAL, more="`n` int DEFAULT NULL")
    verdict = answer(history.state, Change("A", Place(2, 0), "ADD", "ADD", before, more, Touched()))
    assert verdict.before == shape
    assert verdict.answer is StatementAnswer.TAKEN
