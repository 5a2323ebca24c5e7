from __future__ import annotations

import pytest

from actors.writing.segment_tracker import Boundary, Resume
from replicator.sharding.items import (
    Cutover,
    GroupState,
    Item,
    MemberState,
    ResolvedItem,
    RowDecision,
)
from replicator.sharding.open_locks import DisputedError, UnlockError
from replicator.sharding.pessimistic.group import Group
from replicator.sharding.pessimistic.lock import TargetLock
from replicator.watermark import Place, boundary

START = boundary(0)
RESUME = dict.fromkeys("ABC", START)


def lock(**members: tuple[str, ...]) -> tuple[TargetLock[str, None], dict[str, Group[str, None]]]:
    found: TargetLock[str, None] = TargetLock("T", members)
    groups = {}
    for source, names in members.items():
        state = GroupState(0, tuple((name, MemberState(0, START)) for name in names))
        groups[source] = found.start(source, state, START)
    return found, groups


def ddl(group: Group[str, None], member: str, text: str, transaction: int) -> None:
    group.ddl(Item(text, (text,), member, Place(transaction, 0), None))


def test_the_first_ready_source_owns_the_lock() -> None:
    found, groups = lock(A=("a1", "a2"), B=("b1",))
    ddl(groups["A"], "a1", "x", 1)
    found.look()
    assert found.owner is None
    ddl(groups["B"], "b1", "x", 1)
    found.look()
    ddl(groups["A"], "a2", "x", 2)
    found.look()
    assert found.owner == "B"
    resolution = found.resolve(RESUME)
    assert (resolution.version, resolution.owner, resolution.item.member) == (1, "B", "b1")
    assert resolution.cutovers == {"A": Cutover(1, Place(2, 0)), "B": Cutover(1, Place(1, 0))}
    assert found.may_execute
    found.executed()
    assert (found.version, found.pending, found.view()) == (1, None, None)
    assert not found.ready("A")


def test_a_source_without_members_is_not_waited_for() -> None:
    found, groups = lock(A=("a1",), B=())
    assert not found.agreed
    ddl(groups["A"], "a1", "x", 1)
    assert found.agreed


def test_a_source_that_restarts_is_waited_for() -> None:
    found, groups = lock(A=("a1",), B=())
    ddl(groups["A"], "a1", "x", 1)
    found.look()
    found.stop("B")
    assert not found.agreed
    found.stop("A")
    assert found.owner is None


@pytest.mark.parametrize("waits", [False, True])
def test_a_table_ahead_is_in_no_conflict_since_its_items_have_no_number_yet(waits: bool) -> None:
    found, groups = lock(A=("a1",), B=("b1",))
    groups["A"].join_ahead("a2", Place(1, 0), waits=waits)
    ddl(groups["A"], "a2", "y", 2)
    ddl(groups["B"], "b1", "x", 1)
    ddl(groups["B"], "b1", "z", 2)
    assert found.conflict() is None


def test_different_statements_conflict_however_far_ahead() -> None:
    found, groups = lock(A=("a1",), B=("b1",))
    for number, text in enumerate(("x", "y", "z"), 1):
        ddl(groups["A"], "a1", text, number)
    for number, text in enumerate(("x", "z", "y"), 1):
        ddl(groups["B"], "b1", text, number)
    conflict = found.conflict()
    assert conflict is not None
    assert conflict.version == 2
    assert [item.text for item in conflict.ours.items] == ["y", "z"]
    assert [item.text for item in conflict.theirs.items] == ["z", "y"]
    assert found.agreed
    found.resolve(RESUME)
    found.executed()
    for group in groups.values():
        group.adopt()
    assert not found.agreed


def test_a_conflict_ends_if_a_source_that_is_read_again_has_no_other_statement() -> None:
    found, groups = lock(A=("a1",), B=("b1",))
    for version, (ours, theirs) in enumerate((("x", "x"), ("y", "z"), ("u", "v")), 1):
        ddl(groups["A"], "a1", ours, version)
        ddl(groups["B"], "b1", theirs, version)
    assert (first := found.conflict()) is not None
    assert first.version == 2
    found.stop("B")
    assert found.conflict() is None
    again = found.start("B", GroupState(0, (("b1", MemberState(0, START)),)), START)
    for version, text in enumerate(("x", "y", "v"), 1):
        ddl(again, "b1", text, version)
        conflict = found.conflict()
        assert (conflict and conflict.version) == (3 if version == 3 else None)


