"""The loops that this process has compiled because the host did not have them yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Compilations:
    """Counts compiled loops and their seconds.

    Attributes:
        loops: number of loops compiled by this process.
        seconds: time for these, and for waiting for another process that compiled.
        report: called after the first one, with half a minute of work to come.
        at_first_call: the loops of modules imported from now on are compiled when they are first
            called, and not counted. For commands that call few of them. A task never sets it: it
            could do nothing else while it compiles.
    """

    loops: int = 0
    seconds: float = 0.0
    report: Callable[[], None] | None = None
    at_first_call: bool = False

    def add(self, loops: int, seconds: float) -> None:
        """Count compiled loops."""
        if not loops:
            return
        if not self.loops and self.report is not None:
            self.report()
        self.loops += loops
        self.seconds += seconds


COMPILATIONS = Compilations()
