"""Emptying the targets that are to be copied anew, at a start, before anything is read."""

from __future__ import annotations

import structlog

from replicator.crashpoints import CrashPoint, reach
from replicator.downstream.chunk_records import CHUNK_TABLE
from replicator.downstream.meta import MEMBER_TABLE, MetaStore
from replicator.mysql.connection import Connection
from replicator.mysql.names import TableName
from replicator.schema.copy_state import CopyState
from replicator.schema.inspection import read_target

EMPTYING_PATIENCE = 3600.0
"""Seconds that a target may take to be emptied: InnoDB drops its file."""

log = structlog.get_logger()


async def empty_targets(meta: MetaStore, target: Connection) -> None:
    """Empty the targets of members in the state RECOPY; nothing of them is read until copied.

    Whatever is interrupted is done again at the next start: no row reaches such a target before.
    Raises DatabaseUnavailableError, the server's error, OutOfStepError.
    """
    member = meta.table(MEMBER_TABLE)
    rows = await meta.connection.fetch(
        f"SELECT DISTINCT target_schema, target_table FROM {member} WHERE copy_state = %s"
        " ORDER BY 1, 2",
        (CopyState.RECOPY.value,),
    )
    for schema, table in rows:
        name = TableName(schema, table)
        if await read_target(target, name) is not None:
            await meta.confirm()
            await target.execute(f"TRUNCATE TABLE {name.quoted}", patience=EMPTYING_PATIENCE)
            log.info("target.emptied", target=str(name))
            reach(CrashPoint.TARGET_EMPTIED)
        async with meta.saving() as transaction:
            await transaction.fetch(
                f"DELETE FROM {meta.table(CHUNK_TABLE)} WHERE (source, schema_name, table_name) IN"
                f" (SELECT source, schema_name, table_name FROM {member}"
                " WHERE target_schema = %s AND target_table = %s)",
                (schema, table),
            )
            await transaction.fetch(
                f"UPDATE {member} SET copy_state = %s WHERE target_schema = %s"
                " AND target_table = %s AND copy_state = %s",
                (CopyState.LEFT_OUT.value, schema, table, CopyState.RECOPY.value),
            )
