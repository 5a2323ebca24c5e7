"""A mailbox with two lanes: rows, bounded, first in first out; control, never behind rows."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")

CONTROL_LIMIT = 10_000
"""Control messages that may wait. More means that the reader of the mailbox is stuck."""


class MailboxFullError(Exception):
    """The control lane reached its limit."""


class Mailbox(Generic[T]):
    """Messages of one receiver, sent from tasks of the same event loop.

    `put` waits while the row lane is full: that is the back-pressure from the writer up to the
    binlog readers. `tell` never waits: an answer or a command must get through to a receiver
    whose row lane is full.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._rows: deque[T] = deque()
        self._control: deque[T] = deque()
        self._changed = anyio.Event()

    def __len__(self) -> int:
        return len(self._rows) + len(self._control)

    async def put(self, message: T) -> None:
        """Add to the row lane, waiting for room."""
        while len(self._rows) >= self._capacity:
            await self._changed.wait()
        self._rows.append(message)
        self._notify()

    def tell(self, message: T) -> None:
        """Add to the control lane. Raises MailboxFullError at `CONTROL_LIMIT` messages."""
        if len(self._control) >= CONTROL_LIMIT:
            raise MailboxFullError(f"{CONTROL_LIMIT} control messages wait: {message!r}")
        self._control.append(message)
        self._notify()

    async def get(self, *, rows: bool = True) -> T:
        """The next message, control first; with ``rows=False`` from the control lane only."""
        while True:
            if self._control:
                return self._control.popleft()
            if rows and self._rows:
                message = self._rows.popleft()
                self._notify()
                return message
            await self._changed.wait()

    def take(self, *, rows: bool = True) -> T | None:
        """The next message if there is one, without waiting."""
        if self._control:
            return self._control.popleft()
        if rows and self._rows:
            message = self._rows.popleft()
            self._notify()
            return message
        return None

    def _notify(self) -> None:
        # An anyio event cannot be cleared: each change wakes the waiters and starts a new one.
        self._changed.set()
        self._changed = anyio.Event()
