"""Compares the structures of the members of each target with one another and with the target."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, field, replace

import anyio
import pymysql.err

from replicator.checks.checked_task import SourceToCheck, TaskToCheck
from replicator.checks.connecting import account_of
from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.routes import check_target_names, routed_tables
from replicator.checks.schema.agreement import (
    Shard,
    check_agreement,
    check_cascades,
    check_counters,
    check_joinable,
    members_listed,
)
from replicator.checks.schema.cascading_keys import SourceRules, meeting, spreading, unrepeatable
from replicator.checks.schema.key_collations import (
    KeyTexts,
    check_key_texts,
    differing_key_texts,
    with_one_collation,
)
from replicator.checks.schema.required_keys import check_required_key
from replicator.checks.schema.table_fit import Difference, member_differences, rule_differences
from replicator.checks.source.copying import check_locking, needs_locks
from replicator.checks.target.target_rights import TARGET_RIGHTS
from replicator.checks.target.target_tables import check_empty, check_target_table
from replicator.ddl.rewrite.default_collations import with_available
from replicator.ddl.rewrite.target_table import (
    Collations,
    CreateTarget,
    Parents,
    no_parents,
    target_table,
)
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName, quote
from replicator.mysql.server.identity import folds_names
from replicator.mysql.session_context.session_defaults import NATIVE_FOREIGN_KEYS
from replicator.routing.columns.member_columns import MemberColumns
from replicator.routing.routes import RouteError
from replicator.schema.structure.foreign_keys import parent_of
from replicator.schema.structure.hidden_columns import system_period
from replicator.schema.structure.inspection import (
    Listed,
    available_collations,
    default_collations,
    list_tables,
    listed,
    listed_tables,
    read_table,
    read_tables,
)
from replicator.schema.structure.structure import Table
from replicator.sharding.optimistic.alters import NoAlterError
from replicator.sharding.optimistic.joined_table import joined_table, widening
from replicator.sharding.optimistic.shapes import NoJoinError

SOURCES_AT_ONCE = 8
_PLACE = CheckedPart("target")
_NUMBERING = "SELECT @@GLOBAL.auto_increment_increment, @@GLOBAL.auto_increment_offset"


_Target = tuple[Table | None, Listed | None]
"""The structure of a target, and how its server lists it."""


@dataclass(slots=True)
class _FoundShards:
    """The shards found, by target.

    Attributes:
        locked: by source, the tables that the copy locks.
        available: the collations of the target's server.
        targets: the targets that could be read together, with their spelling on the server.
    """

    shards: dict[TableName, list[Shard]] = field(default_factory=dict)
    locked: dict[str, list[TableName]] = field(default_factory=dict)
    available: frozenset[str] = frozenset()
    targets: Mapping[TableName, _Target] = field(default_factory=dict)


async def check_structures(task: TaskToCheck) -> list[CheckResult]:
    """Compare all members with their targets.

    If the task has run before, only the members of new sources are compared: the others may be in
    the middle of a schema change. A server that cannot be reached raises DatabaseUnavailableError;
    unreadable tables are reported by `check_source`.
    """
    if task.resuming and all(source.followed for source in task.sources):
        return []
    estate = await _read_sources(task)
    with closing(Connection(task.target.address)) as connection:
        folds = await folds_names(connection)
        estate.available = await available_collations(connection)
        estate.targets = await _read_targets(connection, sorted(estate.shards))
        results = check_target_names(sorted(estate.shards), folds=folds)
        for name in sorted(estate.shards):
            shards = sorted(estate.shards[name], key=lambda shard: shard.member)
            results += await _check_target(task, connection, name, shards, estate)
        if task.task_mode != "incremental":
            for source in task.sources:
                if task.resuming and source.followed:
                    continue
                if names := estate.locked.get(source.source_id):
                    results += await check_locking(source, names)
        return results


async def read_shards(task: TaskToCheck) -> dict[TableName, list[Shard]]:
    """Return the members of each target, in their order, except for unreadable tables.

    Raises DatabaseUnavailableError.
    """
    estate = await _read_sources(task)
    return {
        name: sorted(shards, key=lambda shard: shard.member)
        for name, shards in sorted(estate.shards.items())
    }


async def _read_sources(task: TaskToCheck) -> _FoundShards:
    estate = _FoundShards()
    limit = anyio.CapacityLimiter(SOURCES_AT_ONCE)
    async with anyio.create_task_group() as group:
        for source in task.sources:
            group.start_soon(_read_source, source, task.task_mode, estate, limit)
    return estate


async def _read_source(
    source: SourceToCheck, task_mode: str, estate: _FoundShards, limit: anyio.CapacityLimiter
) -> None:
    later_ddl = task_mode == "incremental" and source.start is not None
    connection = Connection(source.address)
    async with limit:
        try:
            collations = await default_collations(connection)
            available = await available_collations(connection)
            native = await connection.fetch(NATIVE_FOREIGN_KEYS)
            logs_cascades = [value for _, value in native] == ["OFF"]
            ((increment, offset),) = await connection.fetch(_NUMBERING)
            locks = task_mode != "incremental" and await needs_locks(connection)
            routed = routed_tables(source, await list_tables(connection))
            tables = await _readable(connection, [name for name, _ in routed])
            for name, target in routed:
                if (table := tables.get(name)) is not None:
                    member = Member(source.source_id, name)
                    rules = source.columns.of(name.schema, name.table)
                    shard = Shard(
                        member,
                        table,
                        later_ddl,
                        collations,
                        logs_cascades,
                        rules,
                        (int(increment), int(offset)),
                        available,
                    )
                    estate.shards.setdefault(target, []).append(shard)
                    if locks:
                        estate.locked.setdefault(source.source_id, []).append(name)
        except RouteError:
            return  # reported by check_routes
        finally:
            connection.close()


async def _readable(connection: Connection, names: Sequence[TableName]) -> dict[TableName, Table]:
    """Return the structures of the tables that can be read; `check_source` names the others."""
    try:
        return await read_tables(connection, names)
    except pymysql.err.MySQLError:
        found: dict[TableName, Table] = {}
        for name in names:
            with contextlib.suppress(pymysql.err.MySQLError):
                if (table := await read_table(connection, name)) is not None:
                    found[name] = table
        return found


async def _read_targets(
    connection: Connection, names: Sequence[TableName]
) -> Mapping[TableName, _Target]:
    """Return the targets; nothing if one of them can't be read."""
    with contextlib.suppress(pymysql.err.MySQLError):
        there = await listed_tables(connection, names)
        tables = await read_tables(connection, [*there])
        return {name: (tables.get(name), there.get(name)) for name in names}
    return {}


