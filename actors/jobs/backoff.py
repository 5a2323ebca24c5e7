"""Exponential back-off for the cases that stamina does not cover.

stamina repeats attempts that end in success or in one kind of exception. This module has the other
cases: an attempt that fails by its result, a wait that the operator or a stop ends early, and waits
that become short again after a success. stamina always sleeps to the end of a wait, and never
resets the waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TypeVar

import anyio
import stamina

from replicator.status import now

# The caller logs the failures, with its own event.
stamina.instrumentation.set_on_retry_hooks(())

Error = TypeVar("Error", bound=Exception)
Tell = Callable[[Error, str, float], None]
"""Reports a failure: the error, the text of `times`, and the seconds until the next attempt."""


def times(since: datetime, seconds: float) -> str:
    """Return when the first failure was, and when the next attempt is, in ``seconds``."""
    following = now() + timedelta(seconds=seconds)
    return f"since {since:%Y-%m-%d %H:%M:%S} UTC, next attempt at {following:%H:%M:%S} UTC"


async def until_done(
    attempt: Callable[[], Awaitable[None]],
    on: type[Error],
    waits: tuple[float, float],
    tell: Tell[Error],
) -> None:
    """Repeat an attempt until it ends without this kind of exception; report each failure.

    ``waits`` are the first and the longest wait between two attempts, in seconds; waits double.
    """
    since: datetime | None = None
    async for one in stamina.retry_context(
        on=on,
        attempts=None,
        timeout=None,
        wait_initial=waits[0],
        wait_max=waits[1],
        wait_jitter=0,
    ):
        with one:
            try:
                await attempt()
            except on as error:
                since = since or now()
                tell(error, times(since, one.next_wait), one.next_wait)
                raise


class Backoff:
    """Waits that double, from the first to the longest of ``waits``, in seconds."""

    def __init__(self, waits: tuple[float, float]) -> None:
        self._first, self._longest = waits
        self.next = self._first

    def reset(self) -> None:
        """After a success: start again with the first wait."""
        self.next = self._first

    async def wait(self, until: anyio.Event | None = None) -> None:
        """Wait for `next` seconds or until an event, and double the next wait."""
        seconds = self.next
        self.next = min(2 * seconds, self._longest)
        with anyio.move_on_after(seconds):
            await (until.wait() if until is not None else anyio.sleep_forever())
