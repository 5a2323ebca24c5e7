"""Trying statements on an empty copy of a target: does its server refuse them whatever the rows?"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import pymysql.err

from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.rewrite.constraint_names import foreign_key_names
from replicator.ddl.rewrite.retarget import retarget
from replicator.ddl.rewrite.single_changes import dropped_keys, renewed_columns
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.context.sql_modes import UnknownModeError
from replicator.mysql.context.statement_context import StatementContext
from replicator.mysql.context.statement_session import set_up_session
from replicator.mysql.names import TableName, folded, quote
from replicator.schema.scratch.scratch_statements import renamed
from replicator.schema.structure.inspection import read_table
from replicator.schema.structure.structure import Table

_KEY_PARTS = """
SELECT INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
"""


class Rehearsal:
    """Tries statements that alter a target, one attempt at a time."""

    def __init__(self, connection: Connection, copy: TableName) -> None:
        self._connection = connection
        self._copy = copy
        self._lock = anyio.Lock()

    async def refused(
        self,
        target: TableName,
        statements: Sequence[ParsedStatement],
        context: StatementContext,
        create: str = "",
    ) -> bool:
        """Whether the server refuses one of these statements, run in their order on a copy.

        The copy is made by ``create``, another table's CREATE, where that is given. Raises
        DatabaseUnavailableError.
        """
        async with self._copied():
            return not await self._tried(target, statements, context, create)

    async def outcome(
        self, target: TableName, statements: Sequence[ParsedStatement], context: StatementContext
    ) -> Table | None:
        """The copy after these statements; None if the server refuses one of them.

        Raises DatabaseUnavailableError.
        """
        async with self._copied():
            if not await self._tried(target, statements, context, ""):
                return None
            return await read_table(self._connection, self._copy)

    @asynccontextmanager
    async def _copied(self) -> AsyncIterator[None]:
        async with self._lock:
            drop = f"DROP TABLE IF EXISTS {self._copy.quoted}"
            await self._connection.execute(drop)
            try:
                yield
            finally:
                await self._connection.execute(drop)

    async def keeps_keys(self, target: TableName, statement: ParsedStatement) -> bool:
        """Whether no key of the target goes with a column that a statement drops and adds anew,
        although the statement, made at once, keeps it.

        Raises DatabaseUnavailableError.
        """
        renewed, dropped = renewed_columns(statement), dropped_keys(statement)
        if not renewed:
            return True
        parts = await self._connection.fetch(_KEY_PARTS, (target.schema, target.table))
        return all(
            folded(str(column)) not in renewed or folded(str(key)) in dropped
            for key, column in parts
        )

    async def _tried(
        self,
        target: TableName,
        statements: Sequence[ParsedStatement],
        context: StatementContext,
        create: str,
    ) -> bool:
        """Whether a copy takes these statements."""
        copied = (self._copy.schema, self._copy.table)

        def on_copy(schema: str, table: str) -> tuple[str, str]:
            return copied if TableName(schema, table) == target else (schema, table)

        session = Connection(self._connection.address)
        try:
            like = f"CREATE TABLE {self._copy.quoted} LIKE {target.quoted}"
            if not create:
                shown = str((await session.fetch(f"SHOW CREATE TABLE {target.quoted}"))[0][1])
                # TiDB's LIKE also renames the CHECK constraints of the original.
                create = shown if " CHECK (" in shown else ""
            await session.execute(renamed(create, self._copy) if create else like)
            await set_up_session(session, context, "; ".join(one.sql for one in statements))
            # A foreign key may name its parent without a schema.
            await session.execute(f"USE {quote(target.schema)}")
            for statement in statements:
                # A table of another attempt may have the name of a foreign key.
                edits = foreign_key_names(statement)
                await session.execute(retarget(statement, on_copy, edits))
        except (pymysql.err.MySQLError, UnknownModeError):
            return False
        finally:
            session.close()
        return True
