"""The targets of a full copy; missing ones are created with the structure of their shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Self

import anyio
import structlog
from pymysql.err import MySQLError

from actors.copying.start import CopyMember
from actors.errors.faults import FatalError, fault, refuse_clash
from actors.errors.refusals import refusal, refuse_engine
from actors.setup.task_setup import SourceSetup, address_of, columns_of
from actors.sharding.modes import SHARD_MODES
from config.models import Task
from replicator.downstream.ddl.creation import (
    Pattern,
    TargetNotCreatedError,
    create_target,
    creation_statements,
    read_pattern,
)
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.names import Member, TableName
from replicator.pipeline.copy.copy_plan import TargetShard
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.structure.column_rules import EXTRACTED_TYPE, wide_enough
from replicator.schema.structure.foreign_keys import parent_of
from replicator.schema.structure.inspection import read_fingerprint, read_target, read_targets
from replicator.schema.structure.structure import Table
from replicator.sharding.optimistic.fills import TargetFills, filled
from replicator.sharding.optimistic.joined_table import joined_table
from replicator.sharding.optimistic.shapes import NoJoinError, described_apart

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CopyTarget:
    """A target of a copy: its number, its structure, and the shards that may have its keys."""

    number: int
    structure: Table
    shards: Sequence[TargetShard] = ()


@dataclass(frozen=True, slots=True)
class MadeTargets:
    """The targets of a copy.

    Attributes:
        found: all targets, without their shards.
        empty: the targets without rows; all rows that they get are copied rows.
        filled: the targets with rows that the task has not written.
    """

    found: Mapping[TableName, CopyTarget]
    empty: frozenset[TableName]
    filled: frozenset[TableName]


@dataclass(frozen=True, slots=True)
class RowsBefore:
    """Targets that the task has written rows to.

    Attributes:
        begun: targets whose copy was begun, so they may have copied rows.
        copied: targets that have copied rows, so they must exist.
        followed: targets that may have rows of sources which the task follows without having copied
            them.
    """

    begun: Set[TableName]
    copied: Set[TableName]
    followed: Set[TableName]


async def make_targets(
    task: Task,
    setups: Mapping[str, SourceSetup],
    registry: SchemaRegistry,
    members: Mapping[str, Sequence[CopyMember]],
    before: RowsBefore,
    fills: Mapping[TableName, TargetFills],
) -> MadeTargets:
    """Return every target that members are copied to; create the missing ones.

    If a target has rows that the task has not written, this is reported or refused.

    Args:
        before: the targets that the task has written rows to.
        fills: as in `ShardMode.fills`.

    Raises:
        FatalError: a target is refused, or can't be created.
    """
    shards: dict[TableName, list[tuple[SourceSetup, CopyMember]]] = {}
    for source, setup in setups.items():
        for member in members.get(source, []):
            if member.target not in shards:
                refuse_clash(registry, member.target, f"source {source}, {member.name}")
            shards.setdefault(member.target, []).append((setup, member))
    shards = _parents_first(shards)
    with _Sessions(task, setups) as sessions:
        found = await sessions.read(shards)
        missing = [name for name in shards if name not in found]
        patterns = {}
        for name in missing:
            if name in before.copied:
                raise _lost(name)
            setup, like = patterns[name] = pattern_shard(task, name, shards[name])
            _refuse_extracted(name, setup, like.name)
        await _make_all(sessions, patterns)
        made = await sessions.read(missing)
        empty, filled_before = {*missing}, set()
        for name in (name for name in found if name not in before.begun):
            if await sessions.has_rows(name):
                _check_rows(name, found[name], followed=name in before.followed)
                filled_before.add(name)
            else:
                empty.add(name)
        targets = {}
        for name in shards:
            table = (found | made)[name]
            refuse_engine(name, table)
            if name in fills:
                table = filled(table, fills[name].fills)
            targets[name] = CopyTarget(registry.target(name), table)
        return MadeTargets(targets, frozenset(empty), frozenset(filled_before))


CREATED_AT_ONCE = 4
"""Number of targets that are created at once: for each, a server waits for its disk several
times."""


async def _make_all(
    sessions: _Sessions, patterns: Mapping[TableName, tuple[SourceSetup, CopyMember]]
) -> None:
    """Create targets, each like its pattern; the parents of foreign keys precede their children.

    Raises FatalError, DatabaseUnavailableError.
    """
    alone, related = list[TableName](), list[TableName]()
    for name, (_, like) in patterns.items():
        (related if like.structure.definition.foreign_keys else alone).append(name)
    errors: list[Exception] = []

    async def make(creating: Connection, names: Iterator[TableName]) -> None:
        try:
            for name in names:
                if not errors:
                    await _make(sessions, creating, name, *patterns[name])
        except (FatalError, DatabaseUnavailableError) as error:
            errors.append(error)

    shared = iter(alone)
    async with anyio.create_task_group() as tasks:
        for creating in sessions.creating:
            tasks.start_soon(make, creating, shared)
    await make(sessions.creating[0], iter(related))
    if errors:
        raise errors[0]


class _Sessions:
    """The sessions that make targets.

    To read and create them on the target, and to read the sources.

    They are closed at the end of the block.
    """

    def __init__(self, task: Task, setups: Mapping[str, SourceSetup]) -> None:
        address = address_of(task.target_database)
        self.target = Connection(address)
        self.creating = [Connection(address) for _ in range(CREATED_AT_ONCE)]
        self.sources = {source: Connection(setup.address) for source, setup in setups.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in (self.target, *self.creating, *self.sources.values()):
            connection.close()

    async def read(self, names: Iterable[TableName]) -> dict[TableName, Table]:
        """Return the structures of the targets that exist. Raises FatalError."""
        wanted = list(names)
        with suppress(MySQLError):
            return await read_targets(self.target, wanted)
        found = {}
        for name in wanted:
            try:
                table = await read_target(self.target, name)
            except MySQLError as error:
                raise refusal(self.target.address, error, source=None, of=name) from error
            if table is not None:
                found[name] = table
        return found

    async def has_rows(self, name: TableName) -> bool:
        """Return whether a target has rows. Raises FatalError."""
        try:
            return bool(await self.target.fetch(f"SELECT 1 FROM {name.quoted} LIMIT 1"))
        except MySQLError as error:
            raise refusal(self.target.address, error, source=None, of=name) from error


def _parents_first(
    shards: dict[TableName, list[tuple[SourceSetup, CopyMember]]],
) -> dict[TableName, list[tuple[SourceSetup, CopyMember]]]:
    """Return the targets in an order with the parents of foreign keys before their children."""
    found: dict[TableName, list[tuple[SourceSetup, CopyMember]]] = {}

    def add(name: TableName, path: tuple[TableName, ...]) -> None:
        if name in found or name in path or name not in shards:
            return
        for setup, member in shards[name]:
            for key in member.structure.definition.foreign_keys:
                parent = _route(setup, parent_of(key, member.name.schema))
                if parent is not None:
                    add(parent, (*path, name))
        found[name] = shards[name]

    for name in shards:
        add(name, ())
    return found


def _route(setup: SourceSetup, name: TableName) -> TableName | None:
    routed = setup.router.route(name.schema, name.table)
    return None if routed is None else TableName(routed.schema, routed.table)


def pattern_shard(
    task: Task, name: TableName, shards: Sequence[tuple[SourceSetup, CopyMember]]
) -> tuple[SourceSetup, CopyMember]:
    """Return the shard whose structure a missing target gets.

    It is the first shard. If the shard mode joins structures, it has the structure that accepts the
    rows of all shards. Raises FatalError if there is no such structure.
    """
    setup, first = shards[0]
    if not SHARD_MODES[task.shard_mode].joins_structures:
        return setup, first
    try:
        joined = joined_table([member.structure for _, member in shards])
    except NoJoinError as error:
        having = ((Member(setup.source, member.name), member.structure) for setup, member in shards)
        listed = [
            f"{member} has {described_apart(table, column)}"
            for member, table in having
            if (column := table.column(error.column)) is not None
        ]
        raise fault(
            "target.not-created",
            "unlike-shards",
            target=name,
            error=error,
            columns="; ".join(dict.fromkeys(listed)),
        ) from error
    return setup, replace(first, structure=joined)


def _lost(name: TableName) -> FatalError:
    return fault("target.missing", "copied", target=name)


def _check_rows(name: TableName, table: Table, *, followed: bool) -> None:
    if table.row_key is not None:
        log.warning("target.has-rows", target=str(name))
        return
    if followed:
        raise fault("copy.target-has-rows", "of-followed-sources", target=name)
    raise fault("copy.target-has-rows", "before-copy", target=name)


def _refuse_extracted(name: TableName, setup: SourceSetup, like: TableName) -> None:
    """Raise FatalError for a missing target with columns that no shard has.

    Only the operator can know which keys such a target needs.
    """
    member = Member(setup.source, like)
    columns = sorted(columns_of({setup.source: setup})(member).extracted_names)
    if columns:
        raise fault(
            "target.not-created",
            "extracted-columns",
            target=name,
            columns=", ".join(columns),
            member=member,
            type=EXTRACTED_TYPE,
        )


async def creation_of(
    target: Connection, name: TableName, setup: SourceSetup, member: CopyMember
) -> tuple[str, ...]:
    """Return the statements that would create a missing target like a shard.

    Raises FatalError if the target can't be created, and DatabaseUnavailableError.
    """
    _refuse_extracted(name, setup, member.name)
    with closing(Connection(setup.address)) as upstream:
        pattern = await _pattern(upstream, name, setup, member)
    try:
        statements, _ = await creation_statements(target, name, pattern)
    except TargetNotCreatedError as error:
        raise _not_created(name, setup, member, error) from error
    return statements


async def _pattern(
    upstream: Connection, name: TableName, setup: SourceSetup, member: CopyMember
) -> Pattern:
    try:
        pattern = await read_pattern(upstream, member.name)
        present = await read_fingerprint(upstream, member.name)
        if present is not None and present != member.structure.fingerprint:
            # Later changes of the shard are in the binlog, and change the target, too.
            pattern = replace(pattern, create_sql=member.structure.create_sql)
    except MySQLError as error:
        raise refusal(setup.address, error, source=setup.source, of=name) from error

    def parents(schema: str, table: str) -> TableName | None:
        return _route(setup, TableName(schema or member.name.schema, table))

    pattern = replace(pattern, parents=parents)
    mapped = columns_of({setup.source: setup})(Member(setup.source, member.name)).mapped
    if mapped is not None:
        pattern = replace(pattern, create_sql=wide_enough(pattern.create_sql, mapped.name))
    return pattern


def _not_created(
    name: TableName, setup: SourceSetup, member: CopyMember, error: TargetNotCreatedError
) -> FatalError:
    return fault(
        "target.not-created",
        "refused",
        target=name,
        error=error.message,
        remedies=error.remedies,
        member=Member(setup.source, member.name),
    )


async def _make(
    sessions: _Sessions,
    creating: Connection,
    name: TableName,
    setup: SourceSetup,
    member: CopyMember,
) -> None:
    pattern = await _pattern(sessions.sources[setup.source], name, setup, member)
    try:
        made = await create_target(creating, name, pattern)
    except TargetNotCreatedError as error:
        raise _not_created(name, setup, member, error) from error
    except MySQLError as error:
        raise refusal(creating.address, error, source=None, of=name) from error
    log.info(
        "target.created",
        target=str(name),
        like=f"{setup.source}: {member.name}",
        left_out=list(made.foreign_keys),
        refused=made.refused,
        auto_increment=made.auto_increment,
        engine=made.engine,
        collations=dict(made.collations),
        warnings=list(made.warnings),
    )
