"""Counts the loops that this process compiled because they were not cached on the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Compilations:
    """Counts compiled loops and the seconds that compiling took.

    Attributes:
        loops: number of loops that this process has compiled.
        seconds: time spent on compiling, and on waiting for another process that compiled.
        report: called after the first compilation, when about half a minute of compiling lies
            ahead.
        at_first_call: compile the loops of modules imported from now on at their first call, and
            don't count them. For commands that call few loops. A task never sets it, because the
            task would stand still while a loop is compiled.
    """

    loops: int = 0
    seconds: float = 0.0
    report: Callable[[], None] | None = None
    at_first_call: bool = False

    def add(self, loops: int, seconds: float) -> None:
        """Add compiled loops and the seconds that they took."""
        if not loops:
            return
        if not self.loops and self.report is not None:
            self.report()
        self.loops += loops
        self.seconds += seconds


COMPILATIONS = Compilations()
