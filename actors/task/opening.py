"""Something slow that is opened in a thread, and that nobody has to wait for in the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Generic, TypeVar

import anyio

from actors.task.giving_up import done_unless

T = TypeVar("T")


class Opening(Generic[T]):
    """Calls ``work`` in a thread of its own; a process that ends does not wait for it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._future: Future[T] = Future()
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def done(self) -> bool:
        """Whether it is opened, or has failed."""
        return self._future.done()

    async def done_unless(self, wished: anyio.Event) -> bool:
        """Wait until it is done, or ``wished`` is set; whether it is done."""
        return await done_unless(wished, self._wait) or self.done

    def result(self) -> T:
        """What was opened; blocks until it is done. Raises what ``work`` has raised."""
        return self._future.result()

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        done = anyio.Event()

        def tell(_: Future[T]) -> None:
            # The event loop may have ended meanwhile.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(done.set)

        self._future.add_done_callback(tell)
        await done.wait()

    def _run(self) -> None:
        try:
            self._future.set_result(self._work())
        except BaseException as error:  # noqa: BLE001  (raised again by `result`)
            self._future.set_exception(error)
