"""One plan for all shards of a target that are alike, and what it shares with other targets'."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.binlog.events.column_types import ColumnType
from replicator.binlog.events.table_map import OptionalMetadata, TableMap
from replicator.mysql.names import Member, TableName
from replicator.pipeline.plans.plan import TablePlan
from replicator.pipeline.plans.planning import MisfitError, PlanCache, plan_table
from replicator.routing.columns.member_columns import AS_THEY_ARE, ExtractedColumn, MemberColumns
from replicator.schema.structure.structure import Column, Table, UniqueKey

ID = Column("id", "int(11)", nullable=False)
NAME = Column("name", "varchar(20)", "utf8mb4")
KEYS = (UniqueKey("PRIMARY", ("id",)),)
TARGET = Table("m", "t", (ID, NAME), KEYS, "CREATE TABLE `t` (…)")


def shard(number: int) -> tuple[Member, Table, TableMap]:
    name = f"t_{number}"
    return (
        Member("a", TableName("s", name)),
        Table("s", name, (ID, NAME), KEYS, f"CREATE TABLE `{name}` (…)"),
        TableMap(
            *("s", name, (ColumnType.LONG, ColumnType.VARCHAR), (0, 80), (False, True)),
            OptionalMetadata(),
        ),
    )


def planned(plans: PlanCache, number: int, target: Table = TARGET) -> TablePlan:
    member, structure, table_map = shard(number)
    return plans.plan(member, structure, table_map, target, 7, 4, AS_THEY_ARE)


def test_alike_shards_have_the_same_plan_but_for_their_names() -> None:
    plans = PlanCache()
    first, second = planned(plans, 1), planned(plans, 2)
    assert first is second
    for number in (1, 2):
        member, structure, table_map = shard(number)
        made = plan_table(member, structure, table_map, TARGET, 7, 4)
        assert replace(first, member=member) == made


def test_alike_targets_have_the_same_plan_but_for_their_names() -> None:
    plans = PlanCache()
    first = planned(plans, 1)
    member, structure, table_map = shard(2)
    other = Table("m", "other", (ID, NAME), KEYS, "CREATE TABLE `other` (…)")
    second = plans.plan(member, structure, table_map, other, 8, 4, AS_THEY_ARE)
    assert second == plan_table(member, structure, table_map, other, 8, 4)
    assert second.columns is first.columns
    assert second.target_columns is first.target_columns
    assert plans.plan(member, structure, table_map, other, 8, 4, AS_THEY_ARE) is second
    renamed = replace(other, schema="n")
    third = plans.plan(member, structure, table_map, renamed, 8, 4, AS_THEY_ARE)
    assert third == plan_table(member, structure, table_map, renamed, 8, 4)


def test_a_target_whose_key_has_a_period_is_like_no_other() -> None:
    plans = PlanCache()
    member, structure, table_map = shard(1)
    periods = replace(
        TARGET, name="u", create_sql="  PRIMARY KEY (`id`,`p` WITHOUT OVERLAPS)\n", keys=KEYS
    )
    for number, target in enumerate((TARGET, periods, TARGET)):
        plan = plans.plan(member, structure, table_map, target, number, 4, AS_THEY_ARE)
        assert plan == plan_table(member, structure, table_map, target, number, 4)
        assert plan.target.replace is (target is TARGET)


def test_what_makes_another_plan_is_told_apart() -> None:
    plans = PlanCache()
    member, structure, table_map = shard(1)
    given = structure, table_map, TARGET, 7, 4, AS_THEY_ARE
    plan = plans.plan(member, *given)
    longer = replace(TARGET, columns=(ID, replace(NAME, type="varchar(40)")))
    more = replace(TARGET, columns=(*TARGET.columns, Column("shard", "varchar(9)", "utf8mb4")))
    extracted = MemberColumns((ExtractedColumn("shard", "1"),))
    full = replace(table_map, optional=OptionalMetadata(names=("id", "name")))
    others = [
        (replace(structure, keys=()), *given[1:]),
        (structure, full, *given[2:]),
        (structure, table_map, longer, *given[3:]),
        (structure, table_map, TARGET, 8, 4, AS_THEY_ARE),
        (structure, table_map, TARGET, 7, 1, AS_THEY_ARE),
        (structure, table_map, more, 7, 4, extracted),
    ]
    for other in others:
        assert plans.plan(member, *other) == plan_table(member, *other)
    assert plans.plan(member, *given) == plan


def test_a_shard_that_does_not_fit_is_named_each_time() -> None:
    plans = PlanCache()
    for number in (1, 2):
        member, structure, table_map = shard(number)
        narrow = replace(table_map, types=(ColumnType.LONG,), metadata=(0,), nullable=(False,))
        with pytest.raises(MisfitError, match=f"t_{number}: "):
            plans.plan(member, structure, narrow, TARGET, 7, 4, AS_THEY_ARE)


def test_forgotten_plans_are_made_anew() -> None:
    plans = PlanCache()
    first = planned(plans, 1)
    plans.forget()
    assert planned(plans, 1).columns is not first.columns
