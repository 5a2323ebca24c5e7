"""The memory of a task's processes on this host: its own, Java's, and the workers'.

Source: proc(5), ``/proc/[pid]/stat`` (the parent), ``statm`` (resident pages) and ``smaps_rollup``
(``Pss``: a page that several processes share counts partly for each of them).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")


def memory_by_process(proc: Path = PROC, own: int | None = None) -> dict[str, int]:
    """Return the bytes of ``driver``, ``java`` and ``workers``; empty if /proc does not show them.

    ``own`` is the process id of the task. Call this function in a thread, because it reads several
    files for each process.
    """
    driver = os.getpid() if own is None else own
    parents = dict(_parents(proc))
    found: dict[str, int] = {}
    for process in parents:
        if process != driver and not _is_below(process, driver, parents):
            continue
        size = _memory(proc / str(process))
        kind = "driver" if process == driver else _kind(proc / str(process))
        if size is not None:
            found[kind] = found.get(kind, 0) + size
    return found


def _parents(proc: Path) -> Iterator[tuple[int, int]]:
    try:
        names = os.listdir(proc)
    except OSError:
        return
    for name in names:
        if name.isdecimal():
            try:
                # The program's name, in parentheses, may contain any characters.
                fields = (proc / name / "stat").read_text(errors="replace").rpartition(")")[2]
                yield int(name), int(fields.split()[1])
            except (OSError, ValueError, IndexError):
                # The process has just ended.
                continue


def _is_below(process: int, ancestor: int, parents: dict[int, int]) -> bool:
    seen = set()
    while process in parents and process not in seen:
        seen.add(process)
        process = parents[process]
        if process == ancestor:
            return True
    return False


def _kind(folder: Path) -> str:
    try:
        name = (folder / "comm").read_text(errors="replace").strip()
    except OSError:
        return "workers"
    return "java" if name == "java" else "workers"


def _memory(folder: Path) -> int | None:
    try:
        for line in (folder / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    try:
        return int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