def test_a_different_order_in_one_source_is_a_conflict() -> None:
    found, groups = lock(A=("a1", "a2"))
    ddl(groups["A"], "a1", "x", 1)
    ddl(groups["A"], "a2", "y", 2)
    view = found.view()
    assert view is not None
    assert view.conflict is not None
    assert (view.conflict.ours.source, view.conflict.theirs.source) == ("A", "A")
    assert not found.agreed


def test_unlock_executes_the_named_sources_statement() -> None:
    found, groups = lock(A=("a1",), B=("b1", "b2"))
    ddl(groups["A"], "a1", "c default 0", 1)
    ddl(groups["B"], "b1", "c default -1", 1)
    groups["B"].row("b2", Place(2, 1))
    resolution = found.unlock(RESUME, owner="B")
    assert resolution.item.text == "c default -1"
    assert resolution.cutovers["B"] == Cutover(1, Place(2, 1), forced=True)
    assert found.may_execute
    assert groups["B"].row("b2", Place(3, 1)) is RowDecision.HOLD
    with pytest.raises(UnlockError, match="already being resolved"):
        found.unlock(RESUME)


def test_different_statements_are_not_chosen_from_by_chance() -> None:
    found, groups = lock(A=("a1",), B=("b1", "b2"), C=("c1",))
    ddl(groups["A"], "a1", "c default 0", 1)
    ddl(groups["B"], "b1", "c default -1", 1)
    ddl(groups["B"], "b2", "c default -1", 2)
    with pytest.raises(DisputedError, match="shards have different statements"):
        found.unlock(RESUME)
    view = found.view()
    assert view is not None
    assert [(c.source, c.item.text, dict(c.members), c.by_member) for c in view.choices] == [
        ("A", "c default 0", {"A": ("a1",)}, False),
        ("B", "c default -1", {"B": ("b1", "b2")}, False),
    ]
    assert found.pending is None
    assert found.unlock(RESUME, owner="B").item.text == "c default -1"


def test_of_a_source_whose_shards_differ_the_shard_is_named() -> None:
    found, groups = lock(A=("a1", "a2"), B=("b1",))
    ddl(groups["A"], "a1", "x", 1)
    ddl(groups["A"], "a2", "y", 2)
    ddl(groups["B"], "b1", "x", 1)
    with pytest.raises(DisputedError, match="shards of source A have different statements"):
        found.unlock(RESUME, owner="A")
    with pytest.raises(UnlockError, match="b1 of source A has no statement"):
        found.unlock(RESUME, owner="A", member="b1")
    assert [(c.source, c.item.text, c.by_member) for c in found.choices()] == [
        ("B", "x", False),
        ("A", "y", True),
    ]
    assert found.unlock(RESUME, owner="A", member="a2").item.text == "y"


def test_what_is_skipped_needs_no_choice() -> None:
    found, groups = lock(A=("a1",), B=("b1",))
    ddl(groups["A"], "a1", "x", 1)
    ddl(groups["B"], "b1", "y", 1)
    assert found.unlock(RESUME, skip=True).resolved.skipped


def test_unlock_says_why_it_cannot() -> None:
    found, groups = lock(A=("a1",), B=("b1",))
    with pytest.raises(UnlockError, match="there is no lock on T"):
        found.unlock(RESUME)
    ddl(groups["A"], "a1", "x", 1)
    with pytest.raises(UnlockError, match="source B has no statement"):
        found.unlock(RESUME, owner="B")
    found.stop("B")
    with pytest.raises(UnlockError, match=r"while sources restart or are blocked \(B\)"):
        found.unlock(RESUME)


def test_a_statement_that_takes_rows_away_is_not_forced_on_shards_without_it() -> None:
    found, groups = lock(A=("a1",), B=("b1",))
    groups["A"].ddl(Item("drop p", ("drop p",), "a1", Place(1, 0), None, discards_rows=True))
    with pytest.raises(UnlockError, match=r"removes rows.*--action skip"):
        found.unlock(RESUME)
    assert found.unlock(RESUME, skip=True).resolved.skipped


