"""The requests of the command line to a running task."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import anyio

from actors.control.client import DEFAULT_TIMEOUT, ask, ask_all, end
from actors.control.protocol import STOP, CommandRefusedError, ControlError, Reply, Request
from actors.control.task_records import TaskRecord, records, was_killed
from replicator.status import BlockedPart, ShardStatus, StatusFormatError, TaskState, TaskStatus
from replicator.status_json import ShapeError, shaped

PAUSE_LOOK_SECONDS = 0.2
"""Seconds between two checks whether a task has paused."""

STARTED_SECONDS = 60.0
"""Maximum wait for a task to use a file that it has accepted."""


async def command(
    name: str,
    command: str,
    arguments: Mapping[str, Any] | None = None,
    patience: float = DEFAULT_TIMEOUT,
) -> Reply:
    """Send a command to a task. Raises ControlError if the task refuses it, NotRunningError.

    ``patience``: maximum seconds to wait for the reply.
    """
    request = Request(command, arguments or {})
    return _accepted(name, command, await ask(name, request, timeout=patience))


def _accepted(name: str, command: str, reply: Reply) -> Reply:
    if not reply.ok:
        remedies = tuple(map(str, reply.body.get("remedies", ())))
        raise CommandRefusedError(f"task {name} refused {command!r}: {reply.error}", remedies)
    return reply


async def status_of(name: str) -> TaskStatus:
    """Return the status of a task. Raises the same errors as `command`, and StatusFormatError."""
    return TaskStatus.from_dict(dict((await command(name, "status")).body))


async def statuses() -> tuple[list[TaskStatus], dict[str, str]]:
    """Return the status of each task that runs, or has run, as this user on this host.

    The second result has, by name, why other tasks do not answer. Raises ControlError if the folder
    of the sockets can't be used.
    """
    found: list[TaskStatus] = []
    silent: dict[str, str] = {}
    replies = await ask_all(Request("status"))
    for name, reply in replies.items():
        if isinstance(reply, ControlError):
            silent[name] = str(reply)
        elif not reply.ok:
            silent[name] = f"task {name!r}: {reply.error}"
        else:
            try:
                found.append(TaskStatus.from_dict(dict(reply.body)))
            except StatusFormatError as error:
                silent[name] = f"task {name!r}: {error}"
    found += (ended for record in records() if (ended := _ended(record, replies)) is not None)
    return sorted(found, key=lambda status: status.task), silent


def _ended(record: TaskRecord, replies: Collection[str]) -> TaskStatus | None:
    """Return the status of a task that does not run any more."""
    if record.task in replies:
        return None
    if was_killed(record):
        return TaskStatus(record.task, "killed", record.since, 0)
    return TaskStatus(record.task, "stopped" if record.ended else "starting", record.since, 0)


async def shards_of(name: str) -> tuple[ShardStatus, ...]:
    """Return the shards that a task follows.

    Raises the same errors as `command`, and StatusFormatError.
    """
    body = (await command(name, "shards")).body
    try:
        return tuple(shaped(ShardStatus, values) for values in body["shards"])
    except ShapeError as error:
        raise StatusFormatError(f"the shards of the task are not understood: {error}") from error


async def pause_task(name: str) -> TaskStatus:
    """Pause a task, wait until it has paused or ended, and return its status then."""
    await command(name, "pause")
    return await _until_not(name, "starting", "running", "pausing")


async def pause_parts(name: str, targets: Collection[str], sources: Collection[str]) -> TaskStatus:
    """Pause parts of a task, wait until they have paused, and return the task's status then."""
    await command(name, "pause", {"targets": list(targets), "sources": list(sources)})
    return await _until_not(name, "starting", "pausing")


async def _until_not(name: str, *states: TaskState) -> TaskStatus:
    while True:
        found = await status_of(name)
        if found.state not in states:
            return found
        await anyio.sleep(PAUSE_LOOK_SECONDS)


async def reload_task(
    name: str, arguments: Mapping[str, Any], patience: float
) -> list[BlockedPart]:
    """Let a task read its changed file, and wait until it uses the file.

    Return the parts that a fault blocks.
    """
    await command(name, "reload", arguments, patience)
    with anyio.move_on_after(STARTED_SECONDS):
        found = await _until_not(name, "starting")
        return [part for part in found.blocked if part.error]
    return []


async def stop_task(name: str) -> None:
    """End a task, and wait until its process has ended."""
    _accepted(name, STOP, await end(name))
