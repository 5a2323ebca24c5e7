"""The relay log of a source in the status."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RelayStatus:
    """The relay log of a source.

    Attributes:
        files, bytes: the present files, and their size.
        first, end: the positions at which it begins and ends.
        needed: the oldest position that the task may read again; older files may be deleted.
        held_by: what keeps that position from moving on; empty if it moves by itself.
        error: the reason why it is not continued; empty if it is.
    """

    files: int
    bytes: int
    first: str
    end: str
    needed: str = ""
    held_by: str = ""
    error: str = ""
