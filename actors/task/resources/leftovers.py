"""Saved state of an earlier task in the meta tables from which no start may continue.

Such a task would seem to run and to be up to date, but with missing rows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, closing

import structlog
from pymysql.err import MySQLError

from actors.faults import START_OVER, FatalError, Recovery
from actors.refusals import refusal
from actors.task.resources.needed_state import refuse_needed, refuse_repeats
from actors.task_setup import address_of
from config.models import Task
from replicator.downstream.meta.all_tables import (
    Leftovers,
    SavedSources,
    create_tables,
    drop_tables,
    leftovers,
    other_tables,
    saved_sources,
)
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError

_SHOWN = 11
"""The number of names in a message."""

_RESTORE = (
    "to go on where the task was: restore all of its meta tables and all of its targets from one"
    " backup of one moment"
)
_REMEDIES = (f"to start over: {START_OVER}", f"{_RESTORE}, then `replicator resume`")


async def refuse_incomplete(connection: Connection, meta_schema: str, task: str) -> None:
    """Raise FatalError if meta tables are missing while others have rows, or have other columns.

    Call this before missing tables are created.
    """
    others = await other_tables(connection, meta_schema, task)
    if others:
        raise FatalError(
            "task.other-tables",
            f"{_listed(others)} in {meta_schema} has the name of a meta table of task {task}, and"
            " other columns: another program created it (TiDB Data Migration has tables with"
            " these names, too), or another version of this program",
            "if another program created it: give the task another `name:`, or another"
            " `meta-schema:`, in the task file; `replicator stop`, `replicator run`",
            "if another version of replicator made it: go on with that version. Or start over:"
            " `replicator stop`, empty all targets of the task, set `task-mode: all` or `full`"
            " (`incremental` would leave the older rows out), drop the task's meta tables, then"
            " `replicator run TASK.yaml`",
            where=f"the meta-schema {meta_schema} of the target",
        )
    found = await leftovers(connection, meta_schema, task)
    if not found.whole:
        raise _incomplete(meta_schema, task, found)


async def refuse_leftovers(connection: Connection, task: Task) -> None:
    """Raise FatalError if the meta tables are incomplete, or belong to another task.

    Raises DatabaseUnavailableError and the server's error, too.
    """
    await refuse_incomplete(connection, task.meta_schema, task.name)
    saved = await saved_sources(connection, task.meta_schema, task.name)
    sources = [instance.source_id for instance in task.mysql_instances]
    fault = source_leftovers(task.meta_schema, task.name, sources, saved)
    if fault is not None:
        raise fault
    for source in sorted(saved.all - {*sources}):
        structlog.get_logger().warning("task.source-left-out", source=source)


async def forget_saved(task: Task) -> None:
    """Drop the saved state of a task whose lease this process has, and start from nothing.

    Raises DatabaseUnavailableError, and FatalError, also if the state is still needed, or rows
    would be written again.
    """
    async with _target_of(task) as target:
        await refuse_needed(target, task)
        await refuse_repeats(target, task)
        await drop_tables(target, task.meta_schema, task.name)
        await create_tables(target, task.meta_schema, task.name)


async def refuse_removed(task: Task) -> None:
    """Raise FatalError if all meta tables that this process had are gone."""
    async with _target_of(task) as target:
        found = await leftovers(target, task.meta_schema, task.name)
    if not found.gone:
        return
    raise FatalError(
        "task.removed",
        f"the meta tables of task {task.name} were removed while it ran. This process ends, and"
        " does not start over by itself",
        "to start over: empty all targets of the task, then `replicator run` with `task-mode: all`"
        " or `full` (`incremental` would leave the older rows out)",
        f"{_RESTORE}, then `replicator run`",
        where=f"the meta-schema {task.meta_schema} of the target",
        recovery=Recovery.NONE,
    )


async def cause_of(error: FatalError, task: Task) -> FatalError:
    """Return the fault that the meta tables are gone if it is the cause of another one."""
    if error.recovery is not Recovery.BY_OPERATOR:
        return error
    try:
        await refuse_removed(task)
    except FatalError as found:
        return found if found.recovery is Recovery.NONE else error
    except DatabaseUnavailableError:
        return error
    return error


@asynccontextmanager
async def _target_of(task: Task) -> AsyncIterator[Connection]:
    with closing(Connection(address_of(task.target_database))) as connection:
        try:
            yield connection
        except MySQLError as error:
            raise refusal(connection.address, error, source=None) from error


def source_leftovers(
    meta_schema: str, task: str, sources: Collection[str], saved: SavedSources
) -> FatalError | None:
    """Return the fault that forbids starting ``sources`` from the saved state, or None."""
    where = f"the meta-schema {meta_schema} of the target"
    lost = saved.copied - saved.followed
    if lost:
        return FatalError(
            "task.leftovers",
            f"the meta tables of task {task} have no checkpoint of {_listed(lost)}, although its"
            " rows were copied. From any other position rows would be missing",
            *_REMEDIES,
            where=where,
        )
    if saved.all and not saved.all & {*sources}:
        return FatalError(
            "task.other-sources",
            f"the meta tables of task {task} belong to the sources {_listed(saved.all)}, but the"
            f" task file has {_listed(sources)}: another task has the same name, or the sources"
            " were renamed",
            "if it is another task: `replicator stop`, give it another `name:` in the task file,"
            " then `replicator run`",
            "if the sources are the same: `replicator stop`, give them their former source-id"
            " again, then `replicator run`",
            f"to forget the former task: {START_OVER}",
            where=where,
        )
    return None


def _incomplete(meta_schema: str, task: str, found: Leftovers) -> FatalError:
    return FatalError(
        "task.leftovers",
        f"the meta tables of task {task} are incomplete: {_listed(found.missing)} missing, while"
        f" {_listed(found.filled)} have what an earlier run saved. A start from these would lose"
        " or duplicate rows",
        *_REMEDIES,
        where=f"the meta-schema {meta_schema} of the target",
    )


def _listed(names: Collection[str]) -> str:
    shown = ", ".join(sorted(names)[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
