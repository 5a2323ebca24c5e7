"""Plans of a batch as they are sent: what shards share once, each shard's name with its plan."""

from __future__ import annotations

import pickle
from dataclasses import replace

from replicator.mysql.names import Member, TableName
from replicator.pipeline.plans.plan import (
    Literal,
    PlanCollector,
    TablePlan,
    TargetColumn,
    TargetTable,
)
from replicator.rows.values.column_format import ColumnFormat
from tests.support.streams.row_columns import plan_list

ONE = TablePlan(
    TargetTable(3, "s", "t", 4, replace=True),
    Member("a", TableName("x", "t1")),
    tuple(ColumnFormat(f"c{number}", 3, 0) for number in range(30)),
    tuple(range(30)),
    tuple(TargetColumn(f"c{number}", Literal.NUMBER) for number in range(30)),
    (0,),
    (0,),
)
TWO = replace(ONE, target=replace(ONE.target, number=9, table="u"))


def member(number: int) -> Member:
    return Member("b", TableName("x", f"t{number}"))


def test_plans_are_numbered_by_what_they_are_and_by_their_shard() -> None:
    collector = PlanCollector()
    steps = [(ONE, 1), (TWO, 2), (ONE, 3), (ONE, 1), (TWO, 2), (TWO, 1)]
    assert [collector.number(plan, member(m)) for plan, m in steps] == [0, 1, 2, 0, 1, 3]
    plans = collector.collected()
    assert plans.kinds == (ONE, TWO)
    assert len(plans) == 4
    assert [plans.plan(number) for number in range(4)] == [
        replace(plan, member=member(m)) for plan, m in ((ONE, 1), (TWO, 2), (ONE, 3), (TWO, 1))
    ]
    assert plans.targets.tolist() == [3, 9, 3, 9]


def test_plans_that_are_equal_and_no_one_object_stay_apart() -> None:
    plans = plan_list([ONE, replace(ONE), replace(ONE, member=member(2))])
    assert len(plans.kinds) == len(plans) == 3
    assert [plans.member(number) for number in range(3)] == [ONE.member, ONE.member, member(2)]


def test_another_shard_makes_hardly_more_to_send() -> None:
    def size(shards: int) -> int:
        collector = PlanCollector()
        for number in range(shards):
            collector.number(ONE, member(number))
        return len(pickle.dumps(collector.collected(), 5))

    assert size(1000) < size(1) + 1000 * 60


def test_none() -> None:
    plans = PlanCollector().collected()
    assert (len(plans), plans.targets.tolist()) == (0, [])
