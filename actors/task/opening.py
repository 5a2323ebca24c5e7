"""Something slow that is opened in a thread, and that nobody has to wait for in the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

import anyio

from actors.task.giving_up import done_unless

T = TypeVar("T")


class Opening(Generic[T]):
    """Calls ``work`` in a thread of its own; a process that ends does not wait for it.

    To be made in the event loop.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._made: list[T] = []
        self._error: BaseException | None = None
        self._done = anyio.Event()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, daemon=True).start()

    async def done_unless(self, wished: anyio.Event) -> bool:
        """Wait until it is done, or ``wished`` is set; whether it is done."""
        return await done_unless(wished, self._done.wait) or self._done.is_set()

    def result(self) -> T:
        """What was opened, once it is done. Raises what ``work`` has raised."""
        if self._error is not None:
            raise self._error
        return self._made[0]

    def _run(self) -> None:
        try:
            self._made.append(self._work())
        except BaseException as error:  # noqa: BLE001  (raised again by `result`)
            self._error = error
        # The event loop may have ended meanwhile.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._done.set)
