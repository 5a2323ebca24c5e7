"""Foreign keys whose names other tables of the target have.

Servers other than TiDB have each name once in a database. The target keeps a table that its shards
have dropped, and the tables of a shard that is read later, so a name may be taken there only.
"""

from __future__ import annotations

import pymysql.err
import structlog
from pymysql.constants import ER

from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.rewrite.constraint_names import without_key_names
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import ErrorCode, error_code
from replicator.mysql.names import TableName, folded

_REFUSALS = frozenset(
    {ER.CANT_CREATE_TABLE, ErrorCode.ER_FK_FAIL_ADD_SYSTEM, ErrorCode.ER_FK_DUP_NAME}
)
"""Errors for a name that is taken: two of MariaDB's, which have other reasons too, and MySQL's."""

_OTHERS = """
SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS
WHERE CONSTRAINT_SCHEMA = %s AND TABLE_NAME <> %s AND CONSTRAINT_TYPE = 'FOREIGN KEY'
"""

log = structlog.get_logger()


async def execute_named(
    session: Connection, target: TableName, statement: ParsedStatement, *, patience: float
) -> None:
    """Execute a statement; the server names the foreign keys whose names other tables have.

    Args:
        patience: seconds that the statement may take.

    Raises pymysql.err.MySQLError.
    """
    try:
        await session.execute(statement.sql, patience=patience)
    except pymysql.err.MySQLError as error:
        if error_code(error) not in _REFUSALS:
            raise
        taken = {folded(str(name)) for (name,) in await session.fetch(_OTHERS, tuple(target))}
        unnamed = without_key_names(statement, taken)
        if unnamed == statement.sql:
            raise
        log.info("ddl.key-name-taken", target=str(target), statement=statement.sql[:2000])
        await session.execute(unnamed, patience=patience)
