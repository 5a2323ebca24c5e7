"""Columns in which the target has former values of a shard: made narrower, dropped, in a key."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from replicator.schema.effects.touched_parts import Touched, column_part
from replicator.schema.structure.structure import Table, UniqueKey
from replicator.sharding.optimistic.answers import StatementAnswer, answer
from replicator.sharding.optimistic.differences import differences_of
from replicator.sharding.optimistic.history import (
    EntryKind,
    HistoryEntry,
    TargetHistory,
    entry_of,
)
from replicator.sharding.optimistic.objections import Change
from replicator.sharding.optimistic.standings import Action, Objection, Standing
from replicator.watermark import Place
from tests.simulation.optimistic_estate import Definition, table
from tests.support.optimistic_answers import B, bring, history_of, objection


def test_values_that_were_rounded_do_not_come_back() -> None:

    found = history_of("A", "B")
    for member in "AB":
        bring(found, member, (B, ("c", "decimal(12,4)", "")), added="c")
    fine, coarse = ("c", "decimal(12,4)", ""), ("c", "decimal(5,2)", "")
    assert not bring(found, "A", (B, coarse), converted="c").step
    assert found.state.members["A"].rounded == {"c": "decimal(5,2)"}
    assert objection(bring(found, "A", (B, fine), converted="c")) is Objection.ROUNDED
    assert bring(found, "B", (B, coarse), converted="c").step
    assert found.state.members["A"].rounded == {}
    assert bring(found, "A", (B, fine), converted="c").step


def test_values_that_were_rounded_twice_are_not_those_that_the_target_rounds_once() -> None:
    """0.0449 becomes 0.045, then 0.05; but 0.04 in one step."""
    found = history_of("A", "B")
    for member in "AB":
        bring(found, member, (B, ("c", "decimal(12,4)", "")), added="c")
    for kind in ("decimal(11,3)", "decimal(10,2)"):
        assert not bring(found, "A", (B, ("c", kind, "")), converted="c").step
    last = bring(found, "B", (B, ("c", "decimal(10,2)", "")), converted="c")
    assert objection(last) is Objection.ROUNDED
    assert last.standing.open is not None
    assert "decimal(11,3), then decimal(10,2)" in last.standing.open.reason
    said = bring(found, "B", (B, ("c", "decimal(10,2)", "")), Action.EXEC, converted="c")
    assert said.step


def test_the_target_rounds_twice_what_members_have_rounded_twice() -> None:
    found = history_of("A", "B")
    for member in "AB":
        bring(found, member, (B, ("c", "decimal(12,4)", "")), added="c")
    kinds = ("decimal(11,3)", "decimal(10,2)")
    for kind in kinds:
        assert not bring(found, "A", (B, ("c", kind, "")), converted="c").step
    for kind, left in zip(kinds, ({"c": "decimal(10,2)"}, {}), strict=True):
        assert bring(found, "B", (B, ("c", kind, "")), converted="c").step
        assert found.state.members["A"].rounded == left


def test_the_target_does_not_round_in_between_what_a_member_has_rounded_at_once() -> None:
    found = history_of("A", "B")
    for member in "AB":
        bring(found, member, (B, ("c", "decimal(12,4)", "")), added="c")
    bring(found, "A", (B, ("c", "decimal(10,2)", "")), converted="c")
    between = bring(found, "B", (B, ("c", "decimal(11,3)", "")), converted="c")
    assert objection(between) is Objection.ROUNDED


@pytest.mark.parametrize(
    ("after", "touched"),
    [
        (("c", "int", ""), {"converted": "c"}),
        (("d", "decimal(11,3)", ""), {"renamed": "c", "named": "d", "added": "d"}),
    ],
    ids=["converted", "renamed"],
)
def test_all_members_change_what_one_of_them_has_rounded(
    after: Definition, touched: dict[str, Any]
) -> None:
    """The target has the values before that, and 0.4995 is not 1 but 0."""
    found = history_of("A", "B")
    for member in "AB":
        bring(found, member, (B, ("c", "decimal(12,4)", "")), added="c")
    bring(found, "A", (B, ("c", "decimal(11,3)", "")), converted="c")
    bring(found, "A", (B, after), None, **touched)
    assert objection(bring(found, "B", (B, after), None, **touched)) is Objection.ROUNDED
    said = bring(found, "B", (B, after), Action.EXEC, **touched)
    assert said.granted == ("A",)


def test_what_a_member_that_leaves_had_stays_on_the_target() -> None:
    """So older rows of others still have their former values there."""
    found = history_of("A", "B")
    fine, coarse = ("c", "decimal(12,4)", ""), ("c", "decimal(5,2)", "")
    for member in "AB":
        bring(found, member, (B, fine, ("d", "int", "")), added="c")
    bring(found, "A", (B, coarse), converted="c", dropped="d")
    assert found.state.members["A"].stale == {"d"}
    found.take(HistoryEntry(EntryKind.LEFT, "B", gone=("B",)))
    assert not bring(found, "A", (B, coarse, ("e", "int", "")), added="e").converted
    assert differences_of(found.state).members == {
        "A": (
            "has made column c narrower: older rows keep their values",
            "has dropped column d: older rows keep their values",
        )
    }
    again = (B, coarse, ("e", "int", ""), ("d", "int", ""))
    assert objection(bring(found, "A", again, added="d")) is Objection.STALE
    wide = (B, fine, ("e", "int", ""))
    assert objection(bring(found, "A", wide, converted="c")) is Objection.ROUNDED


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("varchar(9)", "char(9)"),
        ("varchar(9)", "varchar(3)"),
        ("timestamp", "timestamp not null"),
    ],
)
def test_values_that_a_strict_server_changes_do_not_come_back(wide: str, narrow: str) -> None:
    found = history_of("A", "B")
    for member in "AB":
        bring(found, member, (B, ("c", wide, " NULL")), added="c")
    kind, _, null = narrow.partition(" ")
    bring(found, "A", (B, ("c", kind, f" {null.upper() or 'NULL'}")), converted="c")
    again = bring(found, "A", (B, ("c", wide, " NULL")), converted="c")
    assert objection(again) is Objection.ROUNDED


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
        HistoryEntry(EntryKind.MEMBER, member, Standing(before), {}) for member in "AB"
    )
    change = Change("A", Place(1, 0), "x", "x", before, after, touched)
    assert objection(answer(found.state, change)) is Objection.ROWS
    alone: TargetHistory[str] = TargetHistory(
        [HistoryEntry(EntryKind.MEMBER, "A", Standing(before), {})]
    )
    assert answer(alone.state, change).answer is StatementAnswer.TAKEN


@pytest.mark.parametrize("key", [{"id"}, {"id", "f"}, set()], ids=["own", "more", "none"])
def test_the_target_finds_rows_by_more_columns_than_the_keys_of_its_shards(key: set[str]) -> None:
    before = keyed((B, FINE), "id")
    found: TargetHistory[str] = TargetHistory(
        HistoryEntry(EntryKind.MEMBER, member, Standing(before), {}) for member in "AB"
    )
    touched = Touched(dropped={column_part("f")})
    put = Change("A", Place(1, 0), "x", "x", before, keyed((B,), "id"), touched)
    verdict = answer(found.state, replace(put, found_by=frozenset(key)))
    assert (verdict.answer is StatementAnswer.TAKEN) == (key == {"id"})


def test_a_key_gets_a_column_in_which_another_shard_has_former_values() -> None:
    before = keyed((B, FINE), "id")
    found: TargetHistory[str] = TargetHistory(
        HistoryEntry(EntryKind.MEMBER, member, Standing(before), {}) for member in "AB"
    )
    dropped = Touched(dropped={column_part("f")})
    first = Change("A", Place(1, 0), "x", "x", before, keyed((B,), "id"), dropped)
    verdict = answer(found.state, first)
    assert verdict.standing.stale == {"f"}
    found.take(entry_of("A", verdict, ()))
    wider = Change("B", Place(2, 0), "y", "y", before, keyed((B, FINE), "id", "f"), Touched())
    assert objection(answer(found.state, wider)) is Objection.ROWS


@pytest.mark.parametrize("key", [("id", "f"), ()], ids=["in a key", "without a key"])
def test_all_shards_get_a_key_by_which_older_rows_of_one_are_not_found(
    key: tuple[str, ...],
) -> None:
    coarse: Definition = ("f", "decimal(10,2)", " NOT NULL DEFAULT 0")
    fine = keyed((B, FINE), "id")
    found: TargetHistory[str] = TargetHistory(
        HistoryEntry(EntryKind.MEMBER, member, Standing(fine), {}) for member in "AB"
    )

    def answered(
        member: str, text: str, after: Table, action: Action | None = None
    ) -> Objection | None:
        touched = Touched(converted={column_part("f")} if text == "narrower" else set())
        before = found.state.members[member].taken
        change = Change(member, Place(1, 0), text, text, before, after, touched, action=action)
        verdict = answer(found.state, change)
        found.take(entry_of(member, verdict, ()))
        return None if verdict.answer is StatementAnswer.TAKEN else objection(verdict)

    def other_key(columns: tuple[Definition, ...]) -> Table:
        return keyed(columns, *key) if key else replace(table(columns), keys=())

    assert answered("A", "narrower", keyed((B, coarse), "id")) is None
    assert answered("A", "key", other_key((B, coarse))) is Objection.ROWS
    assert answered("B", "key", other_key((B, FINE))) is Objection.ROUNDED
    assert answered("B", "key", other_key((B, FINE)), Action.EXEC) is None
    assert answered("A", "key", other_key((B, coarse))) is None
    more = ("x", "int", " NULL")
    assert answered("A", "more", other_key((B, coarse, more))) is None