async def _read_target(connection: Connection, name: TableName) -> _Target:
    return await read_table(connection, name), await listed(connection, name)


async def _check_target(
    task: TaskToCheck,
    connection: Connection,
    name: TableName,
    shards: Sequence[Shard],
    estate: _FoundShards,
) -> list[CheckResult]:
    followed = {source.source_id for source in task.sources if task.resuming and source.followed}
    joining = [shard for shard in shards if shard.member.source not in followed]
    if not joining:
        return []
    try:
        table, there = estate.targets.get(name) or await _read_target(connection, name)
    except pymysql.err.MySQLError as error:
        finding = f"{name} cannot be read: {error.args[-1]}"
        way_out = (await account_of(connection)).grant(TARGET_RIGHTS, name.schema)
        return [_PLACE.failed("target_privilege", finding, way_out)]
    copies = task.task_mode != "incremental"
    available = estate.available
    texts = differing_key_texts(joining, table, available, joins=task.joins_structures)
    results = [
        *_agreement(task, joining, name, table, texts, available),
        *check_counters(shards, name, table, copies=copies),
        *check_versioning(joining, name),
    ]
    if task.task_mode != "full":
        results += await _cascades(task, connection, name, joining, estate)
    if table is None or there is None:
        pattern = _pattern(shards) if task.joins_structures else shards[0]
        results += check_missing(
            name, pattern, available, copies=copies, parents=target_parents(task, pattern)
        )
        results += await check_required_key(connection, name, pattern, shards, copies=copies)
        return results
    pending = [s for s in shards if s.member.source in followed]
    alter = with_available(_widening(task, shards, table), available)
    fitting = with_one_collation(joining, table) if texts else joining
    results += _fit(fitting, pending, table, alter, available)
    spelled = replace(table, schema=there.name.schema, name=there.name.table)
    results += await check_target_table(
        connection, spelled, writes_nothing=task.target.writes_nothing
    )
    results += await _spreading_keys(connection, table)
    if copies and not followed:
        results += await check_empty(connection, spelled)
    return results


