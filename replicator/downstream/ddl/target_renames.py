"""Renames targets whose shards were all renamed, exactly once.

The statement also renames a table of the task, the marker: after a crash, the marker's name shows
whether the statement ran. One statement renames several targets, because one may take another's
name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pymysql.err
import structlog

from replicator.downstream.ddl.ddl_session import reach_all_nodes
from replicator.downstream.ddl.row_moves import RowMoves
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.moved_shards import (
    AppliedUntil,
    MovedShard,
    MovedShardStore,
    Renaming,
    TableLife,
)
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.asyncio_connection import Connection, is_unavailable
from replicator.mysql.errors import error_code
from replicator.mysql.names import TableName, folded, quote
from replicator.mysql.row_values import without_values
from replicator.schema.effects.ddl_effects import target_renames
from replicator.schema.effects.moved_columns import ColumnPairs
from replicator.schema.structure.inspection import database_collation, listed, read_table
from replicator.schema.structure.structure import Table

PATIENCE = 7 * 24 * 3600.0
"""Seconds that a RENAME may wait for sessions that use the table."""

_MARKED = TableName("", "renamed targets")
"""The name from which the marker's name is derived."""


_CHILDREN = """
SELECT DISTINCT TABLE_SCHEMA, TABLE_NAME FROM information_schema.KEY_COLUMN_USAGE
WHERE REFERENCED_TABLE_SCHEMA = %s AND REFERENCED_TABLE_NAME = %s
"""


class RenameRefusedError(Exception):
    """The target's server has refused to rename targets."""


