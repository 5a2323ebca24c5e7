"""The structures of a target at its versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from actors.saved.lock_state import LockHistory, ShardStatement
from actors.sharding.moved_shards import MovedShards
from actors.sharding.pessimistic.late_members import statement_of
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.schema.effects.column_path import ColumnPath, column_path
from replicator.schema.registry.registry import KnownStructure, dump_structure, load_structure
from replicator.schema.structure.inspection import read_cached
from replicator.schema.structure.structure import Table, differences
from replicator.sharding.pessimistic.lock import TargetLock

_TIED = """
SELECT REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME FROM information_schema.KEY_COLUMN_USAGE
WHERE REFERENCED_TABLE_NAME IS NOT NULL AND TABLE_SCHEMA = %s AND TABLE_NAME = %s
UNION SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.KEY_COLUMN_USAGE
WHERE REFERENCED_TABLE_SCHEMA = %s AND REFERENCED_TABLE_NAME = %s
"""


class UnknownVersionError(Exception):
    """A target's structure at a version is unknown, or not known yet."""


class TargetVersions:
    """Finds the structure of a target at a version, independent of when the binlog is read.

    The structure of the current version is read from the target. The structure of each earlier
    version was saved with the decision on the item that ended the version.

    Attributes:
        moved: the renamings; after a renaming, the old name belongs to another table.
    """

    def __init__(
        self,
        target: Connection,
        histories: Mapping[TableName, LockHistory],
        moved: MovedShards | None = None,
    ) -> None:
        self._target = target
        self.moved = moved or MovedShards()
        self._known: dict[tuple[TableName, int], Table | None] = {}
        self._expected: dict[tuple[TableName, int], Table] = {}
        self._saved = {
            (name, version): text
            for name, history in histories.items()
            for version, text in history.structures.items()
        }

    async def tied(self, name: TableName) -> list[TableName]:
        """Return the parents and children of a target by its server's foreign keys.

        Raises DatabaseUnavailableError.
        """
        rows = await self._target.fetch(_TIED, (*name, *name))
        return [TableName(str(schema), str(table)) for schema, table in rows]

    async def present(self, name: TableName) -> Table | None:
        """Read the target's current structure; None if there is no table.

        Raises DatabaseUnavailableError.
        """
        return await read_cached(self._target, name)

    def expect(self, name: TableName, version: int, structure: Table) -> None:
        """Record the structure of a target whose CREATE was read, but may not be executed yet."""
        self._expected[name, version] = structure

    def claim(
        self, lock: TargetLock[TableName, ShardStatement], version: int, structure: Table | None
    ) -> None:
        """Record the structure of a shard that joined at a version, and creates a missing target.

        Until the target exists, all other shards are compared with this structure.
        """
        if structure is not None:
            self._expected.setdefault((lock.target, version), structure)

    def note(self, name: TableName, version: int, structure: Table) -> None:
        """Record the saved structure of a version before the first one."""
        self._saved[name, version] = dump_structure(structure)

    async def end(self, name: TableName, version: int, shard: Table | None) -> str:
        """Save the target's structure for its current version, and return it as text.

        Call it before the item that ends the version is saved. Raises DatabaseUnavailableError.

        Args:
            shard: structure of a shard before that item. It is used if the target does not exist
                yet, because its CREATE has been read and may be executed at any moment.
        """
        if shard is not None:
            # Set it before the first await: `at` may run at the same time.
            self._expected[name, version] = shard
        there = await read_cached(self._target, name)
        text = dump_structure(there or self._expected.get((name, version)))
        self._saved[name, version] = text
        return text

    async def at(self, lock: TargetLock[TableName, ShardStatement], version: int) -> Table | None:
        """Return the structure of a lock's target at a version; None if there was no table.

        Raises UnknownVersionError, DatabaseUnavailableError.
        """
        name = lock.target
        saved = self._saved.get((name, version))
        if saved is None and version == lock.version:
            present = await read_cached(self._target, name)
            # In the meantime an item may have been decided, and its execution may have begun.
            saved = self._saved.get((name, version))
            if saved is None:
                return present or self._expected.get((name, version))
        if saved is None:
            raise UnknownVersionError(f"what {name} was at version {version} is not known")
        if (name, version) not in self._known:
            self._known[name, version] = load_structure(saved)
        return self._known[name, version]

    async def paths(
        self, lock: TargetLock[TableName, ShardStatement], name: TableName, own: Table
    ) -> Sequence[ColumnPath]:
        """Return the paths of a table's columns from each target version that has its structure.

        Raises DatabaseUnavailableError.
        """
        found = []
        for version in range(self.moved.last_end(name), lock.version + 1):
            try:
                then = await self.at(lock, version)
            except UnknownVersionError:
                continue
            if then is not None and not differences(then, own):
                later = lock.history[version : lock.version]
                statements = [statement_of(item) for item in later if not item.skipped]
                found.append(column_path([column.name for column in own.columns], statements))
        return found


def other_than(template: Table | None, held: KnownStructure) -> list[str]:
    """Return the differences of a created table from a template, or why they are uncertain."""
    if held.certain is None:
        return [f"its structure is not known for certain: {held.doubt}"]
    if template is None:
        return ["the structure of the shard that it was compared with is not known for certain"]
    return differences(template, held.certain)
