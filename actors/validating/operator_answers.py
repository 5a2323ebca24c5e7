"""The operator's requests to a task's validation, and the marks of the errors that it has found."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pymysql.err import MySQLError

from actors.control.protocol import Reply
from actors.counting.validation_backlog import ValidationBacklog
from actors.setup.task_setup import address_of
from config.models import Task
from replicator.downstream.fence import FencedError
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.lease import Lease, LeaseLostError
from replicator.downstream.meta.validation.validation_errors import (
    DifferingRow,
    ErrorState,
    ValidationErrorStore,
)
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.names import TableName
from replicator.status import ValidationStatus
from replicator.status_json import plain

_MARKS = {"ignore-error": ErrorState.IGNORED, "resolve-error": ErrorState.RESOLVED}

ACTIONS = ("show-error", *_MARKS, "clear-error")
"""The actions besides showing the counts."""


def validation_status(backlog: ValidationBacklog) -> ValidationStatus | None:
    """Return the counts of a validation; None if nothing is validated."""
    if not backlog.most:
        return None
    return ValidationStatus(
        checked=backlog.checked,
        waiting=backlog.waiting_count + sum(keys.count for keys in backlog.looking),
        seconds_behind=round(backlog.seconds, 1),
        suspects=len(backlog.suspects),
        skipped=backlog.skipped,
        errors=backlog.errors.get(ErrorState.NEW, 0),
        ignored=backlog.errors.get(ErrorState.IGNORED, 0),
        resolved=backlog.errors.get(ErrorState.RESOLVED, 0),
        corrected=backlog.errors.get(ErrorState.CORRECTED, 0),
        left_out=tuple(
            f"{target}: {why}{_parked(backlog, target)}"
            for target, why in sorted(backlog.left_out.items())
        ),
    )


def _parked(backlog: ValidationBacklog, target: TableName) -> str:
    count = sum(keys.count for keys in backlog.parked if keys.target == target)
    return f"; {count:,} keys wait until then" if count else ""


async def answer_validation(
    task: Task, lease: Lease, backlog: ValidationBacklog, arguments: Mapping[str, Any]
) -> Reply:
    """Answer `replicator validation`.

    ``arguments`` are ``action``, which is one of `ACTIONS` or empty, and ``ids`` of errors, which
    is empty for all errors.
    """
    action, ids = str(arguments.get("action") or ""), arguments.get("ids") or []
    if not isinstance(ids, list) or not all(isinstance(number, int) for number in ids):
        return Reply(ok=False, error="errors are named by their numbers")
    if action not in ("", *ACTIONS):
        return Reply(ok=False, error=f"no such action: {action}")
    connection = Connection(address_of(task.target_database))
    store = ValidationErrorStore(MetaStore(connection, task.meta_schema, task.name, lease))
    try:
        if action in _MARKS:
            await store.mark(ids, _MARKS[action])
        elif action == "clear-error":
            await store.clear(ids)
        errors = await store.load() if action == "show-error" else []
        backlog.errors = {state.value: count for state, count in (await store.counts()).items()}
    except (FencedError, LeaseLostError) as error:
        return Reply(ok=False, error=f"nothing was saved: {error}")
    except (DatabaseUnavailableError, MySQLError) as error:
        return Reply(ok=False, error=f"the target can't be read or written to: {error}")
    finally:
        connection.close()
    status = validation_status(backlog)
    body: dict[str, Any] = {"task": task.name, "validation": plain(status) if status else None}
    if action == "show-error":
        body["errors"] = [_as_dict(error) for error in errors]
    return Reply(ok=True, body=body)


def _as_dict(error: DifferingRow) -> dict[str, object]:
    return {
        "id": error.id,
        "target": str(error.target),
        "key": error.key.decode("utf-8", "backslashreplace").split("\t"),
        "kind": error.kind,
        "shard": error.shard,
        "columns": error.detail,
        "state": error.state.value,
        "found": datetime.fromtimestamp(error.found_at, UTC).isoformat(),
    }
