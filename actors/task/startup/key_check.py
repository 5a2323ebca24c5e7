"""Checks, for `replicator check`, whether shards share values of their target's keys.

This process reads a sample; a Spark job compares all values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial

import anyio
import anyio.to_thread
import pymysql.err

from actors.errors.faults import FatalError
from actors.jobs.spark_jobs import SPARK_FAILED, submit
from actors.setup.task_setup import address_of
from actors.task.resources.spark import TaskSpark
from actors.task.startup.check_scope import task_to_check
from config.models import Task
from replicator.checks.check_items import ALL, KEY_COLLISIONS
from replicator.checks.checked_task import TaskToCheck
from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.schema.agreement import Shard
from replicator.checks.schema.key_collisions import KeyFinding, key_results, nothing_to_compare
from replicator.checks.schema.structures import creation_by_hand, read_shards, target_parents
from replicator.ddl.rewrite.default_collations import nearest_collation
from replicator.ddl.rewrite.target_table import Collations, target_table
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.names import Member, TableName
from replicator.pipeline.compare.compare_rows import CompareServers
from replicator.pipeline.compare.compare_structures import ComparedShard, compared_shard
from replicator.pipeline.duplicate_keys.key_collisions import compare_keys
from replicator.pipeline.duplicate_keys.key_plan import (
    KeyRead,
    UnreadableKeyError,
    is_kept_by,
    key_order,
    own_order,
    plan_key,
)
from replicator.pipeline.duplicate_keys.key_sample import sample_key
from replicator.pipeline.plans.planning import PlanError
from replicator.routing.expression.expression_filter import ExpressionFilters
from replicator.routing.expression.types import ExpressionError
from replicator.schema.structure.inspection import available_collations, read_target
from replicator.schema.structure.structure import Table

DEFAULT_SAMPLE = 200_000
"""Number of values that are read from all targets together, unless the operator gives another
one."""

FEWEST_VALUES = 2000
"""Minimum number of values of each key."""

KEYS_AT_ONCE = 4
"""Number of keys sampled at the same time, which is the maximum number of connections per
server."""

_SIZES = """
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS FROM information_schema.TABLES
WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')
"""


@dataclass(frozen=True, slots=True)
class KeyCheckScope:
    """The scope of the check: all values, or about ``size`` values in total."""

    exact: bool = False
    size: int = DEFAULT_SAMPLE


class KeyCheck:
    """Checks the keys of a task once."""

    def __init__(self, task: Task, scope: KeyCheckScope) -> None:
        self._task = task
        self._scope = scope
        self._keys: list[KeyFinding] = []

    async def run(self) -> list[CheckResult]:
        """Return the findings about each key of each target. Raises RouteError."""
        if {ALL, KEY_COLLISIONS} & set(self._task.ignore_checking_items):
            return []
        found = await task_to_check(self._task)
        away = ""
        try:
            await self._plan(found)
        except* DatabaseUnavailableError as group:
            away = str(group.exceptions[0])
        if away:
            return [_not_compared(f"a server is away: {away}")]
        servers = CompareServers(
            found.target.address, {source.source_id: source.address for source in found.sources}
        )
        try:
            if any(key.reads for key in self._keys):
                await (self._compare_all if self._scope.exact else self._sample)(servers)
        except FatalError as error:
            return [_not_compared(str(error), *error.remedies)]
        except SPARK_FAILED as error:
            return [_not_compared(f"the Spark job failed: {error}")]
        return [r for key in self._keys for r in key_results(key)] or [nothing_to_compare()]

    async def _plan(self, found: TaskToCheck) -> None:
        filters = {s.source_id: s.expression_filters for s in found.sources}
        shards = await read_shards(found)
        sizes = await _sizes(found)
        with closing(Connection(address_of(self._task.target_database))) as connection:
            for name, members in shards.items():
                read = await _target(connection, name, members, found)
                if read is None:
                    continue
                target, creation = read
                for key in target.keys:
                    if len(members) == 1 and is_kept_by(members[0].table, target, key):
                        continue
                    extracted = {shard.member: shard.rules.extracted for shard in members}
                    finding = KeyFinding(
                        len(self._keys), name, target, key, extracted=extracted, creation=creation
                    )
                    self._keys.append(finding)
                    _add(finding, _compared(members, filters, finding.unread), sizes)

    async def _sample(self, servers: CompareServers) -> None:
        keys = [key for key in self._keys if key.reads]
        size = max(FEWEST_VALUES, self._scope.size // len(keys))
        limit = anyio.CapacityLimiter(KEYS_AT_ONCE)

        async def look_at(key: KeyFinding) -> None:
            job = partial(sample_key, key.reads, servers, size)
            key.tally = await anyio.to_thread.run_sync(job, limiter=limit)

        async with anyio.create_task_group() as group:
            for key in keys:
                group.start_soon(look_at, key)

    async def _compare_all(self, servers: CompareServers) -> None:
        spark = TaskSpark(self._task)
        reads = [read for key in self._keys for read in key.reads]
        parts = list(_parts(reads, self._connections()))
        try:
            context = await spark.context()
            job = partial(compare_keys, context, parts, servers)
            tallies = await submit(context, job, starving=lambda _: None)
        finally:
            await spark.close()
        for key in self._keys:
            key.tally = tallies.get(key.number, key.tally)

    def _connections(self) -> dict[str, int]:
        task = self._task
        return {i.source_id: task.mydumper_of(i).threads for i in task.mysql_instances}


def _compared(
    shards: Sequence[Shard], filters: Mapping[str, ExpressionFilters], unread: list[str]
) -> list[ComparedShard]:
    """Return the readable shards; ``unread`` gets the reasons for the others."""
    found = []
    for shard in shards:
        try:
            of = filters[shard.member.source]
            found.append(compared_shard(shard.member, shard.table, shard.rules, of))
        except ExpressionError as error:
            unread.append(f"{shard.member}: {error}")
    return found


def _add(finding: KeyFinding, shards: Sequence[ComparedShard], sizes: Mapping[Member, int]) -> None:
    """Plan how a key is read from its shards."""
    target, key = finding.target, finding.key
    order = key_order(target, key, shards)
    for shard in shards:
        rows = sizes.get(shard.member, 0)
        try:
            own = order or own_order(key, shard)
            read = plan_key(finding.number, shard, target, key, own, rows)
        except (UnreadableKeyError, PlanError) as error:
            finding.unread.append(f"{shard.member}: {error}")
            continue
        if read is not None:
            finding.reads.append(read)


def _parts(reads: Iterable[KeyRead], connections: Mapping[str, int]) -> Iterable[Sequence[KeyRead]]:
    """Divide the reads into parts, so that each source is read over its number of connections."""
    parts: dict[tuple[str, int], list[KeyRead]] = {}
    counts: dict[str, int] = {}
    for read in reads:
        source = read.member.source
        count = counts[source] = counts.get(source, -1) + 1
        parts.setdefault((source, count % connections[source]), []).append(read)
    return parts.values()


async def _sizes(found: TaskToCheck) -> dict[Member, int]:
    """Return the approximate number of rows of each table, from its server's statistics."""
    sizes: dict[Member, int] = {}
    for source in found.sources:
        with closing(Connection(source.address)) as connection:
            for schema, table, rows in await connection.fetch(_SIZES):
                name = TableName(str(schema), str(table))
                for known in {name, name.folded}:
                    sizes[Member(source.source_id, known)] = int(rows or 0)
    return sizes


async def _target(
    connection: Connection, name: TableName, shards: Sequence[Shard], found: TaskToCheck
) -> tuple[Table, str | None] | None:
    """Return a target, and if it is missing, statements that create it; None if unreadable.

    A missing target has the structure of its first shard. The statements are empty if the task
    can't create it.
    """
    try:
        table = await read_target(connection, name)
        if table is not None:
            return table, None
        available = await available_collations(connection)
    except pymysql.err.MySQLError:
        return None  # reported by check_structures
    first = shards[0].table
    columns = (
        replace(c, collation=nearest_collation(c.collation, available) or c.collation)
        for c in first.columns
    )
    creation = ""
    with suppress(ValueError):  # reported by check_structures
        collations = Collations(shards[0].collations, available)
        parents = target_parents(found, shards[0])
        made = target_table(first.create_sql, name.schema, name.table, collations, parents)
        creation = creation_by_hand(name, made.sql)
    return replace(first, columns=tuple(columns)), creation


def _not_compared(why: str, *remedies: str) -> CheckResult:
    return CheckedPart("task").warning(
        "key_collisions",
        f"whether shards share values of their keys is not known: {why}",
        *(remedies or ("Make the check again when the server answers",)),
    )
