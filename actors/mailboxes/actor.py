"""The actor: a mailbox, a loop, and hooks around each message.

An actor is a task that owns some state. Its life is `run`: ``on_start``, then ``on_message`` for
every message, then ``on_stop``, also when it is cancelled. Nothing is caught here: an exception
ends the actor and reaches its parent.

Work arrives as messages: rows, and everything that takes time or whose order matters. All actors
live on one event loop, and between two ``await`` nobody else runs. The rest relies on that: others
look at an actor's state (the status at positions, the locks at the groups) and call methods that do
not wait, such as `BatchedWriter.renew` or `PessimisticGroup.cutover_segment`. They may do so
wherever the actor itself waits, so its state must be whole there. A method that does wait sends a
message, and waits for the answer.
"""

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
    binlog readers. `tell` never waits: an answer or a command must reach a receiver whose row lane
    is full. Nor does `bring`: if many waited for room, each message that leaves would wake all of
    them.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._rows: deque[T] = deque()
        self._control: deque[T] = deque()
        self._awaited: anyio.Event | None = None

    def __len__(self) -> int:
        return len(self._rows) + len(self._control)

    async def put(self, message: T) -> None:
        """Add to the row lane, waiting for room."""
        while len(self._rows) >= self._capacity:
            await self._change()
        self._rows.append(message)
        self._notify()

    def bring(self, message: T) -> None:
        """Add to the row lane without waiting: a part of a message for which the sender has
        waited."""
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
            await self._change()

    def take(self) -> T | None:
        """The next message if there is one, without waiting."""
        if self._control:
            return self._control.popleft()
        if self._rows:
            message = self._rows.popleft()
            self._notify()
            return message
        return None

    async def _change(self) -> None:
        # An event costs more than everything else here, and usually there is no waiter.
        if self._awaited is None:
            self._awaited = anyio.Event()
        await self._awaited.wait()

    def _notify(self) -> None:
        if self._awaited is not None:
            # An anyio event can't be cleared: each change wakes the waiters, and ends it.
            self._awaited.set()
            self._awaited = None


class Actor(Generic[T]):
    """Base of all actors. Subclasses override the hooks; other code uses the mailbox, or reads the
    state."""

    def __init__(self, name: str, *, capacity: int) -> None:
        self.name = name
        self.mailbox: Mailbox[T] = Mailbox(capacity)

    async def run(self) -> None:
        """Live until cancelled, or until a hook raises."""
        try:
            await self.on_start()
            await self.loop()
        finally:
            with anyio.CancelScope(shield=True):
                await self.on_stop()

    async def loop(self) -> None:
        """Handle messages until cancelled. Override for an actor that also waits for something
        else."""
        while True:
            await self.on_message(await self.mailbox.get())

    async def on_start(self) -> None:
        """Before the first message."""

    async def on_message(self, message: T) -> None:
        """One message. Control messages come before rows that wait."""
        raise NotImplementedError

    async def on_stop(self) -> None:
        """At the end, whatever the reason. Cancellation is shielded meanwhile."""
