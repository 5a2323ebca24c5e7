"""The structures of the members of each target against one another and the target's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import anyio
import pymysql.err

from replicator.checks.result import CheckResult, Place
from replicator.checks.routes import routed_tables
from replicator.checks.table_fit import (
    Difference,
    colliding_column,
    create_statement,
    member_differences,
    member_disagreements,
)
from replicator.checks.target_tables import check_target_table
from replicator.checks.task import SourceToCheck, TaskToCheck
from replicator.routing import RouteError
from replicator.schema.connection import Connection
from replicator.schema.inspection import list_tables, read_table
from replicator.schema.names import Member, TableName
from replicator.schema.structure import Table

SOURCES_AT_ONCE = 8
_PLACE = Place("target")


@dataclass(frozen=True, slots=True)
class Shard:
    """A member and its structure; ``later_ddl``: the stream may still change it before its rows."""

    member: Member
    table: Table
    later_ddl: bool


@dataclass(slots=True)
class _Estate:
    """The shards found, by target."""

    shards: dict[TableName, list[Shard]] = field(default_factory=dict)


async def check_structures(task: TaskToCheck) -> list[CheckResult]:
    """Compare all members with their targets.

    A server that cannot be reached raises DatabaseUnavailableError, tables that cannot be read
    are left to `check_source`.
    """
    estate = _Estate()
    limit = anyio.CapacityLimiter(SOURCES_AT_ONCE)
    async with anyio.create_task_group() as group:
        for source in task.sources:
            group.start_soon(_read_source, source, task.task_mode, estate, limit)
    connection = Connection(task.target.address)
    try:
        results: list[CheckResult] = []
        for name in sorted(estate.shards):
            shards = sorted(estate.shards[name], key=lambda shard: shard.member)
            results += await _check_target(task, connection, name, shards)
        return results
    finally:
        connection.close()


async def _read_source(
    source: SourceToCheck, task_mode: str, estate: _Estate, limit: anyio.CapacityLimiter
) -> None:
    later_ddl = task_mode == "incremental" and source.start is not None
    connection = Connection(source.address)
    async with limit:
        try:
            for name, target in routed_tables(source, await list_tables(connection)):
                table = await _readable(connection, name)
                if table is not None:
                    shard = Shard(Member(source.source_id, name), table, later_ddl)
                    estate.shards.setdefault(target, []).append(shard)
        except RouteError:
            return  # told by check_routes
        finally:
            connection.close()


async def _readable(connection: Connection, name: TableName) -> Table | None:
    try:
        return await read_table(connection, name)
    except pymysql.err.MySQLError:
        return None  # told by check_source, under dump_privilege


async def _check_target(
    task: TaskToCheck, connection: Connection, name: TableName, shards: Sequence[Shard]
) -> list[CheckResult]:
    try:
        table = await read_table(connection, name)
    except pymysql.err.MySQLError as error:
        user = connection.address.user
        fix = f"GRANT SELECT, INSERT, UPDATE, DELETE, ALTER ON `{name.schema}`.* TO '{user}'@'%';"
        return [_PLACE.failed("target_privilege", f"{name} cannot be read: {error.args[-1]}", fix)]
    results = [
        *_agreement(shards, name, pessimistic=task.pessimistic),
        *_collisions(shards, name, table),
    ]
    if table is None:
        results.append(_missing(task, name, shards))
        return results
    results += _fit(shards, table, task.extracted)
    results += await check_target_table(connection, table)
    return results


def _missing(task: TaskToCheck, name: TableName, shards: Sequence[Shard]) -> CheckResult:
    if task.task_mode != "incremental":
        return _PLACE.passed(
            "table_schema", f"{name} does not exist: the full copy makes it as {shards[0].member}"
        )
    return _PLACE.warning(
        "table_schema",
        f"{name} does not exist, and without a full copy only a CREATE TABLE in the binlog makes "
        "it: rows that come before one stop the task",
        create_statement(shards[0].table, name),
    )


def _fit(
    shards: Sequence[Shard], target: Table, extracted: Mapping[TableName, frozenset[str]]
) -> list[CheckResult]:
    """One result per difference, however many shards have it."""
    filled = extracted.get(TableName(target.schema, target.name), frozenset())
    # Shards are mostly alike: what one structure lacks is worked out once.
    known: dict[tuple[str, bool], list[Difference]] = {}
    having: dict[Difference, list[Shard]] = {}
    for shard in shards:
        key = (shard.table.fingerprint, shard.later_ddl)
        if key not in known:
            known[key] = member_differences(shard.table, target, filled)
        for difference in known[key]:
            having.setdefault(difference, []).append(shard)
    name = f"{target.schema}.{target.name}"
    if not having:
        return [_PLACE.passed("table_schema", f"the {len(shards)} shards of {name} fit into it")]
    results = []
    for difference, found in having.items():
        finding = f"{name}: {difference.text} ({_named(found)})"
        if difference.state == "failed" and not all(shard.later_ddl for shard in found):
            results.append(_PLACE.failed("table_schema", finding, difference.fix))
            continue
        if difference.state == "failed":
            finding += "; harmless if DDL after the start position removes the difference"
        results.append(_PLACE.warning("table_schema", finding, difference.fix))
    return results


def _agreement(shards: Sequence[Shard], name: TableName, *, pessimistic: bool) -> list[CheckResult]:
    first = shards[0]
    differing: dict[tuple[str, ...], list[Shard]] = {}
    for shard in shards[1:]:
        if shard.table.fingerprint == first.table.fingerprint:
            continue
        words = tuple(member_disagreements(first.table, shard.table))
        if words:
            differing.setdefault(words, []).append(shard)
    if not differing:
        text = f"the {len(shards)} shards of {name} have the same structure"
        return [_PLACE.passed("schema_of_shard_tables", text)]
    results = []
    for words, found in differing.items():
        finding = (
            f"shards of {name} differ: {first.member} (first) and {_named(found)} (second): "
            f"{'; '.join(words)}"
        )
        fix = (
            f"Bring {found[0].member} and {first.member} to the same structure: compare "
            f"SHOW CREATE TABLE {first.member.name}; and SHOW CREATE TABLE {found[0].member.name};"
        )
        later = any(shard.later_ddl for shard in (first, *found))
        if pessimistic and not later:
            results.append(_PLACE.failed("schema_of_shard_tables", finding, fix))
        else:
            results.append(_PLACE.warning("schema_of_shard_tables", finding, fix))
    return results


def _collisions(
    shards: Sequence[Shard], name: TableName, target: Table | None
) -> list[CheckResult]:
    counting = [s for s in shards if any(c.auto_increment for c in s.table.columns)]
    if len(counting) < 2:
        return []
    column = colliding_column([shard.table for shard in counting], target)
    if not column:
        return []
    first, second = counting[0].member, counting[1].member
    others = f" and {len(counting) - 2} more" if len(counting) > 2 else ""
    return [
        _PLACE.warning(
            "auto_increment_ID",
            f"{first} and {second}{others} count `{column}` up by themselves and are merged into "
            f"{name}, where it is a key: equal values collide and stop the task",
            "Let the shards count apart (on shard k of n: SET GLOBAL auto_increment_increment = n, "
            "auto_increment_offset = k;), or fold the shard's number in with a 'partition id' "
            "under column-mappings, or add a column of 'extract-source' / 'extract-table' to the "
            "target's key",
        )
    ]


def _named(shards: Sequence[Shard]) -> str:
    more = f" and {len(shards) - 1} more" if len(shards) > 1 else ""
    return f"{shards[0].member}{more}"