async def _spreading_keys(connection: Connection, target: Table) -> list[CheckResult]:
    acting = [key for key in target.definition.foreign_keys if key.acts]
    names = {parent_of(key, target.schema) for key in acting}
    parents = {name: await read_table(connection, name) for name in sorted(names)}
    return [
        _PLACE.warning("foreign_keys", finding, way_out)
        for finding, way_out in spreading(target, parents)
    ]


def _agreement(
    task: TaskToCheck,
    shards: Sequence[Shard],
    name: TableName,
    target: Table | None,
    texts: Sequence[KeyTexts],
    available: Set[str],
) -> list[CheckResult]:
    """Return the results for members that differ from one another.

    Args:
        texts: the columns of keys that the members compare by several collations.
        available: the collations of the target's server.
    """
    joins, required = task.joins_structures, task.equal_structures
    create = "" if target is not None else _creation(task, name, shards[0], available)
    results = check_key_texts(texts, name, target, create, joins=joins, required=joins or required)
    alike = with_one_collation(shards, shards[0].table) if texts or not joins else shards
    if joins:
        return results + check_joinable(alike, name)
    return results + check_agreement(alike, name, required=required)


def _creation(task: TaskToCheck, name: TableName, first: Shard, available: Set[str]) -> str:
    """Return the statements that create a target like its first shard; empty if there are none."""
    parents = target_parents(task, first)
    try:
        made = _made(name, first, available, parents)
    except ValueError:
        return ""
    return f"CREATE DATABASE IF NOT EXISTS {quote(name.schema)}; {made.sql};"


def _pattern(shards: Sequence[Shard]) -> Shard:
    """Return the first shard, with all columns that the target must have."""
    try:
        return replace(shards[0], table=joined_table([shard.table for shard in shards]))
    except NoJoinError:
        return shards[0]  # reported by check_joinable


def _widening(task: TaskToCheck, shards: Sequence[Shard], target: Table) -> str:
    """Return the statement after which a target accepts the rows of all shards.

    The result is empty if it accepts them already, or if no statement is known.
    """
    if not task.joins_structures:
        return ""
    try:
        return widening(target, [shard.table for shard in shards])
    except (NoJoinError, NoAlterError):
        return ""


async def _cascades(
    task: TaskToCheck,
    connection: Connection,
    name_of_target: TableName,
    shards: Sequence[Shard],
    estate: _FoundShards,
) -> list[CheckResult]:
    """Return the results about rows of these shards that are changed by foreign keys."""
    every = estate.shards[name_of_target]
    rules = {source.source_id: _rules(source) for source in task.sources}
    silent = [shard for shard in shards if not shard.logs_cascades]
    for shard, key in ((s, key) for s in silent for key in s.table.definition.foreign_keys):
        if not key.acts:
            continue
        own, name = rules[shard.member.source], shard.member.name
        found = unrepeatable(name, key, own)
        target = own.route(parent_of(key, name.schema))
        if found is None and target is not None:
            table = await read_table(connection, target)
            parents = [other.table for other in estate.shards.get(target, [])]
            found = meeting(
                key,
                [(other.member, other.rules) for other in every],
                target,
                parents if table is None else [table],
                keeps_duplicates=task.keeps_duplicates,
            )
        if found is not None:
            return check_cascades(shards, name_of_target, found)
    return check_cascades(shards, name_of_target, None)


def _rules(source: SourceToCheck) -> SourceRules:
    def route(name: TableName) -> TableName | None:
        routed = source.router.route(name.schema, name.table)
        return None if routed is None else TableName(routed.schema, routed.table)

    def leaves_out_rows(name: TableName) -> bool:
        filtered = source.expression_filters.concern(name.schema, name.table)
        return filtered or bool(source.event_filter.rows_left_out(name.schema, name.table))

    return SourceRules(
        route, lambda name: source.columns.of(name.schema, name.table), leaves_out_rows
    )


