"""Plans of shards that are alike: one for all that a target has of them.

A target of thousands of shards would have as many plans, and they differ in nothing but the shard's
name; those of hundreds of targets mostly in nothing but the target's.
"""

from __future__ import annotations

from dataclasses import replace

from replicator.binlog.events.table_map import TableMap
from replicator.downstream.rows.restated_columns import filled_columns, restated_columns
from replicator.mysql.names import Member, TableName
from replicator.pipeline.plans.plan import TablePlan
from replicator.pipeline.plans.planning import plan_table, written_columns
from replicator.routing.columns.member_columns import MemberColumns
from replicator.schema.effects.column_values import value_clause
from replicator.schema.structure.further_keys import keys_without_overlaps
from replicator.schema.structure.hidden_columns import hidden_columns, system_period
from replicator.schema.structure.structure import Table


class PlanCache:
    """The plans for the targets as they are; `forget` them when one of these changes."""

    def __init__(self) -> None:
        self._made: dict[object, dict[tuple[int, TableName], TablePlan]] = {}

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
        """What `replicator.pipeline.plans.planning.plan_table` gives and raises.

        But it is made for the first of the target's shards that are alike, and is the same object
        for all of them.
        """
        # All that plan_table makes use of, but for names.
        alike = (
            structure.columns,
            structure.keys,
            hidden_columns(structure),
            system_period(structure.create_sql),
            replace(table_map, schema="", table=""),
            target.columns,
            target.keys,
            keys_without_overlaps(target),
            *(
                value_clause(table, column.name)
                for table in (structure, target)
                for column in table.columns
                if column.generated
            ),
            *(
                found(target, written_columns(structure, target, rules))
                for found in (restated_columns, filled_columns)
            ),
            buckets,
            rules,
        )
        of_targets = self._made.setdefault(alike, {})
        name = TableName(target.schema, target.name)
        made = of_targets.get((target_number, name))
        if made is None:
            other = next(iter(of_targets.values()), None)
            if other is None:
                args = structure, table_map, target, target_number, buckets, rules
                made = plan_table(member, *args)
            else:
                table = replace(
                    other.target, number=target_number, schema=name.schema, table=name.table
                )
                made = replace(other, member=member, target=table)
            of_targets[target_number, name] = made
        return made
