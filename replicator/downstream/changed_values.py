"""Warnings of a DDL which say that the target has changed values of rows.

Strict mode makes errors of most. What is left are notes, such as the time that a DATETIME loses
when it becomes a DATE: the statement has then been executed, and is not undone.
"""

from __future__ import annotations

import structlog

from replicator.mysql.connection import Connection
from replicator.mysql.errors import ErrorCode
from replicator.mysql.names import TableName
from replicator.mysql.row_values import without_values

_CHANGED = frozenset(
    {
        ErrorCode.ER_DUP_ENTRY,
        ErrorCode.ER_WARN_NULL_TO_NOTNULL,
        ErrorCode.ER_WARN_DATA_OUT_OF_RANGE,
        ErrorCode.WARN_DATA_TRUNCATED,
        ErrorCode.ER_TRUNCATED_WRONG_VALUE,
        ErrorCode.ER_TRUNCATED_WRONG_VALUE_FOR_FIELD,
    }
)

log = structlog.get_logger()


async def report_changed_values(connection: Connection, target: TableName, sql: str) -> None:
    """Log those of the statement that has just run on this connection.

    Raises DatabaseUnavailableError or the server's own error.
    """
    found = [
        f"{without_values(text)} ({code})"
        for _, code, text in await connection.fetch("SHOW WARNINGS")
        if int(code) in _CHANGED
    ]
    if found:
        log.warning(
            "ddl.values-changed",
            target=str(target),
            statement=sql[:2000],
            count=len(found),
            warnings=found[:5],
        )
