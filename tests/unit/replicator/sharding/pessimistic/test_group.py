from __future__ import annotations

import pytest

from replicator.sharding.items import (
    Cutover,
    GroupState,
    HistoryError,
    Item,
    MemberState,
    Recorded,
    ResolvedItem,
    RowDecision,
    Template,
)
from replicator.sharding.pessimistic.group import Group
from replicator.watermark import Place, boundary

START = boundary(0)
APPLY, HOLD, SKIP = RowDecision.APPLY, RowDecision.HOLD, RowDecision.SKIP


def group(
    *members: str,
    known: int = 0,
    version: int = 0,
    cutovers: tuple[Cutover, ...] = (),
    extra: int = 0,
) -> Group[str, None]:
    """A group whose target's items are called d1, d2 …"""
    state = GroupState(version, tuple((name, MemberState(version, START)) for name in members))
    history = [ResolvedItem(f"d{number + 1}") for number in range(known + extra)]
    return Group("A", "T", state, START, known, history, cutovers)


def ddl(found: Group[str, None], member: str, text: str, transaction: int) -> int:
    return found.ddl(Item(text, (text,), member, Place(transaction, 0), None)).version


def test_rows_are_decided_by_version() -> None:
    found = group("a1", "a2")
    assert found.row("a1", Place(1, 1)) is APPLY
    assert ddl(found, "a1", "d1", 2) == 1
    assert found.row("a1", Place(3, 1)) is HOLD
    assert found.row("a2", Place(3, 2)) is APPLY
    assert found.rows_held == 1
    assert found.missing(found.items[1][0]) == ("a2",)
    assert found.open_items == (Place(2, 0),)


def test_older_rows_are_skipped_when_read_again() -> None:
    found = group("a1", "a2", known=1, cutovers=(Cutover(1, Place(5, 0)),))
    assert found.row("a1", Place(1, 1)) is SKIP
    ddl(found, "a1", "d1", 2)
    assert found.row("a1", Place(3, 1)) is APPLY
    assert found.row("a2", Place(4, 1)) is SKIP
    ddl(found, "a2", "d1", 5)
    assert found.row("a2", Place(6, 1)) is APPLY
    assert found.open_items == ()


def test_a_member_behind_its_cutover_is_a_broken_invariant() -> None:
    found = group("a1", known=1, cutovers=(Cutover(1, Place(5, 0)),))
    with pytest.raises(AssertionError, match="with version 0"):
        found.row("a1", Place(6, 1))


def test_events_come_in_order() -> None:
    found = group("a1")
    found.row("a1", Place(2, 1))
    with pytest.raises(AssertionError, match="comes after"):
        found.row("a1", Place(1, 1))


def test_ready_when_each_member_has_the_item() -> None:
    found = group("a1", "a2")
    ddl(found, "a1", "d1", 1)
    ddl(found, "a1", "d2", 2)
    assert not found.ready
    ddl(found, "a2", "d1", 3)
    assert found.ready


def test_a_member_that_leaves_can_make_the_group_ready() -> None:
    found = group("a1", "a2")
    ddl(found, "a1", "d1", 1)
    found.leave("a2", Place(2, 0))
    assert found.ready
    assert found.open_items == (Place(1, 0),)


def test_not_ready_before_an_earlier_reading_is_reached() -> None:
    state = GroupState(0, (("a1", MemberState(0, START)),))
    found: Group[str, None] = Group("A", "T", state, START, 0, (), (), applied=Place(4, 1))
    ddl(found, "a1", "d1", 1)
    assert not found.ready
    found.join("a2", Place(2, 0), template=None)
    found.row("a2", Place(4, 1))
    assert not found.ready
    ddl(found, "a2", "d1", 5)
    assert found.ready


def test_a_renamed_member_keeps_its_version_and_items() -> None:
    found = group("a1", "a2")
    ddl(found, "a1", "d1", 1)
    found.rename("a1", "a3", Place(2, 0))
    assert found.row("a3", Place(3, 1)) is HOLD
    assert [item.member for item in found.items[1]] == ["a3"]
    with pytest.raises(AssertionError, match="which is a member"):
        found.rename("a3", "a2", Place(4, 0))


