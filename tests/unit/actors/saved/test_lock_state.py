"""Decisions as text for the meta tables, and back."""

from __future__ import annotations

from dataclasses import replace

from actors.saved.lock_state import (
    ShardStatement,
    dump_group,
    earlier_record,
    histories,
    load_group,
    record_of,
)
from replicator.binlog.segments.segment import Statement
from replicator.mysql.names import TableName
from replicator.mysql.session_context.statement_context import StatementContext
from replicator.sharding.items import Cutover, GroupState, Item, MemberState, ResolvedItem
from replicator.sharding.pessimistic.lock import Resolution
from replicator.watermark import Place

TARGET = TableName("m.n", "t")
SHARD = TableName("s.x", "y`.z")
CONTEXT = StatementContext(5, "+02:00", 17, (8, 8, 33), True, True, "latin1_swedish_ci")
EVENT = ShardStatement(
    Statement("s", "ALTER TABLE t1 ADD c INT", 9, 1700000000, CONTEXT, "b.000001", 9),
    ("ALTER TABLE m.t ADD c BIGINT",),
)
ITEM = Item("alter", ("ALTER TABLE `m.n`.`t` ADD c INT",), SHARD, Place(9, 0), EVENT)
RESOLUTION = Resolution(
    1,
    "a",
    ITEM,
    ResolvedItem("alter"),
    {"a": Cutover(1, Place(9, 0)), "b": Cutover(1, Place(7, 2))},
)


def test_a_pending_item_comes_back_with_its_event() -> None:
    history = histories([record_of(TARGET, RESOLUTION)])[TARGET]
    assert history.pending == RESOLUTION
    assert history.pending.item.event == EVENT
    assert history.cutovers == {"a": [Cutover(1, Place(9, 0))], "b": [Cutover(1, Place(7, 2))]}
    assert history.history == []


def test_an_executed_item_is_history() -> None:
    history = histories([replace(record_of(TARGET, RESOLUTION), done=True)])[TARGET]
    assert (history.pending, history.history) == (None, [ResolvedItem("alter")])


def test_items_before_the_first_version_are_no_part_of_the_history() -> None:
    found = [
        earlier_record(TARGET, version, "a", replace(ITEM, text=f"d{version}"), None)
        for version in (-1, 0)
    ]
    assert all(record.done and not record.transaction for record in found)
    history = histories([*found, replace(record_of(TARGET, RESOLUTION), done=True)])[TARGET]
    assert history.earlier == [ResolvedItem("d0"), ResolvedItem("d-1")]
    assert history.history == [ResolvedItem("alter")]
    assert history.versions == [1]


def test_the_later_items_of_members_that_show_earlier_ones_are_saved() -> None:
    shown = {("a", Place(7, 0)): frozenset({1, 2})}
    record = replace(record_of(TARGET, RESOLUTION, shown=shown), done=True)
    assert histories([record])[TARGET].shown == shown


def test_members_whose_names_read_the_same_with_a_dot_between_stay_two() -> None:
    members = tuple(
        (name, MemberState(version, Place(3, 1), (1,)))
        for version, name in enumerate((TableName("x", "y.z"), TableName("x.y", "z")), 1)
    )
    assert load_group(dump_group(GroupState(0, members))) == GroupState(0, members)


def test_what_the_target_was_before_an_item_is_saved_with_it() -> None:
    record = record_of(TARGET, RESOLUTION, "the structure")
    assert histories([record])[TARGET].structures == {RESOLUTION.version - 1: "the structure"}
    older = histories([record_of(TARGET, RESOLUTION)])
    assert older[TARGET].structures == {}
