"""Columns that members rename while others lack them, or have them by the new name."""

from __future__ import annotations

from functools import partial

import pytest

from replicator.mysql.names import TableName, folded
from replicator.schema.effects.touched_parts import Touched
from replicator.sharding.optimistic.fills import Fill
from replicator.sharding.optimistic.given_names import GivenName, given_names, moved_values
from replicator.sharding.optimistic.history import EntryKind, HistoryEntry, TargetHistory, entry_of
from replicator.sharding.optimistic.shard_states import (
    Action,
    ConflictKind,
    ShardState,
    TargetState,
    joined,
)
from tests.simulation.optimistic_estate import table
from tests.support.optimistic_answers import B, bring, conflict, history_of


def test_a_column_that_only_one_shard_has_gets_its_new_name_at_once() -> None:
    found = history_of("A", "B")
    bring(found, "A", (B, ("c", "int", " DEFAULT 4")), added="c")
    behind = (B, ("d", "int", ""))
    assert bring(found, "A", behind, renamed="c", named="d", added="d").own
    assert found.state.fills["d"].sql == "4"
    assert conflict(bring(found, "B", behind, added="d")) is ConflictKind.FILL


@pytest.mark.parametrize("former", ["int", "bigint"])
@pytest.mark.parametrize("last", ["A", "B"])
def test_a_target_with_both_names_of_a_column_gets_the_last_one(last: str, former: str) -> None:
    """One shard has the new name before the others rename the column, perhaps to less values."""
    found = history_of(*(name for name in "ABC" if name != last))
    early = "B" if last == "A" else "A"
    column, named = ("c", former, " DEFAULT 4"), (B, ("d", "int", " DEFAULT 4"))
    for member in early, "C":
        bring(found, member, (B, column), added="c")
    found.take(HistoryEntry(EntryKind.TAKEN, last, ShardState(table(named)), fills_with_d(found)))
    first = bring(found, early, named, renamed="c", named="d", added="d")
    assert conflict(first) is ConflictKind.NAME
    final = bring(found, "C", named, renamed="c", named="d", added="d")
    assert final.granted == (early,)
    assert final.given == (GivenName("c", "d", Fill("4", "4"), Fill("4", "4")),)
    assert not final.own
    assert "c" not in found.state.fills


def test_one_statement_gives_several_names() -> None:
    pairs = {("c", "d"), ("e", "f")}
    names = {"renamed": {"column c", "column e"}, "named": {"column d", "column f"}}
    touched = Touched(**names, added=names["named"], pairs=pairs)
    number, fill = "int", Fill("4", "4")
    own = ShardState(table((B, ("c", number, " DEFAULT 4"), ("e", number, " DEFAULT 4"))))
    after = table((B, ("d", number, " DEFAULT 4"), ("f", number, " DEFAULT 4")))
    newest, plain = ShardState(after), ShardState(table((B,)))
    half = ShardState(table((B, ("d", number, " DEFAULT 4"))))
    both = (GivenName("c", "d", fill, fill), GivenName("e", "f", fill, fill))
    for other, wanted in ((newest, both), (plain, (GivenName("c", "d"), GivenName("e", "f")))):
        columns = {folded(c.name) for s in (own, other) if s.taken for c in s.taken.columns}
        fills = dict.fromkeys(columns, fill)
        before = joined([own, other], fills)
        state = TargetState[str](fills=fills)
        assert given_names(touched, after, [own], [other], before, state) == wanted
    state = TargetState[str](fills=dict.fromkeys("bcde", fill))
    before = joined([own, half], state.fills)
    wanted = GivenName("c", "d", fill, fill), GivenName("e", "f", adds=True)
    assert given_names(touched, after, [own], [half], before, state) == wanted


@pytest.mark.parametrize("default", ["4", "4000000000", "NULL"])
@pytest.mark.parametrize("further", [(), (("n", "int", ""),)])
def test_a_statement_renames_and_narrows_if_the_value_of_other_shards_stays(
    default: str, further: tuple[tuple[str, str, str], ...]
) -> None:
    """Alone, or with another column."""
    found = history_of("A", "B")
    bring(found, "A", (B, ("c", "bigint", f" DEFAULT {default}")), added="c")
    columns = (B, ("d", "int", " NOT NULL"), *further)
    added = [name for name, *_ in columns[1:]]
    final = bring(found, "A", columns, renamed="c", named="d", added=" ".join(added))
    if default == "4":
        assert [one.adds for one in final.given] == [True] * bool(further)
        assert final.own != bool(further)
        assert final.fills["d"] == Fill("4", "4")
    else:
        assert conflict(final) is ConflictKind.NAME


