"""The signals that end a task in order."""

from __future__ import annotations

import signal
from collections.abc import Iterator


def ending_signals() -> Iterator[signal.Signals]:
    """SIGTERM, SIGINT and SIGHUP; this one only if it is not ignored.

    `nohup` has it ignored, to let the task outlive its terminal, and so has a task without one.
    """
    yield from (signal.SIGTERM, signal.SIGINT)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        yield signal.SIGHUP
