"""Targets that get other names: their members and fills go with them."""

from __future__ import annotations

from replicator.sharding.optimistic.history import (
    EntryKind,
    HistoryEntry,
    TargetHistory,
    followed_entries,
)
from replicator.watermark import Place
from tests.support.optimistic_answers import B, bring, history_of

AT = Place(100, 0)


def test_the_members_of_a_renamed_target_are_there_at_once() -> None:
    """Two targets change places; what one member drops later, the target keeps for the others."""
    first, second = history_of("A", "B"), history_of("C")
    for member in "AB":
        bring(first, member, (B, ("c", "int", " DEFAULT 4")), added="c")
    moves = [("A", "t", "u", AT), ("B", "t", "u", AT), ("C", "u", "t", AT)]
    entries = followed_entries(1, moves, {"t": first, "u": second})
    fills = first.state.fills
    for name, history in (("t", first), ("u", second)):
        history.take(entries[name])
    assert second.state.members.keys() == {"A", "B"}
    assert first.state.members.keys() == {"C"}
    assert second.state.fills == fills
    assert not first.state.left
    second.take(HistoryEntry(EntryKind.RENAMED, "B2", renamed=(("B", "B2"),)))
    assert not bring(second, "B2", (B,), dropped="c").step
    assert second.state.members["B2"].stale == {"c"}


def test_a_former_name_has_no_members() -> None:
    first = history_of("A", "B")
    first.take(HistoryEntry(EntryKind.LEFT, "B", gone=("B",)))
    histories = {"t": first, "u": TargetHistory[str]()}
    entries = followed_entries(1, [("A", "t", "u", AT)], histories)
    for name, history in histories.items():
        history.take(entries[name])
    assert histories["u"].state.members.keys() == {"A"}
    assert not first.state.members
    assert not first.state.left
    assert first.followed == histories["u"].followed == 1


def test_the_members_of_a_target_stay_if_several_others_join_it() -> None:
    """They come from two targets, and what the member that was there lacks is not dropped."""
    first, second, third = history_of("A", "B"), history_of("C"), history_of("D")
    for member in "AB":
        bring(first, member, (B, ("c", "int", " DEFAULT 4")), added="c")
    moves = [("A", "t", "u", AT), ("B", "t", "u", AT), ("D", "v", "u", AT)]
    histories = {"t": first, "u": second, "v": third}
    second.take(followed_entries(1, moves, histories)["u"])
    assert second.state.members.keys() == {"A", "B", "C", "D"}
    assert second.state.fills["c"].sql == "4"