@pytest.mark.parametrize("has_left", [True, False])
@pytest.mark.parametrize(
    ("kind", "default", "wanted"),
    [("bigint", "", "bigint"), ("int", " NOT NULL", "int"), ("smallint", " NOT NULL", "int")],
)
def test_a_column_takes_the_values_by_its_former_name(
    kind: str, default: str, wanted: str, has_left: bool
) -> None:
    """Another shard has it by the new name, for more or less values, or has left with it."""
    found = history_of("A", "B")
    for member in "AB":
        bring(found, member, (B, ("c", "int", " DEFAULT 4")), added="c")
    former = ShardState(table((B, ("d", kind, f"{default} DEFAULT 4"))))
    found.take(HistoryEntry(EntryKind.TAKEN, "A", former, fills_with_d(found)))
    if has_left:
        found.take(HistoryEntry(EntryKind.LEFT, "A", gone=("A",)))
    final = bring(found, "B", (B, ("d", "int", " DEFAULT 4")), renamed="c", named="d", added="d")
    assert [(one.alike, one.widens) for one in final.given] == [(True, kind != "bigint")]
    assert final.after is not None
    column = final.after.columns["d"].column
    assert (column.type, column.nullable) == (wanted, True)


@pytest.mark.parametrize("shards", ["AB", "ABC"])
def test_the_fill_of_members_that_have_left_counts_only_for_rows_without_the_column(
    shards: str,
) -> None:
    """Rows of a third member have the fills of both columns, which differ."""
    found = history_of(*shards)
    bring(found, "A", (B, ("d", "int", " DEFAULT 5")), added="d")
    bring(found, "B", (B, ("c", "int", " DEFAULT 4")), added="c")
    after = (B, ("d", "int", " DEFAULT 4"))
    first = bring(found, "B", after, renamed="c", named="d", added="d")
    assert conflict(first) is ConflictKind.NAME
    found.take(HistoryEntry(EntryKind.LEFT, "A", gone=("A",)))
    final = bring(found, "B", after, renamed="c", named="d", added="d")
    if shards == "AB":
        assert [(one.fill, one.alike) for one in final.given] == [(Fill("5", "5"), False)]
    else:
        assert conflict(final) is ConflictKind.NAME


def fills_with_d(found: TargetHistory[str]) -> dict[str, Fill]:
    return {**found.state.fills, "d": Fill("4", "4")}


def test_two_names_with_other_fills_stay_beside_each_other() -> None:
    found = history_of("A", "B")
    bring(found, "A", (B, ("c", "int", " DEFAULT 4")), added="c")
    bring(found, "B", (B, ("d", "int", " DEFAULT 5")), added="d")
    behind = (B, ("d", "int", " DEFAULT 4"))
    assert conflict(bring(found, "A", behind, renamed="c", named="d", added="d"))


@pytest.mark.parametrize("reconciles", [True, False])
@pytest.mark.parametrize("kept", ["NULL", "4"])
def test_rows_with_both_fills_are_read_from_their_shards(kept: str, *, reconciles: bool) -> None:
    """The last of two shards renames a column that a third one was created with by the new name."""
    found = history_of("A", "B")
    for member in "AB":
        bring(found, member, (B, ("c", "int", f" DEFAULT {kept}")), added="c")
    created = ShardState(table((B, ("d", "int", " NOT NULL DEFAULT 5"))))
    fills = {**found.state.fills, "d": Fill("5", "5")}
    found.take(HistoryEntry(EntryKind.TAKEN, "C", created, fills))
    renaming = partial(
        bring,
        columns=(B, ("d", "int", f" DEFAULT {kept}")),
        renamed="c",
        named="d",
        added="d",
        reconciles=reconciles,
    )
    assert conflict(renaming(found, "A")) is ConflictKind.NAME
    final = renaming(found, "B")
    if reconciles:
        assert [(one.unclear, one.widens) for one in final.given] == [(True, True)]
        assert final.granted == ("A",)
        assert final.fills["d"].sql == "5"
        assert entry_of("B", final, ()).shard_only == ("d",)
    else:
        assert final.shard_state.open is not None
        assert "do not show" in final.shard_state.open.reason


@pytest.mark.parametrize(
    ("kept", "wanted"),
    [
        (Fill("NULL", "NULL"), "NOT (`c` IS NULL) AND `d` <=> 5"),
        (Fill("4", "4"), "NOT (`c` <=> 4) AND `d` <=> 5"),
        (None, "`d` <=> 5"),
    ],
)
def test_values_move_in_rows_of_renaming_members(kept: Fill | None, wanted: str) -> None:
    present = table((("c", "int", ""), ("d", "int", "")))
    moved = moved_values(TableName("s", "t"), GivenName("c", "d", Fill("5", "5"), kept), present)
    assert moved == f"UPDATE `s`.`t` SET `d` = `c` WHERE {wanted}"


def test_exec_gives_the_target_the_new_name_beside_the_old_one() -> None:
    found = history_of("A", "B")
    behind = (("c", "smallint", ""),)
    bring(found, "A", behind, renamed="b", named="c", added="c")
    settled = bring(found, "A", behind, Action.EXEC, renamed="b", named="c", added="c")
    assert settled.step
    assert not settled.own
    assert found.state.members["A"].stale == {"b"}
