"""The operator's request to reconcile targets, or to cancel a reconciliation."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from pymysql.err import MySQLError

from actors.control.protocol import Reply
from actors.counting.task_counts import ReconciliationCounts
from actors.setup.task_setup import address_of
from actors.task.operator.blocked_parts import named_parts, shown
from actors.task.wiring.wiring import RunningTask
from config.models import Task
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.lease import Lease
from replicator.downstream.meta.reconciliations import ReconciliationStore
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import error_text
from replicator.mysql.names import TableName
from replicator.schema.registry.registry import SchemaRegistry

_NOT_CANCELLED = (
    "{}: the task has left out events of its shards, so its rows must be compared. To copy it"
    " instead: `replicator recopy --truncate`"
)


async def reconcile(
    task: Task,
    lease: Lease,
    running: RunningTask | None,
    counts: ReconciliationCounts,
    arguments: Mapping[str, Any],
) -> Reply:
    """Add targets to the queue, or remove them; the reply names them.

    ``arguments``: ``targets`` and ``sources``, empty for all; ``where``: the condition for the
    rows; ``cancel``. Raises FencedError, LeaseLostError, DatabaseUnavailableError or the target's
    error.
    """
    if running is None:
        return Reply(ok=False, error="the task does not follow its sources now")
    try:
        targets = _wanted(running.registry, arguments)
    except ValueError as error:
        return Reply(ok=False, error=str(error))
    where = str(arguments.get("where") or "")
    with closing(Connection(address_of(task.target_database))) as connection:
        if where and (why := await _refused(connection, targets, where)):
            return Reply(ok=False, error=why)
        store = ReconciliationStore(MetaStore(connection, task.meta_schema, task.name, lease))
        if arguments.get("cancel"):
            kept = {entry.target for entry in await store.load() if entry.safe_sources}
            if named := ", ".join(shown(target) for target in targets if target in kept):
                return Reply(ok=False, error=_NOT_CANCELLED.format(named))
            await store.cancel(targets)
        else:
            await store.queue(targets, where)
    counts.changed()
    return Reply(ok=True, body={"targets": [shown(target) for target in targets]})


def _wanted(registry: SchemaRegistry, arguments: Mapping[str, Any]) -> list[TableName]:
    """Return the named targets, and targets with shards of a named source. Raises ValueError."""
    known = {
        target: {registry.member(member).source for member in registry.members_of(number)}
        for number, target in registry.targets()
        if target.table
    }
    named = named_parts(arguments, known, {s for sources in known.values() for s in sources})
    if not (named.targets or named.sources):
        return sorted(known)
    return sorted(
        target
        for target, sources in known.items()
        if target in named.targets or named.sources & sources
    )


async def _refused(connection: Connection, targets: list[TableName], where: str) -> str:
    """Return why a condition does not fit the targets; empty if it does."""
    for target in targets:
        try:
            await connection.fetch(f"SELECT 1 FROM {target.quoted} WHERE ({where}) LIMIT 0")
        except MySQLError as error:
            return f"the condition does not fit {shown(target)}: {error_text(error)}"
    return ""
