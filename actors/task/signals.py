"""The signals that end a task properly."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import anyio
import structlog

log = structlog.get_logger()


def ending_signals() -> Iterator[signal.Signals]:
    """Yield SIGTERM, SIGINT and, unless it is ignored, SIGHUP.

    `nohup` ignores SIGHUP to let the task outlive its terminal, and so does a task without a
    terminal.
    """
    yield from (signal.SIGTERM, signal.SIGINT)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        yield signal.SIGHUP


async def obey_signals(request: Callable[[str], None]) -> None:
    """Request `stop` at each of these signals, until cancelled."""
    with anyio.open_signal_receiver(*ending_signals()) as signals:
        async for number in signals:
            log.info("task.signal", signal=signal.Signals(number).name)
            request("stop")
