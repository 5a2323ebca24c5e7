"""The actor: a mailbox, a loop, and hooks around each message.

An actor is a task that owns some state. Its life is `run`: ``on_start``, then ``on_message`` for
every message, then ``on_stop``, also when it is cancelled. Nothing is caught here: an exception
ends the actor and reaches whoever started it.

Work comes by messages: rows, and whatever takes time or has its place in the order of other work.
All actors live on one event loop, and between two ``await`` nobody else runs. The rest relies on
that: others look at an actor's state (the status at positions, the locks at the groups) and call
methods that do not wait, such as `BatchedWriter.renew` or `PessimisticGroup.cutover_segment`. They
may do so wherever the actor itself waits, so its state must be whole there. A method that does
wait sends a message, and waits for the answer.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import anyio

from actors.mailbox import Mailbox

T = TypeVar("T")


class Actor(Generic[T]):
    """Base of all actors. Subclasses override the hooks; others use the mailbox, or look."""

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
        """Answer messages for ever. Override for an actor that also waits for something else."""
        while True:
            await self.on_message(await self.mailbox.get())

    async def on_start(self) -> None:
        """Before the first message."""

    async def on_message(self, message: T) -> None:
        """One message. Control messages come before rows that wait."""
        raise NotImplementedError

    async def on_stop(self) -> None:
        """At the end of life, whatever ended it. Cancellation is held off meanwhile."""
