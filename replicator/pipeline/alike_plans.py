"""Plans of shards that are alike: made once, for the first of them.

A target of thousands of shards has as many plans, and they differ in nothing but the shard's name.
"""

from __future__ import annotations

from dataclasses import replace

from replicator.binlog.table_map import TableMap
from replicator.mysql.names import Member
from replicator.pipeline.plan import TablePlan
from replicator.pipeline.planning import plan_table
from replicator.routing.member_columns import MemberColumns
from replicator.schema.hidden_columns import hidden_columns, system_period
from replicator.schema.structure import Table


class AlikePlans:
    """The plans for the targets as they are; `forget` them when one of these changes."""

    def __init__(self) -> None:
        self._made: dict[object, TablePlan] = {}

    def forget(self) -> None:
        """Make all plans anew."""
        self._made.clear()

    def plan(
        self,
        member: Member,
        structure: Table,
        table_map: TableMap,
        target: Table,
        target_number: int,
        buckets: int,
        rules: MemberColumns,
    ) -> TablePlan:
        """What `replicator.pipeline.planning.plan_table` gives and raises."""
        alike = (
            structure.columns,
            structure.keys,
            hidden_columns(structure),
            system_period(structure.create_sql),
            replace(table_map, schema="", table=""),
            target,
            target_number,
            buckets,
            rules,
        )
        made = self._made.get(alike)
        if made is None:
            args = structure, table_map, target, target_number, buckets, rules
            made = self._made[alike] = plan_table(member, *args)
        return made if made.member == member else replace(made, member=member)