def test_a_created_table_joins_like_a_member_or_like_the_target() -> None:
    found = group("a1", "a2")
    ddl(found, "a1", "d1", 1)
    assert found.templates(Place(2, 0)) == [Template(1, "a1"), Template(0, "a2"), Template(0)]
    found.join("a3", Place(2, 0), Template(1, "a1"))
    found.join("a4", Place(3, 0), template=None)
    assert found.row("a3", Place(4, 1)) is HOLD
    assert found.row("a4", Place(4, 2)) is APPLY
    assert found.missing(found.items[1][0]) == ("a2", "a4")


def test_joining_is_decided_as_it_was_when_it_is_read_again() -> None:
    """The target has changed since, but the table was created before."""
    found = group("a1", known=1, cutovers=(Cutover(1, Place(4, 0)),))
    ddl(found, "a1", "d1", 1)
    assert found.templates(Place(2, 0)) == [Template(1, "a1"), Template(0), Template(1)]
    found.join("a2", Place(2, 0), template=None)
    assert found.row("a2", Place(3, 1)) is SKIP
    ddl(found, "a2", "d1", 4)
    assert found.templates(Place(5, 0))[-2:] == [Template(1), Template(0)]


def test_a_created_table_is_granted_what_it_was_created_without() -> None:
    """Its own DDL is matched to the items that the others had, in their order."""
    found = group("a1", known=2, version=2)
    target = [template for template in found.templates(Place(1, 0)) if template.member is None]
    assert target == [Template(2), Template(1), Template(0)]
    found.join("a2", Place(1, 0), Template(0), [Template(0)])
    assert found.members["a2"] == MemberState(2, Place(1, 0), (1, 2))
    assert found.row("a2", Place(2, 1)) is APPLY
    ddl(found, "a2", "d1", 3)
    assert found.members["a2"] == MemberState(2, Place(3, 0), (2,))
    ddl(found, "a2", "d2", 4)
    ddl(found, "a2", "d3", 5)
    assert found.members["a2"] == MemberState(3, Place(5, 0))


def test_a_created_table_may_lack_items_that_the_target_was_created_with() -> None:
    earlier = [ResolvedItem("d0"), ResolvedItem("d-1")]
    state = GroupState(1, (("a1", MemberState(1, START)),))
    found: Group[str, None] = Group("A", "T", state, START, 1, [ResolvedItem("d1")])
    found.earlier = earlier
    at = Place(1, 0)
    versions = [template.version for template in found.templates(at)]
    assert versions == [1, 1, 0, -1, -2]
    assert all(template.version >= 1 for template in found.templates(at, 1))
    assert found.join("a2", at, Template(-1)) == MemberState(1, at, (0, 1))
    oldest = found.join("a3", at, Template(-2), [Template(-2), Template(-1)])
    assert oldest == MemberState(1, at, (-1, 0, 1))
    assert found.made_at(Template(1, "a3")) == -2
    item = Item("d0", ("d0",), "a2", Place(2, 0), None)
    assert found.ddl(item) == Recorded(0, awaited=True)
    assert found.members["a2"].awaited == (1,)
    assert found.row("a2", Place(3, 1)) is APPLY


def test_a_table_ahead_is_unmatched_until_it_is_gone() -> None:
    found = group("a1")
    found.join_ahead("a2", Place(1, 0))
    found.join_ahead("a3", Place(2, 0), waits=True)
    assert found.unmatched == {"a2": Place(1, 0)}
    found.rename("a2", "a4", Place(3, 0))
    assert found.unmatched == {"a4": Place(1, 0)}
    found.leave("a4", Place(4, 0))
    assert not found.unmatched


def test_an_item_that_a_structure_does_not_show_may_come_or_not() -> None:
    found = group("a1", known=2, version=2)
    for name in ("a2", "a3"):
        found.join(name, Place(1, 0), Template(2), [Template(2), Template(1)])
    assert found.members["a2"] == MemberState(2, Place(1, 0), (), (2,))
    ddl(found, "a2", "d2", 2)
    assert found.members["a2"] == MemberState(2, Place(2, 0))
    ddl(found, "a3", "d3", 3)
    assert found.members["a3"] == MemberState(3, Place(3, 0))


