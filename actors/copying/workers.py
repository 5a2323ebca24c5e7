"""Workers that copy a source's chunks at a limited rate while the next chunks are planned."""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import dataclass

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from actors.copying.jobs import CopyJobs
from actors.copying.planner import ChunkGroup, CopyPlanner


@dataclass(frozen=True, slots=True)
class ChunkWorkers:
    """Copies the planned chunks until all are copied or ``stop`` is set.

    ``slots`` limits the jobs that run at once, for all sources together.
    """

    jobs: CopyJobs
    slots: anyio.Semaphore
    limit: RateLimit
    stop: anyio.Event

    async def copy(self, planner: CopyPlanner, threads: int) -> None:
        """Copy all chunks of a source, with ``threads`` jobs at once.

        Raises the errors of the planner and of the jobs.
        """
        send, receive = anyio.create_memory_object_stream[ChunkGroup](0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._plan, planner, send)
            for _ in range(threads):
                tasks.start_soon(self._work, receive.clone(), planner)
            receive.close()

    async def _plan(self, planner: CopyPlanner, send: MemoryObjectSendStream[ChunkGroup]) -> None:
        async with send, anyio.create_task_group() as tasks:
            # Planning may wait for other sessions of the source, for an unlimited time.
            tasks.start_soon(self._cancel, tasks.cancel_scope)
            async with aclosing(planner.groups()) as groups:
                async for group in groups:
                    try:
                        await send.send(group)
                    except anyio.BrokenResourceError:
                        # No worker receives any more: the last one has failed and raises its error.
                        break
            tasks.cancel_scope.cancel()

    async def _cancel(self, scope: anyio.CancelScope) -> None:
        await self.stop.wait()
        scope.cancel()

    async def _work(
        self, receive: MemoryObjectReceiveStream[ChunkGroup], planner: CopyPlanner
    ) -> None:
        async with receive:
            async for group in receive:
                if not self.stop.is_set():
                    await self.limit.admit(group.rows, self.stop)
                    async with self.slots:
                        await self.jobs.run(group.chunks, planner.replanned, self.stop)


class RateLimit:
    """Limits the average number of rows per second whose copy begins; 0 is no limit."""

    def __init__(self, rows_per_second: int) -> None:
        self._rate = rows_per_second
        self._free_at = time.monotonic()

    async def admit(self, rows: int, stop: anyio.Event) -> None:
        """Wait until these rows may be copied, or until ``stop`` is set."""
        if not self._rate:
            return
        now = time.monotonic()
        begin = max(now, self._free_at)
        self._free_at = begin + rows / self._rate
        with anyio.move_on_after(begin - now):
            await stop.wait()
