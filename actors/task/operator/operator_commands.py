"""The operator's requests that do not change a task's state: forced locks, overrides."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, closing
from typing import Any

import anyio
import structlog

from actors.control.protocol import Reply
from actors.errors.faults import DdlEvent
from actors.reading.ddl_overrides import DdlOverrides
from actors.setup.task_setup import address_of
from actors.sharding.shard_mode import Coordination
from actors.task.operator.lock_report import choices_of
from config.models import Task
from replicator.binlog.positions.position import BinlogPosition
from replicator.ddl.parser.statement import StatementKind
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.parser.tokens import tokenise
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.ddl_overrides import DdlOverride, DdlOverrideStore
from replicator.downstream.meta.lease import Lease
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.schema.effects.overridden_effects import OverrideAction
from replicator.sharding.open_locks import DisputedError, UnlockError

_DDL = {
    StatementKind.CREATE_TABLE,
    StatementKind.ALTER_TABLE,
    StatementKind.DROP_TABLE,
    StatementKind.RENAME_TABLE,
    StatementKind.CREATE_INDEX,
    StatementKind.DROP_INDEX,
    StatementKind.CREATE_DATABASE,
    StatementKind.ALTER_DATABASE,
}

UNLOCK_SECONDS = 20.0
"""Maximum seconds until the lock is decided."""


async def unlock(
    coordination: Coordination | None,
    arguments: Mapping[str, Any],
    task: str = "TASK",
    renames: Collection[str] = (),
) -> Reply:
    """Force a lock of the running task (None: it does not run).

    The reply comes when the decision is saved, but not yet executed. If the choice of a statement
    is missing, nothing is done, and the body has ``remedies``.

    Args:
        arguments: ``lock`` (its id), ``owner`` (a source, or empty), ``shard`` (one of its shards,
            or empty), ``skip``.
        task: the task's name, for commands to paste.
        renames: the locks of targets that wait for their shards to be renamed.
    """
    lock, owner, skip = (arguments.get(name) for name in ("lock", "owner", "skip"))
    shard = arguments.get("shard", "")
    if not (isinstance(lock, str) and isinstance(owner, str) and isinstance(skip, bool)):
        return Reply(ok=False, error="unlocking takes a lock, an owner and whether to skip")
    if not isinstance(shard, str) or (shard and not owner):
        return Reply(ok=False, error="a shard is named together with its source, the owner")
    if coordination is None:
        return Reply(ok=False, error="the task does not run now: resume it, then unlock")
    if lock in renames:
        error = f"{lock} ends when all shards have been renamed: `show-ddl-locks` names the others"
        return Reply(ok=False, error=error)
    try:
        with anyio.fail_after(UNLOCK_SECONDS):
            await coordination.unlock(lock, owner=owner, skip=skip, shard=shard)
    except DisputedError as error:
        choices = [
            way
            for found in coordination.open_locks()
            if found.id == lock
            for way in choices_of(task, found)
        ]
        return Reply(
            ok=False, error=f"{error}: choose the one to execute", body={"remedies": choices}
        )
    except UnlockError as error:
        return Reply(ok=False, error=str(error))
    except TimeoutError:
        return Reply(
            ok=False, error="no answer in time: `replicator status` shows what the task does"
        )
    return Reply(ok=True)


def remedies_of(task: str, event: DdlEvent) -> tuple[str, ...]:
    """Return the overrides that help against a fault, as commands to type."""
    name = shlex.quote(task)
    meanings = {
        OverrideAction.SKIP: "nothing of it is executed on the target: do there by hand what is"
        " needed, before you resume",
        OverrideAction.REPLACE: "these statements, written like the shard's own, take its place",
        OverrideAction.INJECT: "these statements, written like the shard's own, are executed"
        " before it",
    }
    commands = override_commands(task, event)
    return tuple(
        f"`{commands[action]}`, then `replicator resume {name}`: {meaning}"
        for action, meaning in meanings.items()
        if action in event.actions
    )


def override_commands(task: str, event: DdlEvent) -> dict[str, str]:
    """Return the command for each override that helps against a fault, by its action."""
    place = f"--source {shlex.quote(event.source)} --binlog-pos {event.position}"
    name = shlex.quote(task)
    return {
        action: f"replicator binlog {action} {name}{_STATEMENTS[action]} {place}"
        for action in event.actions
    }


_STATEMENTS = {
    OverrideAction.SKIP: "",
    OverrideAction.REPLACE: " 'STATEMENT' …",
    OverrideAction.INJECT: " 'STATEMENT' …",
}


async def give_override(
    task: Task,
    lease: Lease,
    events: Collection[DdlEvent],
    overrides: Callable[[], DdlOverrides | None],
    arguments: Mapping[str, Any],
) -> Reply:
    """Save an override for a statement; ``overrides`` returns the overrides of the running task.

    ``arguments`` are ``action``, ``statements``, ``source`` and ``position``. Without the last two,
    the override applies to the single one of ``events``, the statements for which the task or its
    parts wait. Without a source, the override applies to the position at every source.
    """
    try:
        made = _overrides(task, events, arguments)
    except ValueError as error:
        return Reply(ok=False, error=str(error))
    async with _override_store(task, lease) as store:
        for override in made:
            await store.put(override)
            # A task that starts meanwhile has loaded the override, or is found here.
            if (running := overrides()) is not None:
                running.add(override)
    for override in made:
        structlog.get_logger().info(
            "ddl.override-given",
            source=override.source,
            position=f"{override.file}:{override.offset}",
            action=override.action.value,
            given=override.statements,
        )
    return Reply(ok=True, body={"overrides": [_as_dict(override) for override in made]})


async def list_overrides(task: Task, lease: Lease) -> Reply:
    """Return all overrides; the next start removes those before the saved positions."""
    async with _override_store(task, lease) as store:
        return Reply(
            ok=True, body={"overrides": [_as_dict(override) for override in await store.load()]}
        )


@asynccontextmanager
async def _override_store(task: Task, lease: Lease) -> AsyncIterator[DdlOverrideStore]:
    with closing(Connection(address_of(task.target_database))) as connection:
        yield DdlOverrideStore(MetaStore(connection, task.meta_schema, task.name, lease))


def _as_dict(override: DdlOverride) -> dict[str, object]:
    return {
        "source": override.source,
        "position": f"{override.file}:{override.offset}",
        "action": override.action.value,
        "statements": list(override.statements),
    }


def _overrides(
    task: Task, events: Collection[DdlEvent], arguments: Mapping[str, Any]
) -> tuple[DdlOverride, ...]:
    """Return the requested overrides. Raises ValueError with the reason for a refusal."""
    action = OverrideAction(str(arguments.get("action")))
    statements = tuple(map(str, arguments.get("statements") or ()))
    source, text = str(arguments.get("source") or ""), str(arguments.get("position") or "")
    known = [instance.source_id for instance in task.mysql_instances]
    if source and source not in known:
        raise ValueError(f"the task has no source {source}; it has: {', '.join(known)}")
    for statement in statements:
        found = classify(statement, default_schema="")
        if any(token.text == "…" for token in tokenise(statement)):
            raise ValueError(f"write what … stands for: {statement}")
        if found.kind is StatementKind.UNKNOWN:
            raise ValueError(f"a statement that is not understood ({found.detail}): {statement}")
        if found.kind not in _DDL or found.as_select:
            raise ValueError(
                f"the task executes only statements that change the structure of tables, not:"
                f" {statement}. If the target needs this one, execute it there by hand, then"
                " `replicator binlog skip` the shard's"
            )
    if text:
        position = _position(text)
        sources = [source] if source else known
    else:
        event = _meant(events, source)
        position, sources = event.position, [event.source]
        if action not in event.actions:
            raise ValueError(f"{action} does not help here: {' or '.join(event.actions)} do")
    return tuple(
        DdlOverride(s, position.file, position.offset, position.key, action, statements)
        for s in sources
    )


def _meant(events: Collection[DdlEvent], source: str) -> DdlEvent:
    """Return the one statement that a source, or any source, waits for. Raises ValueError."""
    found = [event for event in events if source in ("", event.source)]
    if not found:
        raise ValueError(
            f"no statement of {source or 'any source'} holds the task up now: say which one is"
            " meant by --binlog-pos FILE:OFFSET (SHOW BINLOG EVENTS has it as Pos)"
        )
    if len(found) > 1:
        places = "; ".join(f"--source {e.source} --binlog-pos {e.position}" for e in found)
        raise ValueError(f"several statements hold parts of the task up, say which one: {places}")
    return found[0]


def _position(text: str) -> BinlogPosition:
    file, _, offset = text.rpartition(":")
    if not (file.rpartition(".")[2].isdecimal() and offset.isdecimal()):
        raise ValueError(f"{text} is no position: FILE:OFFSET, such as bin.000012:4711")
    return BinlogPosition(file, int(offset))
