"""The operator's answers to what a task has stopped at."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import chain, repeat
from typing import Protocol

import anyio

import config
from actors.control.protocol import Reply
from actors.errors.faults import DdlEvent, FatalError, UnreadRows
from actors.sharding.shard_mode import LockRemedy, OpenLock
from actors.task.operator.recopy_command import RecopyCommand
from actors.task.operator.removal import remove_task
from actors.task.operator.structure_commands import declare_structure
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.ddl_overrides import DdlOverride, DdlOverrideStore
from replicator.downstream.meta.lease import Lease, this_process
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.sandbox.server import DatabaseServer
from replicator.schema.effects.overridden_effects import OverrideAction
from replicator.status import BlockedPart, Fault, TaskStatus, now
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE


class StoppedTask(Protocol):
    """A task that is named like its database."""

    @property
    def target(self) -> DatabaseServer:
        """The server of the target."""

    @property
    def database(self) -> str:
        """The target's database."""


async def override(
    merging: StoppedTask, fault: FatalError, action: OverrideAction, *statements: str
) -> None:
    """What `replicator binlog` does about the statement of a fault, while the task is paused."""
    event = fault.about
    assert isinstance(event, DdlEvent)
    assert action.value in event.actions
    place, name = event.position, merging.database
    connection = _target(merging)
    lease = await _lease(merging, connection)
    answer = DdlOverride(
        event.source, place.file, place.offset, place.key, action, tuple(statements)
    )
    await DdlOverrideStore(MetaStore(connection, f"{name}_meta", name, lease)).put(answer)
    connection.close()


async def until_shard_waits(merging: Merging) -> FatalError:
    """Run until a renamed shard waits and all else is applied; what the operator answers to."""
    async with merging.running() as generation:
        found: list[OpenLock] = []
        with anyio.fail_after(PATIENCE):
            while not found:
                await anyio.sleep(LOOK_SECONDS)
                locks = generation.running.open_locks() if generation.running else []
                found = [lock for lock in locks if any(map(_moves_rows, lock.remedies))]
        await merging.caught_up(generation)
    [lock] = found
    assert lock.view.owner is not None
    about = DdlEvent(
        lock.view.owner, lock.view.item.event.statement.position, (OverrideAction.SKIP,)
    )
    return FatalError("test", "test", where="test", about=about)


def _moves_rows(way: LockRemedy) -> bool:
    return "SET SESSION foreign_key_checks=0" in way.text and "binlog skip" in way.text


async def tell_from_target(merging: Merging, fault: FatalError) -> None:
    """What `replicator schema set --from-target` does about the rows of a fault."""
    connection = _target(merging)
    lease = await _lease(merging, connection)
    connection.close()
    assert isinstance(fault.about, UnreadRows)
    reply = await declare_structure(merging.task, lease, None, fault.about, {"given": "target"})
    assert reply.ok, reply.error


async def tell_from_source(merging: Merging, source: str, table: str) -> Reply:
    """Do what `replicator schema set --from-source` does about a table that was not copied."""
    connection = _target(merging)
    lease = await _lease(merging, connection)
    connection.close()
    name = f"{merging.database}.{table}"
    arguments = {"given": "source", "source": source, "table": name}
    return await declare_structure(merging.task, lease, None, None, arguments)


async def begin_again(
    task: config.Task, stopped: StoppedTask, fault: FatalError, *, meanwhile: Collection[str] = ()
) -> None:
    """What the printed `replicator recopy TASK --source a` does while the source is blocked.

    ``meanwhile``: targets that a fault blocks when the request has been checked.
    """
    [way] = (way for way in fault.remedies if "recopy" in way)
    assert "`replicator recopy TASK --source a`" in way
    connection = _target(stopped)
    lease = await _lease(stopped, connection)
    connection.close()
    told = Fault(fault.event, fault.message, fault.where, fault.remedies, now())
    status = TaskStatus(
        task.name, "paused", now(), 1, blocked=(BlockedPart("source", "a", now(), told),)
    )
    later = replace(
        status,
        blocked=(*status.blocked, *(BlockedPart("target", t, now(), told) for t in meanwhile)),
    )
    looks = chain([status], repeat(later))
    found = await RecopyCommand(task, lease, lambda: next(looks), {"sources": ["a"]}).take()
    assert found.reply.ok, found.reply.error
    assert found.released.sources == {"a"}
    assert {str(target) for target in found.released.targets} == set(meanwhile)


async def copy_all_anew(
    merging: Merging,
    *targets: str,
    columns: Mapping[str, str] | None = None,
    dropped: bool = False,
) -> None:
    """What the remedy `copy_again` says, after the task has ended; then all must be equal.

    ``targets`` are all that the task has, ``columns`` those to compare. ``dropped``: their columns
    are not those of the shards any more, so they are dropped.
    """
    for table in targets:
        emptied = f"{'DROP' if dropped else 'TRUNCATE'} TABLE {table}"
        # Servers refuse to truncate a parent; a DELETE would take its children along.
        merging.on(merging.target, "SET foreign_key_checks=0", emptied)
    merging.changed(mode="all")
    await remove_task(merging.task)
    async with merging.running() as generation:
        await merging.copied(generation)
        await merging.check(generation, columns)


def _target(merging: StoppedTask) -> Connection:
    server = merging.target
    return Connection(DatabaseAddress(server.host, server.port, server.user, server.password))


async def _lease(merging: StoppedTask, connection: Connection) -> Lease:
    lease = Lease(f"{merging.database}_meta", merging.database, this_process())
    await lease.begin(connection)
    return lease
