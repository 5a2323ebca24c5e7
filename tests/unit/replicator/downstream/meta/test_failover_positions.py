"""Places of one server's binlog as those of another one."""

from __future__ import annotations

import pytest

from actors.saved.lock_state import (
    SavedDecision,
    ShardStatement,
    dump_decision,
    dump_group,
    load_decision,
)
from actors.saved.lock_state import load_group as load
from actors.task.failover.failover import moved_decision, moved_group
from replicator.binlog.segments.segment import Statement
from replicator.downstream.meta.failover_positions import FailoverPositions, UnknownPlaceError
from replicator.mysql.names import TableName
from replicator.sharding.items import Cutover, GroupState, MemberState, ResolvedItem
from replicator.watermark import Place, Reached, Watermark

MOVES = FailoverPositions(1000, 50, {1200: 70, 1400: 90}, {Place(1300, 4): 85})


def test_what_stands_before_the_saved_position_keeps_its_order_and_comes_before_everything() -> (
    None
):
    places = [-30, 1, 400, 999]
    moved = [MOVES.key(place) for place in places]
    assert moved == sorted(set(moved))
    assert max(moved) < 0
    assert MOVES.key(0) == 0


def test_however_often_servers_change_a_place_fits_into_its_column() -> None:
    key = 5
    for _ in range(100):
        key = FailoverPositions((1 << 61) + 7, 50).key(key)
        assert -(1 << 63) < key < 0


def test_what_stands_behind_it_is_where_the_same_transactions_are() -> None:
    assert (MOVES.key(1000), MOVES.key(1200), MOVES.key(1400)) == (50, 70, 90)
    assert MOVES.place(Place(1200, 0)) == Place(70, 0)
    assert MOVES.place(Place(1000, -1)) == Place(50, -1)
    assert MOVES.place(Place(1300, 4)) == Place(85, -1)
    assert MOVES.place(Place(999, 3)) == Place(-1, 3)


@pytest.mark.parametrize("place", [Place(1300, 5), Place(1201, 0), Place(1200, 2)])
def test_no_place_is_guessed(place: Place) -> None:
    with pytest.raises(UnknownPlaceError):
        MOVES.place(place)


def test_a_watermark_inside_a_transaction_has_no_gtids() -> None:
    reached = Reached(500, "0-1-7")
    assert reached.gtid_of(Watermark(0, 499, 12)) == "0-1-7"
    assert reached.gtid_of(Watermark(0, 500, 12)) == ""


def test_a_group_and_a_decision_move() -> None:
    name = TableName("s", "t")
    group = GroupState(1, ((name, MemberState(1, Place(900, 0), (2,))),))
    assert load(moved_group(dump_group(group), MOVES.place)) == GroupState(
        1, ((name, MemberState(1, Place(-100, 0), (2,))),)
    )
    cutovers = {"a": Cutover(1, Place(1400, 0)), "b": Cutover(1, Place(1200, 0))}
    event = ShardStatement(Statement("s", "ALTER", 1200, 7))
    text = dump_decision(SavedDecision(ResolvedItem("x"), cutovers, 0, event))
    own = load_decision(moved_decision(text, "a", "a", MOVES.place, MOVES.before))
    assert own.cutovers == {"a": Cutover(1, Place(90, 0)), "b": Cutover(1, Place(1200, 0))}
    assert own.event.statement.transaction == 70
    other = load_decision(moved_decision(text, "b", "a", MOVES.place, MOVES.before))
    assert other.cutovers["b"] == Cutover(1, Place(70, 0))
    assert other.event.statement.transaction == 1200


@pytest.mark.parametrize(
    ("at", "now"),
    [
        (Place(1500, 3), Place(90, 0)),
        (Place(1400, 2), Place(70, 0)),
        (Place(1100, 1), Place(50, -1)),
        (Place(900, 1), Place(-100, 1)),
    ],
)
def test_a_cutover_at_a_row_moves_back_to_the_last_statement(at: Place, now: Place) -> None:
    event = ShardStatement(Statement("s", "ALTER", 1200, 7))
    text = dump_decision(SavedDecision(ResolvedItem("x"), {"a": Cutover(1, at)}, 0, event))
    moved = load_decision(moved_decision(text, "a", "b", MOVES.place, MOVES.before))
    assert moved.cutovers == {"a": Cutover(1, now)}


def test_a_forced_cutover_at_a_row_does_not() -> None:
    event = ShardStatement(Statement("s", "ALTER", 1200, 7))
    cutovers = {"a": Cutover(1, Place(1500, 3), forced=True)}
    text = dump_decision(SavedDecision(ResolvedItem("x"), cutovers, 0, event))
    with pytest.raises(UnknownPlaceError):
        moved_decision(text, "a", "b", MOVES.place, MOVES.before)