def test_a_created_table_may_lack_items_that_are_still_open() -> None:
    """It was created like a member that is ahead, and has made only the first of its items."""
    found = group("a1")
    for number in (1, 2, 3):
        ddl(found, "a1", f"d{number}", number)
    found.join("a2", Place(4, 0), Template(3, "a1"), [Template(3, "a1"), Template(0)], earliest=0)
    first = Item("d1", ("d1",), "a2", Place(5, 0), None)
    assert found.ddl(first, fits={1}) == Recorded(1, awaited=True)
    assert found.members["a2"].awaited == (2, 3)
    assert found.row("a2", Place(6, 1)) is HOLD
    assert ddl(found, "a2", "d2", 7) == 2
    assert ddl(found, "a2", "d3", 8) == 3
    assert found.members["a2"] == MemberState(3, Place(8, 0))


def test_what_a_later_version_shows_is_tried_last() -> None:
    """A table that fits both, like one whose column was dropped again, was applied as the older."""
    found = group("a1", known=2, cutovers=(Cutover(1, Place(1, 0)), Cutover(2, Place(9, 0))))
    ddl(found, "a1", "d1", 1)
    target = [template for template in found.templates(Place(2, 0)) if template.member is None]
    assert target == [Template(1), Template(0), Template(2)]


def test_a_table_that_is_like_nothing_waits_to_be_read_again() -> None:
    found = group("a1")
    found.join_ahead("a2", Place(1, 0))
    assert found.row("a2", Place(2, 1)) is HOLD
    assert found.open_items == (Place(1, 0),)
    found.leave("a2", Place(3, 0))
    ddl(found, "a1", "d1", 4)
    found.cut_over(ResolvedItem("d1"), boundary(0), forced=False)
    assert set(found.open_items) == {Place(4, 0), Place(1, 0)}
    assert not found.can_adopt


def test_a_group_that_held_nothing_adopts() -> None:
    found = group("a1")
    ddl(found, "a1", "d1", 1)
    ddl(found, "a1", "d2", 2)
    assert found.row("a1", Place(3, 1)) is HOLD
    assert not found.can_adopt
    cutover = found.cut_over(ResolvedItem("d1"), START, forced=False)
    assert cutover == Cutover(1, Place(3, 1))
    found.adopt()
    assert found.known == 1
    assert found.open_items == (Place(2, 0),)
    found.cut_over(ResolvedItem("d2"), START, forced=False)
    assert not found.can_adopt
    with pytest.raises(AssertionError, match="were held"):
        found.adopt()


def test_a_cutover_needs_readiness_unless_it_is_forced() -> None:
    found = group("a1", "a2")
    ddl(found, "a1", "d1", 1)
    found.row("a2", Place(2, 1))
    with pytest.raises(AssertionError, match="not ready for 1"):
        found.cut_over(ResolvedItem("d1"), START, forced=False)
    found.cut_over(ResolvedItem("d1", unlocked=True), START, forced=True)
    assert found.row("a2", Place(3, 1)) is HOLD
    assert found.members["a2"].awaited == (1,)


def test_a_cutover_of_a_silent_group_does_not_move_the_source_back() -> None:
    found = group()
    cutover = found.cut_over(ResolvedItem("d1"), boundary(7), forced=False)
    assert cutover.at == START
    assert found.open_items == (boundary(7),)


def forced(*history: ResolvedItem) -> Group[str, None]:
    state = GroupState(0, (("a1", MemberState(0, START)),))
    cutovers = [Cutover(n + 1, START, forced=True) for n in range(len(history))]
    return Group("A", "T", state, START, len(history), history, cutovers)


