"""What others are shown of this process in /proc: its environment.

Linux shows the memory that it was put into at the start, whatever became of it since (proc(5):
``env_start`` and ``env_end`` in ``/proc/[pid]/stat``). So it is that memory that is written to.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection
from pathlib import Path

_ENVIRONMENT = 47
"""Where the bounds stand in the file, counted behind the name of the program."""


def blot_out(names: Collection[str]) -> None:
    """Show the values of these variables no more; a child gets them only if it is given them.

    Where the system does not tell where they are, nothing is done.
    """
    begin, end = _bounds()
    wanted = {name.encode() for name in names}
    place = begin
    for variable in ctypes.string_at(begin, end - begin).split(b"\0"):
        name, equals, value = variable.partition(b"=")
        if name in wanted:
            ctypes.memset(place + len(name) + len(equals), 0, len(value))
        place += len(variable) + 1


def _bounds() -> tuple[int, int]:
    """Where it begins and ends in memory; 0 and 0 where that can't be told."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        return int(fields[_ENVIRONMENT]), int(fields[_ENVIRONMENT + 1])
    except (OSError, IndexError):
        return 0, 0
