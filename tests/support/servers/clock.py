"""Waiting for the clock where a server tells time in whole seconds."""

from __future__ import annotations

import time


def next_second() -> None:
    """Return in the next second: what begins then has another time than what began before."""
    present = int(time.time())
    while int(time.time()) == present:
        time.sleep(0.01)
