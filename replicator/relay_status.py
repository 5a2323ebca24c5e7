"""The relay log of a source in the status."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RelayStatus:
    """The relay log of a source.

    Attributes:
        files, bytes: the number of files, and their size.
        first, end: the positions at which the relay log starts and ends.
        needed: the oldest position that the task may read again; older files may be deleted.
        held_by: what keeps ``needed`` from advancing; empty if it advances normally.
        error: the reason why the relay log is not continued; empty if it is.
    """

    files: int
    bytes: int
    first: str
    end: str
    needed: str = ""
    held_by: str = ""
    error: str = ""
