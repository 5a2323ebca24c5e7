"""What the task file makes of the columns of each member, as actors ask for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from actors.faults import FatalError, of_target
from actors.task_setup import SourceSetup
from replicator.mysql.names import Member, TableName
from replicator.routing.columns.member_columns import MemberColumns
from replicator.routing.routes import RouteError

ColumnsOf = Callable[[Member], MemberColumns]
"""What is made of a member's columns. Raises FatalError where its name does not suit the rules."""


def columns_of(setups: Mapping[str, SourceSetup]) -> ColumnsOf:
    """The rules about columns of these sources, by their names."""

    def of(member: Member) -> MemberColumns:
        setup, name = setups[member.source], member.name
        try:
            return setup.columns.of(name.schema, name.table)
        except RouteError as error:
            target = setup.router.route(name.schema, name.table)
            raise FatalError(
                "rows.no-plan",
                str(error),
                where=str(member),
                remedies=(
                    "correct the rule in the task file, so that it suits this name, too,"
                    " `replicator stop`, then run the task again",
                    "or leave the table out (block-allow-list), and do the same",
                ),
                scope=None if target is None else of_target(TableName(*target)),
            ) from error

    return of