def test_a_statement_that_takes_rows_of_retired_shards_away_can_be_skipped_only() -> None:
    item = Item("truncate", ("truncate",), "a1", Place(1, 0), None, discards_rows=True)
    found: TargetLock[str, None] = TargetLock("T", ("A",), outside=("b: retired",))
    group = found.start("A", GroupState(0, (("a1", MemberState(0, START)),)), START)
    group.ddl(item)
    with pytest.raises(UnlockError, match=r"are retired.*: unlock it with --action skip") as error:
        found.unlock(RESUME)
    assert "run it" not in str(error.value)
    assert found.unlock(RESUME, skip=True).resolved.skipped


def test_a_decision_survives_a_crash() -> None:
    found, groups = lock(A=("a1",), B=("b1",))
    ddl(groups["A"], "a1", "x", 1)
    groups["B"].row("b1", Place(4, 1))
    decided = found.unlock(RESUME, skip=True)
    assert decided.resolved == ResolvedItem("x", unlocked=True, skipped=True)

    again = TargetLock("T", "AB", (), {s: [t] for s, t in decided.cutovers.items()}, decided)
    state = GroupState(0, (("a1", MemberState(0, START)),))
    a = again.start("A", state, START)
    b = again.start("B", GroupState(0, (("b1", MemberState(0, START)),)), START)
    assert not again.may_execute
    ddl(a, "a1", "x", 1)
    assert b.row("b1", Place(4, 1)) is RowDecision.APPLY
    assert again.may_execute
    assert b.row("b1", Place(5, 1)) is RowDecision.HOLD
    again.executed()
    assert a.can_adopt
    assert not b.can_adopt


def test_the_view_shows_what_is_waited_for() -> None:
    found, groups = lock(A=("a1",), B=("b1", "b2"))
    assert found.view() is None
    ddl(groups["A"], "a1", "x", 1)
    groups["A"].row("a1", Place(2, 1), count=5)
    found.look()
    view = found.view()
    assert view is not None
    assert (view.version, view.owner, view.ready, view.rows_held) == (1, "A", ("A",), 5)
    assert view.missing == {"B": ("b1", "b2")}
    assert not view.resolving


def test_a_source_is_saved_before_its_open_items() -> None:
    resume = Resume(Boundary(0, "s0"))
    resume.applied(Boundary(3, "s3"), tuple)
    assert resume.boundary(()) == Boundary(3, "s3")
    for key in range(5, 31, 2):
        resume.applied(Boundary(key, f"s{key}"), lambda: [Place(4, 0), Place(7, 0)])
    assert resume.boundary([Place(4, 0), Place(7, 0)]) == Boundary(3, "s3")
    assert resume.boundary([Place(7, 0)]) == Boundary(7, "s7")
    assert resume.boundary(()) == Boundary(29, "s29")
    with pytest.raises(AssertionError, match="behind the open item"):
        resume.boundary([Place(2, 0)])


def test_thousands_of_open_items_are_not_compared_with_each_boundary() -> None:
    items: list[Place] = []
    asked = 0

    def open_items() -> list[Place]:
        nonlocal asked
        asked += 1
        return items

    resume = Resume(Boundary(0, 0))
    for key in range(1, 3001):
        items.append(Place(key, 0))
        resume.applied(Boundary(key, key), open_items)
    assert asked < 20
    assert [resume.boundary(items[first:]).key for first in (0, 1499)] == [1, 1500]


def test_the_event_of_a_pending_item_is_the_one_that_was_read_last() -> None:
    lock: TargetLock[str, str] = TargetLock("T", ["A"])
    state = GroupState(0, (("a1", MemberState(0, START)),))

    def read(event: str) -> None:
        group = lock.start("A", state, START)
        group.ddl(Item("x", ("x",), "a1", Place(1, 0), event))

    read("first")
    lock.look()
    lock.resolve(RESUME)
    assert lock.pending_item.event == "first"
    lock.stop("A")
    assert lock.pending_item.event == "first"
    read("second")
    assert lock.pending_item.event == "second"


def test_a_pending_item_keeps_its_member_when_that_is_renamed() -> None:
    found, groups = lock(A=("a1",))
    ddl(groups["A"], "a1", "x", 1)
    found.look()
    decided = found.resolve(RESUME).item
    groups["A"].rename("a1", "a2", Place(2, 0))
    assert found.pending_item == decided


def test_an_item_is_forgotten_with_its_event_when_the_group_adopts_its_version() -> None:
    found, groups = lock(A=("a1",))
    group = groups["A"]
    for number, text in enumerate("xyz"):
        ddl(group, "a1", text, number + 1)
        found.look()
        found.resolve(RESUME)
        found.executed()
        group.adopt()
        assert group.items == {}
