"""The actor: a mailbox, a loop, and hooks around each message.

An actor is a task that owns some state. `run` calls ``on_start``, then ``on_message`` for every
message, then ``on_stop``, also when the actor is cancelled. No exception is caught here: it ends
the actor and reaches its parent.

Rows, and everything that takes time or whose order matters, arrive as messages. All actors run on
one event loop, so no other code runs between two ``await`` of an actor. Other code relies on that:
it reads an actor's state (the status reads positions, the locks read the groups) and calls methods
that do not wait, such as `BatchedWriter.renew` or `PessimisticGroup.cutover_segment`. It may do so
wherever the actor itself waits, so the actor's state must be consistent there. A method that waits
must send a message, and wait for the answer.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")


CONTROL_LIMIT = 10_000
"""Maximum number of waiting control messages. More mean that the mailbox's reader is stuck."""


class MailboxFullError(Exception):
    """The control lane has reached its limit."""


class Mailbox(Generic[T]):
    """Messages of one receiver, sent from tasks of the same event loop.

    `put` waits while the row lane is full, which slows down everything from the writer back to the
    binlog readers. `tell` never waits, because an answer or a command must reach a receiver whose
    row lane is full. `bring` never waits either: if many messages waited for room, each message
    that leaves would wake all of them.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._rows: deque[T] = deque()
        self._control: deque[T] = deque()
        self._awaited: anyio.Event | None = None

    def __len__(self) -> int:
        return len(self._rows) + len(self._control)

    async def put(self, message: T) -> None:
        """Add a message to the row lane, after waiting for room."""
        while len(self._rows) >= self._capacity:
            await self._change()
        self._rows.append(message)
        self._notify()

    def bring(self, message: T) -> None:
        """Add a message to the row lane without waiting.

        For the parts of a message for which the sender has already waited.
        """
        self._rows.append(message)
        self._notify()

    def tell(self, message: T) -> None:
        """Add a message to the control lane.

        Raises MailboxFullError at `CONTROL_LIMIT` messages.
        """
        if len(self._control) >= CONTROL_LIMIT:
            raise MailboxFullError(f"{CONTROL_LIMIT} control messages wait: {message!r}")
        self._control.append(message)
        self._notify()

    async def get(self, *, rows: bool = True) -> T:
        """Return the next message, control messages first; with ``rows=False`` only those."""
        while True:
            if self._control:
                return self._control.popleft()
            if rows and self._rows:
                message = self._rows.popleft()
                self._notify()
                return message
            await self._change()

    def take(self) -> T | None:
        """Return the next message if there is one, without waiting."""
        if self._control:
            return self._control.popleft()
        if self._rows:
            message = self._rows.popleft()
            self._notify()
            return message
        return None

    async def _change(self) -> None:
        # An event costs more than everything else here, and usually nothing waits for one.
        if self._awaited is None:
            self._awaited = anyio.Event()
        await self._awaited.wait()

    def _notify(self) -> None:
        if self._awaited is not None:
            # An anyio event can't be cleared: each change sets it, and the next waiter makes a new
            # one.
            self._awaited.set()
            self._awaited = None


class Actor(Generic[T]):
    """Base class of all actors. Subclasses override the hooks.

    Other code uses the mailbox, or reads the state.
    """

    def __init__(self, name: str, *, capacity: int) -> None:
        self.name = name
        self.mailbox: Mailbox[T] = Mailbox(capacity)

    async def run(self) -> None:
        """Run until cancelled, or until a hook raises an exception."""
        try:
            await self.on_start()
            await self.loop()
        finally:
            with anyio.CancelScope(shield=True):
                await self.on_stop()

    async def loop(self) -> None:
        """Handle messages until cancelled.

        An actor that also waits for something else overrides this method.
        """
        while True:
            await self.on_message(await self.mailbox.get())

    async def on_start(self) -> None:
        """Called before the first message."""

    async def on_message(self, message: T) -> None:
        """Called for each message; control messages come before waiting rows."""
        raise NotImplementedError

    async def on_stop(self) -> None:
        """Called at the end, whatever the reason, shielded from cancellation."""
