"""Executes statements on an empty copy of a target, to learn whether they are always refused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import pymysql.err
from pymysql.constants import ER

from replicator.ddl.parser.alter_parser import typed_actions
from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.constraint_names import foreign_key_names
from replicator.ddl.rewrite.ignored_foreign_keys import without_foreign_keys
from replicator.ddl.rewrite.retarget import retarget
from replicator.ddl.rewrite.single_changes import dropped_keys, renewed_columns
from replicator.downstream.ddl.rebuilding import changed_table, create_changed
from replicator.mysql.errors import (
    NO_SUCH_TABLE,
    REFUSED_BY_TIDB,
    DatabaseUnavailableError,
    error_code,
    is_about_statement,
    is_contention,
)
from replicator.mysql.names import TableName, folded, quote
from replicator.mysql.session_context.sql_modes import UnknownModeError
from replicator.mysql.session_context.statement_context import NO_CONTEXT, StatementContext
from replicator.mysql.session_context.statement_session import StatementSessions, set_up_session
from replicator.schema.scratch.scratch_statements import renamed
from replicator.schema.structure.inspection import read_table
from replicator.schema.structure.structure import Table

_KEY_PARTS = """
SELECT INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
"""


class Rehearsal:
    """Executes statements that alter a target on a copy, one attempt at a time.

    The server refuses a statement if the error is about the statement, or about a missing target.
    Other errors are raised: the server's own, or DatabaseUnavailableError if the attempt can be
    retried.
    """

    def __init__(self, sessions: StatementSessions, copy: TableName) -> None:
        self._sessions = sessions
        self._connection = sessions.connection
        self._copy = copy
        self._lock = anyio.Lock()
        # A former process may have left the copy.
        self._may_exist = True

    async def refused(
        self,
        target: TableName,
        statements: Sequence[ParsedStatement],
        context: StatementContext,
    ) -> bool:
        """Return whether the server refuses one of these statements, in order, on a copy."""
        async with self._copied():
            return await self._tried(target, statements, context) is not None

    async def takes_anew(self, target: TableName, statements: Sequence[ParsedStatement]) -> bool:
        """Return whether the server refuses these statements but can store the resulting table.

        If so, `replicator.downstream.ddl.rebuilding` creates the target again.
        """
        actions = [action for one in statements for action in typed_actions(one)]
        async with self._copied():
            if await self._tried(target, statements, NO_CONTEXT) not in REFUSED_BY_TIDB:
                return False
            wanted = await changed_table(self._connection, target, actions)
            if wanted is None:
                return False
            await self._drop()
            self._may_exist = True
            try:
                await create_changed(self._connection, self._copy, target, wanted)
            except pymysql.err.MySQLError as error:
                if not is_about_statement(error):
                    raise
                return False
            return True

    async def outcome(
        self, target: TableName, statements: Sequence[ParsedStatement], context: StatementContext
    ) -> Table | None:
        """Return the copy after these statements; None if the server refuses one of them."""
        async with self._copied():
            if await self._tried(target, statements, context) is not None:
                return None
            return await read_table(self._connection, self._copy)

    @asynccontextmanager
    async def _copied(self) -> AsyncIterator[None]:
        async with self._lock:
            if self._may_exist:
                await self._drop()
            self._may_exist = True
            try:
                yield
            except pymysql.err.MySQLError as error:
                if not is_contention(error):
                    raise
                server = str(self._connection.address)
                raise DatabaseUnavailableError(f"{server}: {error}", server=server) from error
            finally:
                await self._drop()

    async def _drop(self) -> None:
        await self._connection.execute(f"DROP TABLE IF EXISTS {self._copy.quoted}")
        self._may_exist = False

    async def keeps_keys(self, target: TableName, statement: ParsedStatement) -> bool:
        """Return whether single changes keep the target's keys over columns that they add again.

        A single statement keeps a key over a column that it drops and adds again. Raises
        DatabaseUnavailableError.
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
    ) -> int | None:
        """Return the code of the error by which a copy refuses these statements.

        Return None if there is none.
        """
        copied = (self._copy.schema, self._copy.table)

        def on_copy(schema: str, table: str) -> tuple[str, str]:
            return copied if TableName(schema, table) == target else (schema, table)

        create = await self._shown(target)
        if create is None:
            return ER.NO_SUCH_TABLE
        await self._create(target, create)
        try:
            with self._sessions.session() as session:
                await set_up_session(session, context, "; ".join(one.sql for one in statements))
                # A foreign key may name its parent without a schema.
                await session.execute(f"USE {quote(target.schema)}")
                for statement in statements:
                    # A table of another attempt may have the name of a foreign key.
                    edits = foreign_key_names(statement)
                    await session.execute(retarget(statement, on_copy, edits))
        except UnknownModeError:
            return ER.WRONG_VALUE_FOR_VAR
        except pymysql.err.MySQLError as error:
            if not is_about_statement(error):
                raise
            return error_code(error)
        return None

    async def _shown(self, target: TableName) -> str | None:
        try:
            shown = await self._connection.fetch(f"SHOW CREATE TABLE {target.quoted}")
        except pymysql.err.MySQLError as error:
            if error_code(error) not in NO_SUCH_TABLE:
                raise
            return None
        return str(shown[0][1])

    async def _create(self, target: TableName, create: str) -> None:
        """Create the copy of a table with this definition. It has no foreign keys."""
        if " CHECK (" in create:
            # TiDB's LIKE also renames the CHECK constraints of the original.
            create = without_foreign_keys(classify(create, default_schema=target.schema))
            await self._connection.execute(renamed(create, self._copy))
        else:
            await self._connection.execute(f"CREATE TABLE {self._copy.quoted} LIKE {target.quoted}")
