"""How many rows a second the full copy takes from its sources."""

from __future__ import annotations

import time

import anyio


class RateLimit:
    """Limits the rows per second whose copy begins, on average; 0: no limit."""

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
