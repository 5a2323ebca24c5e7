"""Checks of what a full copy needs of a source, besides reading its tables."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import pymysql.err
from pymysql.constants import ER

from replicator.checks.checked_task import SourceToCheck
from replicator.checks.connecting import account_of
from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.routes import listed
from replicator.ddl.rewrite.storage import TRANSACTIONAL
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import error_code
from replicator.mysql.names import TableName
from replicator.mysql.server.identity import folds_names

_ENGINES = """
SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE FROM information_schema.TABLES
WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')
"""


async def check_engines(
    source: SourceToCheck, connection: Connection, names: Sequence[TableName]
) -> list[CheckResult]:
    """Check whether the tables can be read in a consistent snapshot."""
    folds = await folds_names(connection)
    engines = {}
    for schema, table, engine in await connection.fetch(_ENGINES):
        name = TableName(schema, table)
        engines[name.folded if folds else name] = str(engine)
    others = [name for name in names if engines.get(name, "").upper() not in TRANSACTIONAL]
    place = CheckedPart(source.source_id)
    if not others:
        text = f"all {len(names)} replicated tables can be read in a consistent snapshot"
        return [place.passed("storage_engine", text)]
    kinds = ", ".join(sorted({engines.get(name, "unknown") for name in others}))
    finding = f"{listed(others)} have no consistent snapshots (engine {kinds})"
    if not source.reads_binlog:
        return [place.passed("storage_engine", f"{finding}: each row is copied as it is found")]
    return [
        place.warning(
            "storage_engine",
            f"{finding}: a row that changes while it is copied is put right from the binlog only "
            "where the table has a key, and a statement that fails half-way stays half done",
            " ".join(f"ALTER TABLE {name.quoted} ENGINE=InnoDB;" for name in others),
        )
    ]


async def needs_locks(connection: Connection) -> bool:
    """Return whether the server does not report the binlog position of a snapshot.

    The copy then locks each table briefly, to wait for its writers. A server that reports the
    position does not do so while XA transactions are committed; if it has committed none so far, it
    is expected to commit none. Without a binlog there is nothing to follow, and so no position.
    Raises DatabaseUnavailableError or the server's error.
    """
    if not int((await connection.fetch("SELECT @@log_bin"))[0][0]):
        return False
    if not await connection.fetch("SHOW STATUS LIKE 'binlog_snapshot_file'"):
        return True
    ((_, commits),) = await connection.fetch("SHOW GLOBAL STATUS LIKE 'Com_xa_commit'")
    return int(commits) > 0


async def check_locking(source: SourceToCheck, names: Sequence[TableName]) -> list[CheckResult]:
    """Lock a table of each database briefly, as the copy does with all tables.

    Others may have to wait for a second, at most. Raises DatabaseUnavailableError.
    """
    place = CheckedPart(source.source_id)
    refused: dict[str, str] = {}
    address = replace(source.address, session=(("lock_wait_timeout", "1"),))
    with closing(Connection(address)) as connection:
        account = await account_of(connection)
        for name in {name.schema: name for name in names}.values():
            try:
                await connection.execute(f"LOCK TABLES {name.quoted} READ")
                await connection.execute("UNLOCK TABLES")
            except pymysql.err.MySQLError as error:
                # A lock of others shows that ours would have been allowed.
                if error_code(error) != ER.LOCK_WAIT_TIMEOUT:
                    refused[name.schema] = str(error.args[-1])
    if not refused:
        text = f"{listed(names)} can be locked for a moment, as each is before it is copied"
        return [place.passed("dump_privilege", text)]
    return [
        place.failed(
            "dump_privilege",
            f"the account can't lock tables of {', '.join(refused)} for a moment before the copy: "
            f"{next(iter(refused.values()))}",
            " ".join(account.grant("SELECT, LOCK TABLES", schema) for schema in refused),
        )
    ]