class TargetRenames:
    """Renames targets under a record of the shards that move."""

    def __init__(self, connection: Connection, meta: MetaStore) -> None:
        self._connection = connection
        self._meta = meta
        self._store = MovedShardStore(meta)
        self._rows = RowMoves(connection.address, meta)
        self._log = structlog.get_logger()

    async def recover(self) -> None:
        """Finish renamings that a crash has interrupted. Raises DatabaseUnavailableError.

        Call it before anything else is loaded from the saved state.
        """
        for pending in await self._store.load(done=False):
            # The statement may still be running. It fails without the marker, unless it has renamed
            # the marker.
            await self._connection.execute(f"DROP TABLE IF EXISTS {self._markers[0].quoted}")
            if await self._has_run():
                await self._finish(pending)
            elif await self._rows.has_run(self._connection, pending.number):
                await self._drop_emptied(pending)
        for last in (await self._store.load(done=True))[-1:]:
            await self._drop_replaced(last)

    async def load(self) -> list[Renaming]:
        """Return the renamings of the task, in their order. Raises DatabaseUnavailableError."""
        return await self._store.load(done=True)

    async def exists(self, target: TableName) -> bool:
        """Return whether a table or view of this name exists. Raises DatabaseUnavailableError."""
        return await listed(self._connection, target) is not None

    async def columns(self, target: TableName) -> frozenset[str]:
        """Return a target's column names, in lower case. Raises DatabaseUnavailableError."""
        table = await self.table(target)
        return frozenset(folded(column.name) for column in table.columns) if table else frozenset()

    async def table(self, target: TableName) -> Table | None:
        """Return a target's structure; None if there is none. Raises DatabaseUnavailableError."""
        return await read_table(self._connection, target)

    async def children(self, target: TableName) -> list[TableName]:
        """Return the tables with foreign keys to a target. Raises DatabaseUnavailableError."""
        return [TableName(*row) for row in await self._connection.fetch(_CHILDREN, tuple(target))]

    def aside(self, target: TableName) -> TableName:
        """Return the name under which a replaced target is dropped."""
        return self._meta.marker(replace(target, schema=f"replaced {target.schema}"))

    async def execute(
        self,
        shards: Sequence[MovedShard],
        until: Sequence[AppliedUntil],
        lives: Sequence[TableLife],
    ) -> None:
        """Rename the targets that these shards leave. Replaced targets are dropped.

        ``until`` and ``lives`` show which rows the targets have (`Renaming`).

        Raises DatabaseUnavailableError, RenameRefusedError.
        """
        await self._prepare()
        renaming = await self._store.begin(shards, until, lives)
        reach(Failpoint.DDL_RECORDED)
        marker, done = self._markers
        pairs = [*target_renames(renaming.pairs), f"{marker.quoted} TO {done.quoted}"]
        sql = f"RENAME TABLE {', '.join(pairs)}"
        self._log.info("target.renaming", statement=sql[:2000])
        await self._run(sql, {name.schema for name in renaming.names})
        reach(Failpoint.DDL_EXECUTED)
        await self._finish(renaming)
        reach(Failpoint.DDL_FINISHED)

    async def join(
        self,
        shards: Sequence[MovedShard],
        until: Sequence[AppliedUntil],
        lives: Sequence[TableLife],
        columns: ColumnPairs,
    ) -> None:
        """Move the rows of the target that these shards leave to the one that they join.

        Then the former target is dropped.

        Args:
            columns: pairs of a column of the former target and one of the new target.
            until, lives: as for `execute`.

        Raises DatabaseUnavailableError, RenameRefusedError.
        """
        await self._meta.confirm()
        await self._rows.prepare(self._connection)
        renaming = await self._store.begin(shards, until, lives)
        reach(Failpoint.DDL_RECORDED)
        [(former, target)] = renaming.pairs
        there = await self.table(target)
        assert there is not None
        self._log.info("target.joining", target=str(former), to=str(target))
        try:
            await self._rows.run(renaming.number, former, there, columns)
        except pymysql.err.MySQLError as error:
            if is_unavailable(error):
                raise
            code = error_code(error)
            raise RenameRefusedError(
                f"{without_values(str(error.args[-1]), code)} ({code})"
            ) from error
        reach(Failpoint.DDL_EXECUTED)
        await self._drop_emptied(renaming)
        reach(Failpoint.DDL_FINISHED)

    async def widen(self, target: TableName, sql: str) -> None:
        """Prepare a target for the rows moved to it, by an ALTER TABLE.

        It may be executed again. Raises DatabaseUnavailableError, RenameRefusedError.
        """
        await self._run(sql, set())
        self._log.info("target.widened", target=str(target), statement=sql[:2000])

    async def admit(
        self,
        shards: Sequence[MovedShard],
        until: Sequence[AppliedUntil],
        lives: Sequence[TableLife],
    ) -> None:
        """Let shards join targets by the operator's answer; no row is moved.

        ``until`` and ``lives`` show which rows these targets have (`Renaming`).

        Raises DatabaseUnavailableError.
        """
        await self._meta.confirm()
        await self._store.finish(await self._store.begin(shards, until, lives))

    async def _drop_emptied(self, renaming: Renaming) -> None:
        """Finish a move of rows that is committed."""
        [(former, target)] = renaming.pairs
        await reach_all_nodes(self._connection)
        await self._connection.execute(f"DROP TABLE IF EXISTS {former.quoted}", patience=PATIENCE)
        await self._store.finish(renaming)
        await self._rows.forget(self._connection)
        self._log.info("target.joined", target=str(former), to=str(target))

    async def _drop_replaced(self, renaming: Renaming) -> None:
        for _, aside in renaming.replaced:
            await reach_all_nodes(self._connection)
            await self._connection.execute(
                f"DROP TABLE IF EXISTS {aside.quoted}", patience=PATIENCE
            )

    @property
    def _markers(self) -> tuple[TableName, TableName]:
        """The marker's names before and after the statement."""
        marker = self._meta.marker(_MARKED)
        return marker, replace(marker, table=f"{marker.table}_done")

    async def _prepare(self) -> None:
        await self._meta.confirm()
        marker, done = self._markers
        await self._connection.execute(f"DROP TABLE IF EXISTS {done.quoted}")
        await self._connection.execute(
            f"CREATE TABLE IF NOT EXISTS {marker.quoted} (id INT PRIMARY KEY)"
        )

    async def _has_run(self) -> bool:
        return await self.exists(self._markers[1])

    async def _finish(self, renaming: Renaming) -> None:
        await self._store.finish(renaming)
        await self._connection.execute(f"DROP TABLE IF EXISTS {self._markers[1].quoted}")
        await self._drop_replaced(renaming)
        for former, target in renaming.pairs:
            if (former, target) in renaming.replaced:
                self._log.warning("target.replaced", target=str(former))
            else:
                self._log.info("target.renamed", target=str(former), to=str(target))

    async def _run(self, sql: str, schemas: set[str]) -> None:
        session = Connection(self._connection.address)
        try:
            await reach_all_nodes(session)
            await self._meta.lease.confirm(session)
            for schema in sorted(schemas):
                if await database_collation(session, schema) is None:
                    await session.execute(f"CREATE DATABASE IF NOT EXISTS {quote(schema)}")
            await session.execute(sql, patience=PATIENCE)
        except pymysql.err.MySQLError as error:
            if is_unavailable(error):
                raise
            # A former attempt that lost its client may have ended in the meantime.
            if not await self._has_run():
                text = f"{error.args[-1]} ({error_code(error)})\n  statement: {sql}"
                raise RenameRefusedError(text) from error
        finally:
            session.close()
