"""The shards of a target, as keys are looked up in them."""

from __future__ import annotations

from collections.abc import Sequence

import anyio.to_thread
from pymysql.err import MySQLError

from actors.refusals import refusal
from actors.task.resources.resources import Resources
from actors.task_setup import columns_of
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.mysql.names import Member, TableName, folded
from replicator.mysql.server.identity import ServerIdentity
from replicator.pipeline.copy.changed_shard import ChangedTooMuchError
from replicator.pipeline.copy.copy_plan import plan_copy
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.pipeline.moved_rows.key_holders import KeyHolder
from replicator.pipeline.plans.planning import PlanError, filled_column, target_column
from replicator.pipeline.plans.row_filter import rules_for
from replicator.routing.expression.types import ExpressionError
from replicator.rows.values.fields import escape
from replicator.schema.structure.inspection import read_table, read_target
from replicator.schema.structure.structure import Table


class NotYetError(Exception):
    """A target's shards can't be looked in now; says why."""


async def shards_of(
    resources: Resources, connection: Connection, target: TableName
) -> tuple[Table, Sequence[Member]]:
    """A target as it is now, and its shards. Raises NotYetError, DatabaseUnavailableError."""
    registry = resources.registry
    table = await read_target(connection, target)
    members = [registry.member(m) for m in registry.members_of(registry.target(target))]
    if table is None or table.row_key is None or not members:
        raise NotYetError("the target has no key, or is not there")
    if any(member.source in resources.blocked.sources for member in members):
        raise NotYetError("a source of its shards is not read")
    return table, members


def key_columns(target: Table) -> list[TargetColumn]:
    """The columns of a target's key."""
    assert target.row_key is not None, f"{target.schema}.{target.name} has no key"
    return [target_column(c) for n in target.row_key.columns if (c := target.column(n)) is not None]


async def holder_of(
    resources: Resources,
    member: Member,
    target: Table,
    upstream: Connection,
    server: ServerIdentity,
    applied: int,
) -> KeyHolder:
    """How a shard is read now; ``applied``: the place of the binlog of ``server`` that must be
    visible.

    Raises NotYetError, FatalError, TransientError or DatabaseUnavailableError.
    """
    setup = resources.setups[member.source]
    try:
        structure = await read_table(upstream, member.name)
        if structure is None:
            raise NotYetError(f"{member} is not there, which is not applied yet")
        fingerprint = await anyio.to_thread.run_sync(
            _fingerprint, setup.address, member.name.quoted.encode()
        )
    except MySQLError as error:
        raise refusal(setup.address, error, source=member.source) from error
    try:
        rules = columns_of(resources.setups)(member)
        passing = rules_for(setup.expression_filters, member.name, structure)
        condition = passing.copied if passing else ""
        copy = plan_copy(member.source, structure, fingerprint, target, 0, rules, condition)
        made = [filled_column(str(member), target, column) for column in rules.extracted]
    except (ExpressionError, PlanError, ChangedTooMuchError) as error:
        raise NotYetError(str(error)) from error
    extracted = tuple((folded(column.name), escape(value)) for column, value in made)
    return KeyHolder(copy, setup.address, server, applied, extracted)


def _fingerprint(address: DatabaseAddress, name: bytes) -> str:
    stream = SourceStream(address)
    try:
        return stream.fingerprint(name)
    finally:
        stream.close()
