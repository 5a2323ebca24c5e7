"""Statements that are accepted although only their shard knows the values of its older rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from replicator.schema.effects.touched_parts import Touched, column_part
from replicator.schema.structure.structure import UniqueKey
from replicator.sharding.optimistic.answers import answer
from replicator.sharding.optimistic.conflicts import Change
from replicator.sharding.optimistic.history import EntryKind, HistoryEntry, TargetHistory, entry_of
from replicator.sharding.optimistic.shard_states import Action, ConflictKind, ShardState, undoes
from replicator.watermark import Place
from tests.simulation.optimistic_estate import Definition, table
from tests.support.optimistic_answers import B, bring, conflict, history_of

reconciling = partial(bring, reconciles=True)


def test_all_columns_with_another_default() -> None:
    found = history_of("A", "B")
    first = tuple((name, "int", " DEFAULT 1") for name in "cd")
    other = tuple((name, "int", " DEFAULT 2") for name in "cd")
    assert not reconciling(found, "A", (B, *first), added="c d").reconciled
    assert reconciling(found, "B", (B, *other), added="c d").reconciled == {"c", "d"}
    assert found.state.fills["c"].sql == "1", "rows without it get what they got before"


def test_a_default_that_is_no_constant() -> None:
    """It may depend on other columns, which the shard has changed meanwhile."""
    found = history_of("A", "B")
    for member, columns in (("A", frozenset[str]()), ("B", frozenset({"c"}))):
        made = (B, ("c", "int", " DEFAULT (b + 1)"))
        assert reconciling(found, member, made, added="c").reconciled == columns


def test_a_column_that_is_dropped_and_added_again() -> None:
    found = history_of("A", "B")
    for member in "AB":
        reconciling(found, member, (B, ("c", "int", "")), added="c")
    reconciling(found, "A", (B,), dropped="c")
    assert reconciling(found, "A", (B, ("c", "int", "")), added="c").reconciled == {"c"}
    assert found.state.members["A"].stale == frozenset()


def test_a_column_that_is_dropped_and_added_again_at_once() -> None:
    """The statement on the target would remove the values of the others."""
    found = history_of("A", "B", "C")
    for member in "AB":
        reconciling(found, member, (B, ("c", "int", " DEFAULT 1")), added="c")
    for kind, steps in (("int", False), ("bigint", True)):
        made = reconciling(
            found, "A", (B, ("c", kind, " DEFAULT 2")), dropped="c", added="c", converted=""
        )
        assert made.reconciled == {"c"}
        assert (made.own, made.step) == (False, steps)
    assert found.state.fills["c"].sql == "1", "rows of C have it"


def test_a_column_that_its_only_shard_drops_and_adds_again_at_once() -> None:
    """The target does the same, unless other parts of its shards differ."""
    found = history_of("A", "B")
    for member, name, own in (("A", "c", True), ("B", "d", False)):
        reconciling(found, member, (B, (name, "int", " DEFAULT 1")), added=name)
        after = (B, ("c", "bigint", " DEFAULT 2"))
        made = reconciling(found, "A", after, dropped="c", added="c")
        assert made.own is own
        assert found.state.fills["c"].sql == "2"
    made = reconciling(found, "A", (B, ("c", "bigint", " DEFAULT 3")), dropped="c", added="c")
    assert made.reconciled == {"c"}
    assert found.state.fills["c"].sql == "2"


def test_a_type_that_joins_with_no_other_waits() -> None:
    found = history_of("A", "B")
    for member in "AB":
        reconciling(found, member, (B, ("c", "int", "")), added="c")
    verdicts = [
        reconciling(found, member, (B, ("c", "date", "")), dropped="c", added="c")
        for member in "AB"
    ]
    assert conflict(verdicts[0]) is ConflictKind.TYPE
    assert verdicts[1].own
    assert verdicts[1].granted == ("A",)


def test_a_column_that_one_shard_makes_narrower() -> None:
    """The target rounds the values of all again when the last one does so."""
    found = history_of("A", "B")
    fine, middle, coarse = (("c", f"decimal({kind})", "") for kind in ("12,4", "11,3", "10,2"))
    for member in "AB":
        reconciling(found, member, (B, fine), added="c")
    for kind in (middle, coarse):
        assert reconciling(found, "A", (B, kind), converted="c").reconciled == {"c"}
    for kind in (middle, coarse, fine):
        last = reconciling(found, "B", (B, kind), converted="c")
        assert last.step
        assert not last.reconciled
    assert not reconciling(found, "A", (B, fine), converted="c").reconciled


def test_rows_that_are_found_by_the_column() -> None:
    before, ones, twos = (
        replace(table((B, *more)), keys=(UniqueKey("PRIMARY", key),))
        for key, more in (
            (("id",), ()),
            (("id", "c"), (("c", "int", " NOT NULL DEFAULT 1"),)),
            (("id", "c"), (("c", "int", " NOT NULL DEFAULT 2"),)),
        )
    )
    found: TargetHistory[str] = TargetHistory(
        HistoryEntry(EntryKind.MEMBER, member, ShardState(before), {}) for member in "AB"
    )
    touched = Touched(added={column_part("c")})
    for member, after, action, result in (
        ("A", ones, None, None),
        ("B", twos, None, ConflictKind.FILL),
        ("B", twos, Action.EXEC, None),
    ):
        at = Place(1, 0)
        change = Change(member, at, f"{after}", "", before, after, touched, reconciles=True)
        verdict = answer(found.state, replace(change, action=action))
        found.take(entry_of(member, verdict, ()))
        opened = verdict.shard_state.open
        assert (opened and opened.conflict) == result
    assert verdict.reconciled == {"c"}


def test_a_column_that_its_shard_drops_later_does_not_need_the_type_of_the_others() -> None:
    """Its rows come without it, until the shard has added it again."""
    found = history_of("A", "B")
    reconciling(found, "A", (B, ("c", "datetime", "")), added="c")
    assert conflict(reconciling(found, "B", (B, ("c", "int", "")), added="c")) is ConflictKind.TYPE
    assert not undoes(found.state, "B", table((B, ("c", "bigint", ""))))
    assert undoes(found.state, "B", table((B,)))
    assert undoes(found.state, "B", table((B, ("c", "datetime", ""))))
    found.take(HistoryEntry(EntryKind.SAID, "B", action=Action.SKIP))
    made = reconciling(found, "B", (B, ("c", "int", "")), Action.SKIP, added="c")
    assert made.reconciled == {"c"}
    assert not made.step
    assert made.shard_state.stale == made.shard_state.ceded == {"c"}
    more: Definition = ("e", "int", "")
    reconciling(found, "B", (B, ("c", "int", ""), more), added="e")
    assert found.state.members["B"].stale == {"c"}
    reconciling(found, "B", (B, more), dropped="c")
    again = reconciling(found, "B", (B, more, ("c", "datetime", "")), added="c")
    assert again.reconciled == {"c"}
    assert found.state.members["B"] == ShardState(again.shard_state.taken)
