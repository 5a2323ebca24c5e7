"""Columns in which the target has former values of a shard: made narrower, dropped, in a key."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.schema.effects.touched_parts import Touched, column_part
from replicator.schema.structure.structure import Table, UniqueKey
from replicator.sharding.optimistic.answers import StatementAnswer, answer
from replicator.sharding.optimistic.conflicts import Change
from replicator.sharding.optimistic.differences import differences_of
from replicator.sharding.optimistic.history import (
    EntryKind,
    HistoryEntry,
    TargetHistory,
    entry_of,
)
from replicator.sharding.optimistic.shard_states import Action, ConflictKind, ShardState
from replicator.watermark import Place
from tests.simulation.optimistic_estate import Definition, table
from tests.support.optimistic_answers import B, bring, conflict, history_of


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("decimal(12,4)", "decimal(5,2)"),
        ("varchar(9)", "char(9)"),
        ("varchar(9)", "varchar(3)"),
        ("timestamp", "timestamp not null"),
    ],
)
def test_a_narrower_type_that_may_change_values_waits_for_the_others(
    wide: str, narrow: str
) -> None:
    """Also in strict mode: the server rounds, drops spaces, and stores the moment for NULL."""
    found = history_of("A", "B")
    for member in "AB":
        bring(found, member, (B, ("c", wide, " NULL")), added="c")
    kind, _, null = narrow.partition(" ")
    after = ("c", kind, f" {null.upper() or 'NULL'}")
    assert conflict(bring(found, "A", (B, after), converted="c")) is ConflictKind.ROUNDED
    last = bring(found, "B", (B, after), converted="c")
    assert last.step
    assert last.granted == ("A",)


def test_what_a_member_that_leaves_had_stays_on_the_target() -> None:
    """So older rows of others still have their former values there."""
    found = history_of("A", "B")
    for member in "AB":
        bring(found, member, (B, ("d", "int", "")), added="d")
    bring(found, "A", (B,), dropped="d")
    assert found.state.members["A"].stale == {"d"}
    found.take(HistoryEntry(EntryKind.LEFT, "B", gone=("B",)))
    assert not bring(found, "A", (B, ("e", "int", "")), added="e").converted
    assert differences_of(found.state).members == {
        "A": ("has dropped column d: older rows keep their values",)
    }
    again = (B, ("e", "int", ""), ("d", "int", ""))
    assert conflict(bring(found, "A", again, added="d")) is ConflictKind.STALE


def keyed(columns: tuple[Definition, ...], *key: str) -> Table:
    return replace(table(columns), keys=(UniqueKey("PRIMARY", key),))


FINE: Definition = ("f", "decimal(12,4)", " NOT NULL DEFAULT 0")


@pytest.mark.parametrize(
    ("after", "touched"),
    [
        (keyed((B,), "id"), Touched(dropped={column_part("f")})),
        (
            keyed((B, ("f", "decimal(10,2)", " NOT NULL DEFAULT 0")), "id", "f"),
            Touched(converted={column_part("f")}),
        ),
    ],
    ids=["dropped", "rounded"],
)
def test_the_target_would_not_find_rows_by_a_key_with_former_values(
    after: Table, touched: Touched
) -> None:
    before = keyed((B, FINE), "id", "f")
    found: TargetHistory[str] = TargetHistory(
        HistoryEntry(EntryKind.MEMBER, member, ShardState(before), {}) for member in "AB"
    )
    change = Change("A", Place(1, 0), "x", "x", before, after, touched)
    assert conflict(answer(found.state, change)) is ConflictKind.ROWS
    alone: TargetHistory[str] = TargetHistory(
        [HistoryEntry(EntryKind.MEMBER, "A", ShardState(before), {})]
    )
    assert answer(alone.state, change).answer is StatementAnswer.TAKEN


@pytest.mark.parametrize("key", [{"id"}, {"id", "f"}, set()], ids=["own", "more", "none"])
def test_the_target_finds_rows_by_more_columns_than_the_keys_of_its_shards(key: set[str]) -> None:
    before = keyed((B, FINE), "id")
    found: TargetHistory[str] = TargetHistory(
        HistoryEntry(EntryKind.MEMBER, member, ShardState(before), {}) for member in "AB"
    )
    touched = Touched(dropped={column_part("f")})
    put = Change("A", Place(1, 0), "x", "x", before, keyed((B,), "id"), touched)
    verdict = answer(found.state, replace(put, found_by=frozenset(key)))
    assert (verdict.answer is StatementAnswer.TAKEN) == (key == {"id"})


def test_a_key_gets_a_column_in_which_another_shard_has_former_values() -> None:
    before = keyed((B, FINE), "id")
    found: TargetHistory[str] = TargetHistory(
        HistoryEntry(EntryKind.MEMBER, member, ShardState(before), {}) for member in "AB"
    )
    dropped = Touched(dropped={column_part("f")})
    first = Change("A", Place(1, 0), "x", "x", before, keyed((B,), "id"), dropped)
    verdict = answer(found.state, first)
    assert verdict.shard_state.stale == {"f"}
    found.take(entry_of("A", verdict, ()))
    wider = Change("B", Place(2, 0), "y", "y", before, keyed((B, FINE), "id", "f"), Touched())
    assert conflict(answer(found.state, wider)) is ConflictKind.ROWS


def test_all_shards_lose_the_key_although_older_rows_of_one_are_not_found_then() -> None:
    fine = keyed((B, FINE), "id")
    found: TargetHistory[str] = TargetHistory(
        HistoryEntry(EntryKind.MEMBER, member, ShardState(fine), {}) for member in "AB"
    )

    def answered(
        member: str, text: str, columns: tuple[Definition, ...], action: Action | None = None
    ) -> ConflictKind | None:
        touched = Touched(dropped={column_part("f")} if text == "drop" else set())
        before = found.state.members[member].taken
        after = keyed(columns, "id") if text == "drop" else replace(table(columns), keys=())
        change = Change(member, Place(1, 0), text, text, before, after, touched, action=action)
        verdict = answer(found.state, change)
        found.take(entry_of(member, verdict, ()))
        return None if verdict.answer is StatementAnswer.TAKEN else conflict(verdict)

    assert answered("A", "drop", (B,)) is None
    assert answered("A", "key", (B,)) is ConflictKind.ROWS
    assert answered("B", "key", (B, FINE)) is ConflictKind.ROUNDED
    assert answered("B", "key", (B, FINE), Action.EXEC) is None
    assert answered("A", "key", (B,)) is None
    assert answered("A", "more", (B, ("x", "int", " NULL"))) is None
