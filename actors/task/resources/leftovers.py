"""Saved state of an earlier task in the meta tables from which no start may continue.

A task that continued from it would seem to be up to date, but would lack rows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, closing

import structlog
from pymysql.err import MySQLError

from actors.errors.faults import FatalError, Recovery, fault
from actors.errors.refusals import refusal
from actors.setup.task_setup import address_of
from actors.task.resources.needed_state import refuse_needed, refuse_repeats
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
"""Maximum number of names in a message."""


async def refuse_incomplete(connection: Connection, meta_schema: str, task: str) -> None:
    """Raise FatalError if the meta tables are incomplete or have other columns.

    They are incomplete if some are missing while others have rows. Call this before missing tables
    are created.
    """
    others = await other_tables(connection, meta_schema, task)
    if others:
        raise fault("task.other-tables", tables=_listed(others), meta_schema=meta_schema, task=task)
    found = await leftovers(connection, meta_schema, task)
    if not found.whole:
        raise _incomplete(meta_schema, task, found)


async def refuse_leftovers(connection: Connection, task: Task) -> None:
    """Raise FatalError if the meta tables are incomplete, or belong to another task.

    Also raises DatabaseUnavailableError and the server's error.
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
    """Drop the saved state of a task whose lease this process has, so that it starts anew.

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
    raise fault(
        "task.removed", recovery=Recovery.NONE, task=task.name, meta_schema=task.meta_schema
    )


async def cause_of(error: FatalError, task: Task) -> FatalError:
    """Return the fault that the meta tables are gone if this has caused another fault."""
    if error.recovery not in (Recovery.BY_OPERATOR, Recovery.OPERATOR_OR_RETRY):
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
    lost = saved.copied - saved.followed
    if lost:
        return fault(
            "task.leftovers",
            "checkpoint",
            task=task,
            missing=_listed(lost),
            meta_schema=meta_schema,
        )
    if saved.all and not saved.all & {*sources}:
        return fault(
            "task.other-sources",
            task=task,
            saved=_listed(saved.all),
            present=_listed(sources),
            meta_schema=meta_schema,
        )
    return None


def _incomplete(meta_schema: str, task: str, found: Leftovers) -> FatalError:
    return fault(
        "task.leftovers",
        "tables",
        task=task,
        missing=_listed(found.missing),
        filled=_listed(found.filled),
        meta_schema=meta_schema,
    )


def _listed(names: Collection[str]) -> str:
    shown = ", ".join(sorted(names)[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
