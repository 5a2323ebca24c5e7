"""The expression filters of a task's sources, put into the plans that rows are read by."""

from __future__ import annotations

from collections.abc import Mapping, Set

from actors.refusals import unfit_filter
from replicator.binlog.table_map import TableMap
from replicator.mysql.names import Member
from replicator.pipeline.plan import TablePlan
from replicator.pipeline.planning import with_filter
from replicator.pipeline.row_filter import rules_for
from replicator.routing.expression_filter import NO_EXPRESSIONS, ExpressionFilters
from replicator.routing.expression_types import ExpressionError
from replicator.schema.structure import Table


class RowFilters:
    """The rules by source; ``mariadb`` names the sources that are MariaDBs."""

    def __init__(self, filters: Mapping[str, ExpressionFilters], mariadb: Set[str]) -> None:
        self._filters = filters
        self._mariadb = mariadb

    def concern(self, member: Member) -> bool:
        """Whether there is a rule for a shard."""
        return self._of(member).concern(member.name.schema, member.name.table)

    def added(self, plan: TablePlan, structure: Table, table_map: TableMap) -> TablePlan:
        """The plan, with the rules of its shard, whose structure this is, where there are any.

        Raises FatalError where a rule does not fit the structure, PlanError.
        """
        member = plan.member
        try:
            resolved = rules_for(
                self._of(member), member.name, structure, mariadb=member.source in self._mariadb
            )
        except ExpressionError as error:
            raise unfit_filter(error, str(member), plan.target.name) from error
        return plan if resolved is None else with_filter(plan, resolved, structure, table_map)

    def _of(self, member: Member) -> ExpressionFilters:
        return self._filters.get(member.source, NO_EXPRESSIONS)
