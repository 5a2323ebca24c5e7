"""The validation of one target: its shards, and the meaning of rows that only the target has.

The rule is that of `replicator compare`: a row that only the target has is wrong only if every
shard that can own it was read, and no shard that no longer exists can own it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from pymysql.err import MySQLError

from actors.setup.task_setup import SourceSetup, columns_of
from replicator.checks.connecting import account_of
from replicator.checks.source.followed_shards import why_unread
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.row_owners import SavedOwners, read_owners
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.errors import MISSING_PRIVILEGE, error_code
from replicator.mysql.names import Member, TableName
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.compare.compare_structures import ComparedShard, compared_shard
from replicator.pipeline.compare.retired_rows import RowsOnTargetAlone, rows_alone
from replicator.pipeline.validation.validation_job import NoKeyError, plan_validation
from replicator.routing.columns.row_marks import marks_of_rules
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.structure.inspection import read_table, read_target
from replicator.schema.structure.structure import Table


@dataclass(frozen=True, slots=True)
class ValidatedTask:
    """A task to validate: its servers, its tables, and its rules for columns."""

    target: DatabaseAddress
    setups: Mapping[str, SourceSetup]
    registry: SchemaRegistry
    meta: MetaStore
    show_values: bool


class UnreadShardError(Exception):
    """A shard can't be read, so rows that moved to it can't be distinguished from wrong rows."""

    def __init__(self, shard: str, reason: str, grant: str = "") -> None:
        remedy = f": {grant}" if grant else ""
        super().__init__(
            f"{shard} can't be read ({reason}), so rows that moved there would look like errors"
            f"{remedy}"
        )


@dataclass(frozen=True, slots=True)
class PlannedTarget:
    """The plan for comparing the keys of a target.

    Attributes:
        plan: the comparison.
        members: its shards, in the order of the plan.
        made: start of the planning, by the monotonic clock.
        owners_saved: whether the plan knows every shard whose rows the target may have.
    """

    plan: ComparisonPlan
    members: tuple[Member, ...]
    made: float
    owners_saved: bool

    def knows_owners(self, since: float) -> bool:
        """Return whether the plan knows all owners of rows at a time of the monotonic clock."""
        return self.owners_saved and self.made > since


async def plan_target(
    task: ValidatedTask, target: TableName, full: frozenset[str]
) -> PlannedTarget:
    """Plan the validation of a target; ``full`` are the sources whose values are compared.

    Raises NoKeyError, UnreadShardError, PlanError, ExpressionError, the target's
    DatabaseUnavailableError, or a server's error.
    """
    made, registry = time.monotonic(), task.registry
    unsaved = registry.owners.is_unsaved(target)
    with closing(Connection(task.target)) as connection:
        table = await read_target(connection, target)
        owners = await read_owners(connection, task.meta.schema, task.meta.task)
    if table is None:
        raise NoKeyError(f"{target} is not there")
    shards = []
    for member in map(registry.member, registry.members_of(registry.target(target))):
        try:
            shard = await _shard(task, member)
        except DatabaseUnavailableError as error:
            raise UnreadShardError(f"{member}", str(error)) from error
        if shard is not None:
            shards.append(shard)
    there = tuple(shard.member for shard in shards)
    alone = _rows_alone(table, shards, (owners or {}).get(target, SavedOwners()))
    values = any(member.source in full for member in there)
    plan = plan_validation(table, shards, values=values, alone=alone)
    return PlannedTarget(plan, there, made, owners_saved=not unsaved)


def _rows_alone(
    target: Table, shards: list[ComparedShard], saved: SavedOwners
) -> RowsOnTargetAlone:
    there = {shard.member for shard in shards}
    gone = [o.marks for o in saved.owners if o.ended or o.member not in there]
    return rows_alone(target, gone, [marks_of_rules(shard.rules) for shard in shards])


async def _shard(task: ValidatedTask, member: Member) -> ComparedShard | None:
    """Read the present structure of a shard; return None if the shard does not exist."""
    setup = task.setups[member.source]
    structure = None
    with closing(Connection(setup.address)) as connection:
        try:
            structure = await read_table(connection, member.name)
        except MySQLError as error:
            if error_code(error) not in MISSING_PRIVILEGE:
                raise
        # The structure of an unreadable table may be visible by another privilege.
        unread = await why_unread(connection, member.name, await account_of(connection))
    if unread is not None:
        raise UnreadShardError(f"{member}", unread.reason, unread.grant)
    if structure is None:
        return None
    rules = columns_of(task.setups)(member)
    return compared_shard(member, structure, rules, setup.expression_filters)
