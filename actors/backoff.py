"""Growing waits between attempts, for where stamina does not do.

Attempts that end in success or in one kind of exception are stamina's. Here are the others: an
attempt that fails by what it returns, a wait that the operator or a stop cuts short, and waits that
begin small again when something has worked in between. stamina sleeps each wait to its end and
knows no such beginning.
"""

from __future__ import annotations

import anyio


class Backoff:
    """Waits that double, from the first to the longest of ``waits``, in seconds."""

    def __init__(self, waits: tuple[float, float]) -> None:
        self._first, self._longest = waits
        self.next = self._first

    def reset(self) -> None:
        """Something has worked: the next wait is the first one again."""
        self.next = self._first

    async def wait(self, until: anyio.Event | None = None) -> None:
        """Wait for `next` seconds, or until an event; the wait after that is twice as long."""
        seconds = self.next
        self.next = min(2 * seconds, self._longest)
        with anyio.move_on_after(seconds):
            await (until.wait() if until is not None else anyio.sleep_forever())
