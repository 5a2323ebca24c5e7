"""Adds the expression filters of the sources to the plans of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from contextlib import closing
from dataclasses import dataclass, replace

from attrs import define

from actors.errors.refusals import unfit_filter
from actors.setup.task_setup import SourceSetup
from replicator.binlog.events.table_map import TableMap
from replicator.ddl.rewrite.default_collations import charset_of, nearest_collation
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member
from replicator.pipeline.plans.plan import TablePlan
from replicator.pipeline.plans.planning import with_filter
from replicator.pipeline.plans.row_filter import rules_for
from replicator.routing.expression.expression_filter import NO_EXPRESSIONS, ExpressionFilters
from replicator.routing.expression.types import ExpressionError
from replicator.schema.structure.inspection import available_collations, collation_numbers
from replicator.schema.structure.structure import Table


@dataclass(frozen=True, slots=True)
class ShardCollations:
    """Collations of a source.

    Attributes:
        numbers: the collation of each collation number in the source's table maps.
        stand_ins: the target's replacement for each collation that it lacks.
    """

    numbers: Mapping[int, str]
    stand_ins: frozenset[str]


@define(eq=False)
class RowFilters:
    """The expression filters of all sources.

    Args:
        filters: by source.
        mariadb: the sources that are MariaDB servers.
        collations: by source, at least for each source with filters.
    """

    _filters: Mapping[str, ExpressionFilters]
    _mariadb: Set[str]
    _collations: Mapping[str, ShardCollations]

    def concern(self, member: Member) -> bool:
        """Return whether a shard has a filter."""
        return self._of(member).concern(member.name.schema, member.name.table)

    def added(self, plan: TablePlan, structure: Table, table_map: TableMap) -> TablePlan:
        """Return the plan with the filters of its shard, if any, for this structure of the shard.

        Raises PlanError, and FatalError if a filter does not fit the structure.
        """
        member = plan.member
        filters = self._of(member)
        if not self.concern(member):
            return plan
        structure, doubtful = with_collations(structure, table_map, self._collations[member.source])
        mariadb = member.source in self._mariadb
        try:
            resolved = rules_for(
                filters, member.name, structure, mariadb=mariadb, doubtful=doubtful
            )
        except ExpressionError as error:
            raise unfit_filter(error, str(member), plan.target.name) from error
        return plan if resolved is None else with_filter(plan, resolved, structure, table_map)

    def _of(self, member: Member) -> ExpressionFilters:
        return self._filters.get(member.source, NO_EXPRESSIONS)


def with_collations(
    structure: Table, table_map: TableMap, collations: ShardCollations
) -> tuple[Table, frozenset[str]]:
    """Return the structure with the collations of its row events, and the uncertain columns.

    The structure after a statement is learned on the target, which replaces collations that it
    lacks.
    """
    ids = table_map.optional.collations or ()
    columns = []
    doubtful = set()
    for index, column in enumerate(structure.columns):
        number = ids[index] if index < len(ids) else None
        if column.charset and number is not None:
            name = collations.numbers.get(number, f"{column.charset}_number_{number}")
            if name != column.collation:
                column = replace(column, charset=charset_of(name), collation=name)
        elif column.learned and column.collation in collations.stand_ins:
            doubtful.add(column.name)
        columns.append(column)
    return replace(structure, columns=tuple(columns)), frozenset(doubtful)


async def filter_collations(
    setups: Iterable[SourceSetup], available: Set[str]
) -> Mapping[str, ShardCollations]:
    """Return the collations of each source with expression filters.

    Raises DatabaseUnavailableError or the server's error.

    Args:
        available: the collations of the target.
    """
    found = {}
    for setup in setups:
        if setup.expression_filters:
            with closing(Connection(setup.address)) as connection:
                numbers = await collation_numbers(connection)
                lacking = await available_collations(connection) - available
            stand_ins = {nearest_collation(name, available) for name in lacking}
            found[setup.source] = ShardCollations(numbers, frozenset(filter(None, stand_ins)))
    return found