def _fit(
    shards: Sequence[Shard],
    followed: Sequence[Shard],
    target: Table,
    alter: str,
    available: Set[str],
) -> list[CheckResult]:
    """Return one result per difference, however many shards have it.

    Args:
        followed: shards that the task has replicated before. If they have a difference, too, it
            comes from a schema change that the target has not executed yet.
        alter: the one statement that removes all differences, if it is known.
        available: the collations of the target's server.
    """
    having = _differences(shards, target)
    pending = _differences(followed, target).keys()
    name = f"{target.schema}.{target.name}"
    if not having and alter:
        return [
            _PLACE.warning(
                "table_schema",
                f"{name} has keys that some of its shards lack: a row that breaks one of them"
                " blocks the target",
                f"{alter};",
            )
        ]
    if not having:
        return [_PLACE.passed("table_schema", f"the {len(shards)} shards of {name} fit into it")]
    results = []
    ruled = {
        difference
        for shard in shards
        for difference in rule_differences(shard.table, target, shard.rules)
    }
    for difference, found in having.items():
        single = with_available(difference.way_out, available)
        way_out = f"{alter};" if alter and difference not in ruled else single
        finding = f"{name}: {difference.text} ({members_listed(found)})"
        later = all(shard.later_ddl for shard in found)
        if difference.state == "failed" and difference in pending:
            finding += "; harmless if a schema change that the task goes on with removes it"
        elif difference.state == "failed" and later:
            finding += "; harmless if DDL after the start position removes the difference"
        elif difference.state == "failed":
            results.append(_PLACE.failed("table_schema", finding, way_out))
            continue
        results.append(_PLACE.warning("table_schema", finding, way_out))
    return results


def _differences(shards: Sequence[Shard], target: Table) -> dict[Difference, list[Shard]]:
    # Most shards are alike, so the differences of each structure are computed once.
    known: dict[tuple[str, bool, MemberColumns], list[Difference]] = {}
    having: dict[Difference, list[Shard]] = {}
    for shard in shards:
        key = (shard.table.fingerprint, shard.later_ddl, shard.rules)
        if key not in known:
            known[key] = member_differences(shard.table, target, shard.rules)
        for difference in known[key]:
            having.setdefault(difference, []).append(shard)
    return having


def target_parents(task: TaskToCheck, shard: Shard) -> Parents:
    """Return how the parents of a shard's foreign keys are routed to their targets."""
    (route,) = (_rules(s).route for s in task.sources if s.source_id == shard.member.source)
    return lambda schema, table: route(TableName(schema or shard.member.name.schema, table))


def check_missing(
    name: TableName,
    first: Shard,
    available: Set[str],
    *,
    copies: bool,
    parents: Parents = no_parents,
) -> list[CheckResult]:
    """Return the results for a target that does not exist; the full copy makes it like ``first``.

    ``available``: the collations of the target's server; ``parents``: returns the target of a
    parent that a foreign key of the shard refers to.
    """
    qualified = name.quoted
    try:
        made = _made(name, first, available, parents)
    except ValueError as error:
        return [
            _PLACE.failed(
                "table_schema",
                f"{name} does not exist, and the task can't create it like {first.member}: {error}",
                f"Create {name} by hand, with columns and keys that take the shards' rows",
            )
        ]
    lacking = _lacking(name, first, made.sql)
    if lacking is not None:
        return [lacking]
    if not copies:
        return [
            _PLACE.warning(
                "table_schema",
                f"{name} does not exist, and without a full copy only a CREATE TABLE in the binlog "
                "creates it: rows that arrive before it stop the task",
                f"CREATE DATABASE IF NOT EXISTS {quote(name.schema)}; {made.sql};",
            )
        ]
    engine = f", with InnoDB in place of {made.engine}" if made.engine else ""
    results = [
        _PLACE.passed(
            "table_schema",
            f"{name} does not exist: the full copy creates it like {first.member}{engine}",
        )
    ]
    if made.collations:
        others = ", ".join(f"{mine} becomes {its}" for mine, its in made.collations)
        results.append(
            _PLACE.warning(
                "table_schema",
                f"the target's server lacks collations of {first.member}: in {name} {others}: "
                "texts that differ only in case or accents are different there, also in unique "
                "keys",
                f"To use another collation, create {name} by hand before the copy: {made.sql};",
            )
        )
    if made.foreign_keys:
        finding = f"the full copy creates {name} without the foreign keys of {first.member}: " + (
            "; ".join(made.foreign_keys)
        )
        added = " ".join(f"ALTER TABLE {qualified} ADD {key};" for key in made.foreign_keys)
        way_out = (
            f"If they are wanted, after the copy, with the parents' names in the target: {added}"
        )
        results.append(_PLACE.warning("foreign_keys", finding, way_out))
    return results


