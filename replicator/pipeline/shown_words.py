"""What others are shown of this process in /proc: the words it was called with, its environment.

Linux shows the memory that they were put into at the start, whatever became of them since (proc(5):
``arg_start`` to ``env_end`` in ``/proc/[pid]/stat``). So it is that memory that is written to.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection
from pathlib import Path

_ARGUMENTS, _ENVIRONMENT = 45, 47
"""Where the bounds stand in the file, counted behind the name of the program."""


def blot_out(names: Collection[str]) -> None:
    """Show the values of these variables no more; a child gets them only if it is given them.

    Where the system does not tell where they are, nothing is done.
    """
    begin, end = _bounds(_ENVIRONMENT)
    wanted = {name.encode() for name in names}
    place = begin
    for variable in ctypes.string_at(begin, end - begin).split(b"\0"):
        name, equals, value = variable.partition(b"=")
        if name in wanted:
            ctypes.memset(place + len(name) + len(equals), 0, len(value))
        place += len(variable) + 1


def show_as(words: str) -> None:
    """Show these words as the ones this process was called with, as far as there is room."""
    begin, end = _bounds(_ARGUMENTS)
    if end > begin:
        room = end - begin - 1
        shown = words.encode()[:room].ljust(room, b"\0")
        ctypes.memmove(begin, shown, room)


def _bounds(field: int) -> tuple[int, int]:
    """Where it begins and ends in memory; 0 and 0 where that can't be told."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        return int(fields[field]), int(fields[field + 1])
    except (OSError, IndexError):
        return 0, 0
