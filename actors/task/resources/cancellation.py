"""Cancels work of a start as soon as the operator requests something else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVarTuple

import anyio

T = TypeVarTuple("T")


async def done_unless(
    wished: anyio.Event, work: Callable[[*T], Awaitable[object]], *arguments: *T
) -> bool:
    """Do the work, but cancel it if ``wished`` is set before its end; return whether it is done.

    Use it only for work that a killed process may also leave unfinished. Raises the work's errors.
    """
    done = False
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_cancel_at, wished, tasks.cancel_scope)
        try:
            await work(*arguments)
            done = True
        except Exception as error:  # noqa: BLE001  (raised below, not as a group)
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return done


async def _cancel_at(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