def _made(name: TableName, first: Shard, available: Set[str], parents: Parents) -> CreateTarget:
    collations = Collations(first.collations, available)
    return target_table(first.table.create_sql, name.schema, name.table, collations, parents)


def _lacking(name: TableName, first: Shard, made: str) -> CheckResult | None:
    """Return a failure if a target, made like its first shard, would not fit the column rules."""
    like_it = replace(first.table, schema=name.schema, name=name.table)
    lacking = rule_differences(first.table, like_it, first.rules)
    if not lacking:
        return None
    reasons = "; ".join(difference.text for difference in lacking)
    statements = " ".join(difference.way_out for difference in lacking)
    return _PLACE.failed(
        "table_schema",
        f"{name} does not exist, and a table like {first.member} would not take the rows: "
        f"{reasons}",
        f"{creation_by_hand(name, made)} {statements}",
        *_wider_keys(name, first),
    )


def _wider_keys(name: TableName, first: Shard) -> list[str]:
    """Return the statement that adds the extracted columns to the unique keys of a target."""
    extracted = [quote(column.name) for column in first.rules.extracted]
    actions = []
    for key in first.table.keys:
        if key.prefix:
            continue
        columns = ", ".join((*map(quote, key.columns), *extracted))
        index = quote(key.name)
        actions.append(
            f"DROP PRIMARY KEY, ADD PRIMARY KEY ({columns})"
            if key.name == "PRIMARY"
            else f"DROP INDEX {index}, ADD UNIQUE KEY {index} ({columns})"
        )
    if not (extracted and actions):
        return []
    return [f"If shards have equal keys: ALTER TABLE {name.quoted} {', '.join(actions)};"]


def creation_by_hand(name: TableName, made: str) -> str:
    """Return the statements that create a missing target; ``made``: its CREATE TABLE."""
    # The parent of a foreign key may be a target that does not exist either.
    unchecked = "SET SESSION foreign_key_checks = 0; " if "FOREIGN KEY" in made else ""
    return f"CREATE DATABASE IF NOT EXISTS {quote(name.schema)}; {unchecked}{made};"


def check_versioning(shards: Sequence[Shard], name: TableName) -> list[CheckResult]:
    """Report members WITH SYSTEM VERSIONING.

    Members versioned by transactions can't be followed.
    """
    versioned = [shard for shard in shards if system_period(shard.table.create_sql)]
    precise = [shard for shard in versioned if by_transactions(shard.table)]
    results = []
    if precise:
        results.append(
            _PLACE.failed(
                "system_versioning",
                f"{members_listed(precise)} keep their former rows by transactions (the columns of"
                " the period are BIGINT): the server logs the statements that change them, not the"
                " rows",
                "Give them a period of TIMESTAMP(6), or leave them out (block-allow-list)",
            )
        )
    kept = [shard for shard in versioned if shard not in precise]
    if kept:
        results.append(
            _PLACE.warning(
                "system_versioning",
                f"{members_listed(kept)} keep their former rows (WITH SYSTEM VERSIONING): {name}"
                " gets the present ones. What it keeps of former ones, if it keeps any, are those"
                " that it had itself, with its own times",
                "Ask the shards for former rows",
            )
        )
    return results


def by_transactions(table: Table) -> bool:
    """Return whether a system-versioned table has a period of transactions, not timestamps."""
    period = system_period(table.create_sql)
    column = table.column(period.end) if period else None
    return column is not None and column.base_type != "timestamp"
