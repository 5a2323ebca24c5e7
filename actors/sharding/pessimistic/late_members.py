"""Members that are older than their target: they lack its last schema changes.

They were created or unlocked without these changes. Their rows are written by column paths
(`replicator.schema.effects.column_path`). It is a fault if a created member has a structure that
the target has never had.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from attrs import define

from actors.errors.faults import DdlEvent, FatalError, fault
from actors.saved.lock_state import ShardStatement
from actors.setup.task_setup import ColumnsOf
from actors.sharding.moved_shards import MovedShards
from actors.sharding.pessimistic.lock_messages import TableAhead
from replicator.binlog.segments.row_events import RowEvents
from replicator.binlog.segments.segment import Statement
from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.parser.statement_kinds import classify
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.moved_shards import MovedShardStore
from replicator.mysql.names import TableName, folded
from replicator.schema.effects.column_path import (
    ColumnPath,
    column_path,
    dropped_by,
    redefined,
)
from replicator.schema.effects.ddl_effects import Effect
from replicator.schema.registry.registry import GONE, UNSEEN, KnownStructure, SchemaRegistry
from replicator.schema.structure.column_rules import as_shards_have_it
from replicator.schema.structure.structure import Table, differences
from replicator.sharding.items import Item, ResolvedItem, Template
from replicator.sharding.pessimistic.group import Group

StructureAt = Callable[[int], Awaitable[Table | None]]
"""Returns the structure of the target at a version, if it is known."""
UnlikeTarget = Callable[[int, int, KnownStructure], Awaitable[list[str]]]
"""Returns the differences of a member's structure from the target at a version. Its arguments are
the number of the member, the version, and the structure."""


@dataclass(frozen=True, slots=True)
class LateStatement:
    """A statement of a member that has items for which it made no statement.

    Attributes:
        fits: the versions, up to the member's own, whose structure the member has after the
            statement; None if they are not needed.
        drops: if the statement may also be a new one, the items that drop the columns that it adds.
    """

    fits: Collection[int] | None = None
    drops: Collection[int] = field(default=())


NOT_LATE = LateStatement()


@define(eq=False)
class LateMembers:
    """Finds the column paths of a group's members, by their ``numbers``."""

    _registry: SchemaRegistry
    _group: Group[TableName, ShardStatement]
    _numbers: Mapping[TableName, int]
    _unlike: UnlikeTarget
    _target_at: StructureAt
    _columns: ColumnsOf

    async def statement(
        self,
        item: Item[TableName, ShardStatement],
        before: Table | None,
        after: Table | None,
    ) -> LateStatement:
        """Compare a statement of a member with the items for which the member made no statement.

        Args:
            before: the member's structure before the statement, if it is certain.
            after: the structure after the statement, if it is certain.
        """
        state, matched = self._group.members[item.member], self._group.matched(item)
        if matched is None or before is None or after is None:
            return NOT_LATE
        name = item.member
        fits = [v for v in range(matched, state.version + 1) if await self._is_at(name, v, after)]
        had = {folded(column.name) for column in before.columns}
        added = {folded(column.name) for column in after.columns} - had
        versions = [v for v in sorted({*state.awaited, *state.optional}) if v > matched]
        later = [(v, done) for v in versions if (done := self._group.resolved(v))]
        later = [(v, done) for v, done in later if not done.skipped]
        dropped = dropped_by(added, [statement_of(done) for _, done in later])
        drops = {later[place][0] for place in dropped.values()}
        new = drops and await self._is_at(name, state.version, before)
        return LateStatement(fits, drops if new else ())

    async def _is_at(self, member: TableName, version: int, own: Table) -> bool:
        """Whether a member's structure is that of the target at a version.

        If the version is still open, the structures of shards that have made its item are compared.
        """
        there = await self._target_at(version)
        if there is None:
            return any(not differences(table, own) for table in self._after_open(version))
        rules = self._columns(self._registry.member(self._numbers[member]))
        mapped = rules.mapped.name if rules.mapped else None
        return not differences(as_shards_have_it(there, rules.extracted_names, mapped, own), own)

    def _after_open(self, version: int) -> Iterator[Table]:
        """Yield the certain structures of the members after the open item of a version."""
        for item in self._group.items.get(version, ()):
            number = self._numbers.get(item.member)
            held = number is not None and self._registry.held(number, item.at.transaction).certain
            if held:
                yield held

    def earliest(
        self, fitting: Iterable[Template[TableName]], chosen: Template[TableName], own: Table | None
    ) -> int | None:
        """Return the earliest version that fits a created table as well as the chosen one does.

        No item since then drops or renames a column of the table.
        """
        newest = self._group.made_at(chosen)
        for version in sorted({self._group.made_at(one) for one in fitting}):
            items = [self._group.resolved(number + 1) for number in range(version, newest)]
            if own is None or version >= newest or not all(items):
                continue
            executed = [statement_of(item) for item in items if item and not item.skipped]
            if not column_path([column.name for column in own.columns], executed):
                return version
        return None

    async def column_paths(self, rows: RowEvents | None) -> dict[int, ColumnPath]:
        """Return the non-empty paths of the members with these rows, by their numbers.

        Raises DatabaseUnavailableError.
        """
        if rows is None or not any(state.awaited for state in self._group.members.values()):
            return {}
        names = {number: name for name, number in self._numbers.items()}
        found = {number: await self._path(number, names[number]) for number in rows.members}
        return {number: path for number, path in found.items() if path}

    async def _path(self, number: int, member: TableName) -> ColumnPath:
        """Return the path of a member's columns through the items that it has not made.

        The path includes columns that the target has dropped only if the member has certainly not
        added them again since. If it has, the target must receive their values.
        """
        state = self._group.members[member]
        lacking = [version for version in state.awaited if version <= self._group.known]
        items = [(it, item) for it in lacking if (item := self._group.resolved(it))]
        held = self._registry.held(number, state.since.transaction).certain
        if held is None or not items:
            return ()
        executed = [(version, item) for version, item in items if not item.skipped]
        statements = [statement_of(item) for _, item in executed]
        columns = [column.name for column in held.columns]
        path = column_path(columns, statements)
        dropped = dropped_by(columns, statements)
        made = min(*state.awaited, *state.optional, lacking[0]) - 1
        if await self._is_at(member, made, held):
            # A statement that may also be a new one is an open item (`statement`).
            again = redefined(columns, statements).difference(dict(path))
            return (*path, *((name, name) for name in sorted(again)))
        versions = await self._possible_versions(number, member, made) if dropped else []
        if not versions:
            return path
        before = self._columns_before(number, member)
        new = {
            name
            for name, place in dropped.items()
            if name not in before or max(versions) >= executed[place][0]
        }
        return tuple((name, now) for name, now in path if now or name not in new)

    def _columns_before(self, number: int, member: TableName) -> frozenset[str]:
        since = self._group.members[member].since.transaction
        before = self._registry.held(number, since - 1).certain
        return (
            frozenset(folded(column.name) for column in before.columns) if before else frozenset()
        )

    async def _possible_versions(self, number: int, member: TableName, made: int) -> list[int]:
        """Return the target versions that a member may have had before its last statement.

        These are the versions from ``made`` on that have the member's structure of that time. The
        statement may be a new one after any of them.
        """
        since = self._group.members[member].since.transaction
        before = self._registry.held(number, since - 1)
        versions = range(made, self._group.known + 1)
        if before.certain is None:
            return [] if before is GONE or before is UNSEEN else list(versions)
        unlike = [await self._unlike(number, version, before) for version in versions]
        return [version for version, found in zip(versions, unlike, strict=True) if not found]


async def note_ahead(
    meta: MetaStore, moved: MovedShards, ahead: TableAhead, target: TableName
) -> None:
    """Save that a created table's rows are held while its target has the current version.

    Rows of other tables then move the watermarks of this version past them.
    """
    known = ahead.group.known
    if moved.ahead(ahead.member, ahead.place) is None:
        moved.note_ahead(ahead.member, ahead.place, known)
        await MovedShardStore(meta).note_ahead(ahead.member, ahead.place, target, known)


def statement_of(item: ResolvedItem) -> ParsedStatement:
    """Return the parsed statement of an item as a statement about a table of another name."""
    return classify(item.text.replace("<table>", "`t`", 1), default_schema="s")


def create_differs(
    source: str, effect: Effect, statement: Statement, found: Iterable[str]
) -> FatalError:
    """Return the fault to raise if a created shard differs from the others.

    ``found``: the differences.
    """
    return fault(
        "ddl.create-differs",
        about=DdlEvent(source, statement.position),
        member=effect.table,
        target=effect.target,
        differences="; ".join(found),
        source=source,
        statement=statement.sql[:2000],
    )
