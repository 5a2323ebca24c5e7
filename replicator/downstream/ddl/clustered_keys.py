"""Targets on TiDB whose clustered primary key is to be dropped or changed, which TiDB refuses.

A clustered key is where the rows of a table are (TiDB's page "Clustered Indexes"), so the table is
made anew with an ordinary key, its rows are copied into that, and both exchange their names. MySQL
and MariaDB make a table anew for the same statement. Nothing else is written to the target
meanwhile, and whatever is interrupted begins anew: the exchange is one statement, and behind it the
target takes the statement that it has refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pymysql.err
import structlog

from replicator.ddl.parser.statement import ParsedStatement
from replicator.downstream.ddl.rehearsal import Rehearsal
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.scratch_names import scratch_table
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.context.statement_context import StatementContext
from replicator.mysql.names import TableName, quote
from replicator.schema.scratch.scratch_statements import renamed
from replicator.schema.structure.inspection import read_table

COPY_PATIENCE = 7 * 24 * 3600.0
"""Seconds that copying the rows of a large table may take before the connection is given up."""

ROWS_AT_ONCE = 10_000
"""How many rows one transaction copies (TiDB's page "Non-Transactional DML Statements")."""

_CLUSTERED = re.compile(
    r"^(\s*PRIMARY KEY .*/\*T!\[clustered_index\]) CLUSTERED( \*/)", re.MULTILINE
)
_TIES = """
SELECT 1 FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_NAME IS NOT NULL
AND ((TABLE_SCHEMA = %s AND TABLE_NAME = %s)
    OR (REFERENCED_TABLE_SCHEMA = %s AND REFERENCED_TABLE_NAME = %s))
UNION ALL SELECT 1 FROM information_schema.TIFLASH_REPLICA
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s LIMIT 1
"""

log = structlog.get_logger()


def unclustered(create_sql: str) -> str | None:
    """What SHOW CREATE TABLE of TiDB says, with an ordinary primary key in place of a clustered
    one; None where there is none."""
    found, number = _CLUSTERED.subn(r"\1 NONCLUSTERED\2", create_sql, count=1)
    return found if number else None


async def free_key(
    connection: Connection,
    meta: MetaStore,
    rehearsal: Rehearsal,
    target: TableName,
    attempts: Sequence[Sequence[ParsedStatement]],
    context: StatementContext,
) -> bool:
    """Give a target an ordinary key in place of a clustered one; whether that was done.

    Only where the server then takes one of the ``attempts``, each some statements in their order,
    and the target has no foreign keys and no replica in TiFlash, which would be lost. Nothing must
    be written to it meanwhile. Raises DatabaseUnavailableError, LeaseLostError, FencedError.
    """
    table = await read_table(connection, target)
    create = unclustered(table.create_sql) if table else None
    if table is None or create is None:
        return False
    for statements in attempts:
        if not await rehearsal.refused(target, statements, context, create):
            break
    else:
        return False
    # Last: a TiDB that can't reach its placement driver takes long to answer.
    if await connection.fetch(_TIES, (target.schema, target.table) * 3):
        return False
    columns = ", ".join(quote(c.name) for c in table.columns if not c.generated)
    first = quote(table.keys[0].columns[0])
    made, former = (scratch_table(meta.schema, meta.task) for _ in range(2))
    session = Connection(connection.address)
    try:
        await session.execute("SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
        await session.execute(renamed(create, made))
        if await session.fetch(f"SELECT 1 FROM {target.quoted} LIMIT 1"):
            await session.execute(
                f"BATCH ON {target.quoted}.{first} LIMIT {ROWS_AT_ONCE}"
                f" INSERT INTO {made.quoted} ({columns}) SELECT {columns} FROM {target.quoted}",
                patience=COPY_PATIENCE,
            )
            alike = await session.execute(
                f"SELECT 1 FROM DUAL WHERE (SELECT COUNT(*) FROM {target.quoted}) ="
                f" (SELECT COUNT(*) FROM {made.quoted})",
                patience=COPY_PATIENCE,
            )
            assert alike == 1, f"not all rows of {target} were copied"
        await meta.confirm()
        await session.execute(
            f"RENAME TABLE {target.quoted} TO {former.quoted}, {made.quoted} TO {target.quoted}"
        )
    except pymysql.err.MySQLError as error:
        log.info("ddl.key-not-freed", target=str(target), reason=str(error))
        return False
    finally:
        session.close()
        for name in (made, former):
            await connection.execute(f"DROP TABLE IF EXISTS {name.quoted}")
    log.info("ddl.key-freed", target=str(target))
    return True
