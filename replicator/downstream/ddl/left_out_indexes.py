"""Statements without the indexes that the target's server does not support."""

from __future__ import annotations

import structlog

from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.parser.statement_kinds import classify_in
from replicator.ddl.rewrite.index_changes import (
    added_indexes,
    creates_index,
    only_action,
    without_actions,
)
from replicator.downstream.ddl.rehearsal import Rehearsal
from replicator.mysql.names import TableName
from replicator.mysql.session_context.statement_context import StatementContext

log = structlog.get_logger()


async def without_refused(
    rehearsal: Rehearsal, target: TableName, statement: ParsedStatement, context: StatementContext
) -> str | None:
    """Return a refused statement without the unsupported indexes, if the server accepts this rest.

    The result is empty if nothing else is left; None if the server refuses the rest, too. Raises
    DatabaseUnavailableError.
    """

    async def refused(sql: str) -> bool:
        parsed = classify_in(context, sql, default_schema=target.schema)
        return await rehearsal.refused(target, [parsed], context)

    rest, left_out = "", [statement.sql]
    if not creates_index(statement):
        added = added_indexes(statement)
        unknown = [a for a in added if await refused(only_action(statement, a))]
        rest = without_actions(statement, unknown)
        if not unknown or (rest and await refused(rest)):
            return None
        left_out = [only_action(statement, action) for action in unknown]
    elif not await rehearsal.refused(target, [statement], context):
        return None
    for sql in left_out:
        log.warning("ddl.index-left-out", target=str(target), statement=sql[:2000])
    return rest
