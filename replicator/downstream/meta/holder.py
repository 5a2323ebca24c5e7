"""Who runs a task: a process, told from all others, and whether it is surely gone.

Needs Linux to tell that a process is gone (proc(5)); elsewhere nobody is ever known to be.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_PROC = Path("/proc")
_ENDED = frozenset("ZX")
"""States of a process that is dead, and of which only the number is left."""


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """A process on a host.

    ``machine`` is one boot of a host, as one set of processes sees it (containers have sets of
    their own); empty where that can't be told. ``begun`` tells the process from others that get
    its number.
    """

    host: str
    process: int
    machine: str
    begun: str

    def __str__(self) -> str:
        return f"process {self.process} on host {self.host}"


@cache
def this_process() -> LeaseHolder:
    """The process that asks."""
    pid = os.getpid()
    return LeaseHolder(socket.gethostname(), pid, _machine(), begun(pid) or secrets.token_hex(8))


def is_gone(holder: LeaseHolder, here: LeaseHolder, begun_at: Callable[[int], str]) -> bool:
    """Whether a process has surely ended, as ``here`` can see it.

    ``begun_at`` tells when the process that has a number now was begun; empty if none has it. A
    process of another machine may live, however long nothing is heard of it.
    """
    seen = here.machine != "" and (holder.host, holder.machine) == (here.host, here.machine)
    return seen and begun_at(holder.process) != holder.begun


def begun(process: int) -> str:
    """When a process was begun, in ticks since the host's start; empty if there is none."""
    try:
        text = (_PROC / str(process) / "stat").read_text()
    except OSError:
        return ""
    # The second field is the name in brackets, which may hold anything; the state follows.
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] in _ENDED else fields[19]


def _machine() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""
