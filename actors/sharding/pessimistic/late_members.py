"""Members that are older than their target: created, or unlocked, without its last schema changes.

Their rows are written by the path of their columns (`replicator.schema.effects.column_path`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from attrs import define

from actors.lock_state import ShardStatement
from replicator.binlog.segments.row_events import RowEvents
from replicator.ddl.parser.classify import classify
from replicator.ddl.parser.statement import ParsedStatement
from replicator.mysql.names import TableName
from replicator.schema.effects.column_path import ColumnPath, column_path
from replicator.schema.registry.registry import GONE, UNSEEN, KnownStructure, SchemaRegistry
from replicator.sharding.items import ResolvedItem
from replicator.sharding.pessimistic.group import Group

UnlikeTarget = Callable[[int, int, KnownStructure], Awaitable[list[str]]]
"""The differences of a structure of a member (number) from the target at a version."""


@define(eq=False)
class LateMembers:
    """Finds the paths of the columns of a group's members, by their ``numbers``."""

    _registry: SchemaRegistry
    _group: Group[TableName, ShardStatement]
    _numbers: Mapping[TableName, int]
    _unlike: UnlikeTarget

    async def column_paths(self, rows: RowEvents | None) -> dict[int, ColumnPath]:
        """Return the paths that are not empty of the members with these rows, by their numbers.

        Raises DatabaseUnavailableError.
        """
        if rows is None or not any(state.awaited for state in self._group.members.values()):
            return {}
        names = {number: name for name, number in self._numbers.items()}
        found = {number: await self._path(number, names[number]) for number in rows.members}
        return {number: path for number, path in found.items() if path}

    async def _path(self, number: int, member: TableName) -> ColumnPath:
        """Return the path of a member's columns through the items that it has not made.

        Columns that the target has dropped are in it only if the member is certainly older than
        that. Otherwise it may have added them again, and their values belong on the target.
        """
        state = self._group.members[member]
        lacking = [version for version in state.awaited if version <= self._group.known]
        items = [item for version in lacking if (item := self._group.resolved(version))]
        held = self._registry.held(number, state.since.transaction).certain
        if held is None or not items:
            return ()
        statements = [statement_of(item) for item in items if not item.skipped]
        path = column_path((column.name for column in held.columns), statements)
        made = min(*state.awaited, *state.optional, lacking[0]) - 1
        if any(not now for _, now in path) and await self._may_be_newer(number, member, made):
            return tuple((name, now) for name, now in path if now)
        return path

    async def _may_be_newer(self, number: int, member: TableName, made: int) -> bool:
        """Whether a member had, before the statement that gave it its structure, that of a version
        of the target from ``made`` on: the statement may be a new one then."""
        since = self._group.members[member].since.transaction
        before = self._registry.held(number, since - 1)
        if before.certain is None:
            return before is not GONE and before is not UNSEEN
        versions = range(made, self._group.known + 1)
        unlike = [await self._unlike(number, version, before) for version in versions]
        return not all(unlike)


def statement_of(item: ResolvedItem) -> ParsedStatement:
    """Return the statement of an item, about a table of another name."""
    return classify(item.text.replace("<table>", "`t`", 1), default_schema="s")
