"""Notifications to systemd: the task is ready, its status, and that its event loop runs.

The protocol is that of sd_notify(3): datagrams with assignments are sent to the socket that
``NOTIFY_SOCKET`` names, by a path, or by ``@`` and a name in the abstract namespace. Without this
variable, nothing is sent.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress

import anyio

from replicator.printable_text import shown_line
from replicator.status import TaskStatus, condition, largest_lag, needs_operator
from replicator.terminal.figures import number, seconds

BEAT_SECONDS = 5.0
"""Seconds between two datagrams; fewer if the watchdog requires it."""

GRACE_SECONDS = 120
"""Seconds by which each datagram extends the time limit of a start or a stop."""

_READY = ("standby", "running", "pausing", "paused")


class ServiceManager:
    """The systemd that started this process, if any, according to the environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        given = environment.get("NOTIFY_SOCKET", "")
        # A leading @ in systemd's notation is a NUL for the kernel.
        self._address = f"\0{given[1:]}" if given.startswith("@") else given
        self._beat = min(BEAT_SECONDS, (_watchdog_seconds(environment) or BEAT_SECONDS * 3) / 3)
        self._ready = False

    async def keep(self, status: Callable[[], TaskStatus]) -> None:
        """Send the status of the task until cancelled; finally send that the task stops."""
        if not self._address.startswith(("/", "\0")):
            return
        try:
            while True:
                self.beat(status())
                await anyio.sleep(self._beat)
        finally:
            self._send("STOPPING=1")

    def beat(self, status: TaskStatus) -> None:
        """Send the status once. If nobody reads it, it is lost."""
        lines = [f"STATUS={status_line(status)}", "WATCHDOG=1"]
        if status.state in _READY and not self._ready:
            self._ready = True
            lines.append("READY=1")
        if status.state in ("stopping", "stopped"):
            lines.append("STOPPING=1")
        if not self._ready or "STOPPING=1" in lines:
            lines.append(f"EXTEND_TIMEOUT_USEC={GRACE_SECONDS * 1_000_000}")
        self._send(*lines)

    def _send(self, *assignments: str) -> None:
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            # A systemd that reads nothing must not block the event loop.
            sender.setblocking(False)
            sender.sendto("\n".join(assignments).encode(errors="replace"), self._address)


def _watchdog_seconds(environment: Mapping[str, str]) -> float | None:
    """Return the watchdog's interval in seconds; None if this process is not watched."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    given = environment.get("WATCHDOG_USEC", "")
    return int(given) / 1_000_000 if given.isascii() and given.isdigit() and int(given) else None


def status_line(status: TaskStatus) -> str:
    """Return the line that ``systemctl status`` shows."""
    parts = [condition(status)]
    if needs_operator(status):
        parts.append(f"needs you: `replicator status {status.task}`")
    if (lag := largest_lag(status)) is not None:
        parts.append(f"lag {seconds(lag)}")
    parts.append(f"{number(round(status.writer.rows_per_second))} rows/s")
    return shown_line(", ".join(parts))