def test_a_forced_members_own_ddl_is_ignored_however_it_is_spelt() -> None:
    found = forced(ResolvedItem("add c default 0", unlocked=True))
    assert found.row("a1", Place(1, 1)) is APPLY
    recorded = found.ddl(Item("add c default -1", (), "a1", Place(2, 0), None))
    assert (recorded.version, recorded.awaited) == (1, True)
    assert found.members["a1"] == MemberState(1, Place(2, 0))
    assert ddl(found, "a1", "add d", 3) == 2


def test_a_skipped_item_is_matched_only_by_its_own_text() -> None:
    other = forced(ResolvedItem("add c", unlocked=True, skipped=True))
    assert ddl(other, "a1", "add d", 1) == 2
    assert other.members["a1"].awaited == ()
    same = forced(ResolvedItem("add c", unlocked=True, skipped=True))
    assert ddl(same, "a1", "add c", 1) == 1


def test_of_several_forced_items_the_one_with_the_text_is_matched() -> None:
    found = forced(ResolvedItem("x", unlocked=True), ResolvedItem("y", unlocked=True))
    assert found.members["a1"].awaited == (1, 2)
    assert ddl(found, "a1", "y", 1) == 2
    assert not found.members["a1"].awaited


def test_an_item_that_differs_from_history_is_an_error_unless_unlocked() -> None:
    found = group("a1", known=1, cutovers=(Cutover(1, Place(5, 0)),))
    with pytest.raises(HistoryError, match="number 1 of the target T was 'd1'"):
        ddl(found, "a1", "other", 1)
    state = GroupState(0, (("a1", MemberState(0, START)),))
    cutovers = [Cutover(1, Place(5, 0), forced=True)]
    history = [ResolvedItem("d1", unlocked=True)]
    unlocked: Group[str, None] = Group("A", "T", state, START, 1, history, cutovers)
    assert ddl(unlocked, "a1", "other", 1) == 1
    assert unlocked.row("a1", Place(6, 1)) is APPLY


def test_a_cutover_inside_a_transaction_parts_its_rows() -> None:
    found = group("a1", cutovers=(Cutover(1, Place(3, 2), forced=True),), extra=1)
    assert found.next_cutover == Place(3, 2)
    assert [found.row("a1", Place(3, ordinal)) for ordinal in (1, 2, 3)] == [APPLY, APPLY, HOLD]
    assert found.next_cutover is None


def test_state_saved_behind_an_open_item_is_refused() -> None:
    state = GroupState(0, (("a1", MemberState(1, START)),))
    with pytest.raises(AssertionError, match="behind an open item"):
        Group("A", "T", state, START, 0, ())


def test_a_group_is_not_ready_while_a_created_table_may_lack_the_next_item() -> None:
    """It waits for something else than the next item, and is compared again when it is read."""
    found = group("a1")
    ddl(found, "a1", "d1", 1)
    found.join_ahead("a2", Place(2, 0))
    assert found.ready
    found.join_ahead("a3", Place(3, 0), waits=True)
    assert not found.ready
    found.rename("a3", "a4", Place(4, 0))
    assert not found.ready
    found.leave("a4", Place(5, 0))
    assert found.ready


def test_a_member_may_make_the_items_later_that_it_shows() -> None:
    """Its own statement comes after two items of the others, whose outcome it shows."""
    found = group("a1", known=4)

    def made(text: str, transaction: int, least: int = 0) -> Recorded:
        return found.ddl(Item(text, (text,), "a1", Place(transaction, 0), None), least)

    assert made("d3", 1, least=3) == Recorded(3, awaited=False)
    assert made("d1", 2) == Recorded(1, awaited=True)
    assert made("d2", 3) == Recorded(2, awaited=True)
    assert made("d4", 4) == Recorded(4, awaited=False)


def test_a_cutover_is_passed_where_its_source_has_no_more_events() -> None:
    found = group("a1", known=0, extra=1, cutovers=(Cutover(1, Place(5, 1), forced=False),))
    ddl(found, "a1", "d1", 3)
    assert (found.base, found.next_cutover) == (0, Place(5, 1))
    found.read_past(Place(5, 1))
    assert (found.base, found.next_cutover) == (1, None)
    assert found.row("a1", Place(7, 1)) is HOLD
