"""CPU time and memory of a process and all its descendants, read from /proc (Linux)."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
SAMPLE_SECONDS = 0.25

MEMORY_SHARE = 0.02
"""How much of a core it may take to look at memory: the kernel walks all pages for it."""


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds since the watch began: of the driver (the first process), of Java, of the
    Python workers. Peaks of memory in bytes: ``tree`` without counting shared pages twice (PSS),
    ``driver`` the first process alone (RSS)."""

    cpu_driver: float
    cpu_java: float
    cpu_workers: float
    tree: int
    driver: int


class ProcessTreeWatch:
    """Samples a process tree in a thread until the block ends; then `usage` has the result.

    What a process used between its last sample and its end is missed.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._first: dict[tuple[int, int], float] = {}
        self._last: dict[tuple[int, int], float] = {}
        self._kinds: dict[tuple[int, int], str] = {}
        self._tree = 0
        self._driver = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> ProcessTreeWatch:
        self._first = self._cpu_by_process()
        self._last = dict(self._first)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self.sample()

    @property
    def usage(self) -> Usage:
        """What the tree has used so far."""
        cpu = {"driver": 0.0, "java": 0.0, "workers": 0.0}
        for process, seconds in self._last.items():
            cpu[self._kinds[process]] += seconds - self._first.get(process, 0.0)
        return Usage(cpu["driver"], cpu["java"], cpu["workers"], self._tree, self._driver)

    def _watch(self) -> None:
        look_at = 0.0
        while not self._done.wait(SAMPLE_SECONDS):
            self._last.update(self._cpu_by_process())
            began = time.monotonic()
            if began >= look_at:
                self._look_at_memory()
                ended = time.monotonic()
                look_at = ended + (ended - began) / MEMORY_SHARE

    def sample(self) -> None:
        """Look once."""
        self._last.update(self._cpu_by_process())
        self._look_at_memory()

    def _look_at_memory(self) -> None:
        self._tree = max(self._tree, tree_memory(self._root))
        self._driver = max(self._driver, _memory(self._root, "Rss"))

    def _cpu_by_process(self) -> dict[tuple[int, int], float]:
        found = {}
        for pid in descendants(self._root):
            fields = _stat(pid)
            if fields:
                # utime, stime and the start time, which tells a reused number apart (proc(5)).
                process = pid, int(fields[19])
                found[process] = (int(fields[11]) + int(fields[12])) / _TICKS
                if process not in self._kinds:
                    self._kinds[process] = "driver" if pid == self._root else _kind(pid)
        return found


class OthersWatch:
    """The CPU seconds that processes took which do not descend from this one: ``cpu``, at the end
    of the block."""

    def __init__(self) -> None:
        self.cpu = 0.0

    def __enter__(self) -> OthersWatch:
        self._before = self._now()
        return self

    def __exit__(self, *_: object) -> None:
        self.cpu = max(0.0, self._now() - self._before)

    def _now(self) -> float:
        return machine_seconds() - tree_seconds(os.getpid())


def cpu_seconds(pid: int) -> float:
    """The CPU time of one process since its start."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS if fields else 0.0


def cpu_by_kind(root: int) -> dict[str, float]:
    """The CPU seconds of a tree by kind of process; those that ended since a former look go on
    in who has waited for them."""
    cpu = {"driver": 0.0, "java": 0.0, "workers": 0.0}
    for pid in descendants(root):
        if fields := _stat(pid):
            cpu["driver" if pid == root else _kind(pid)] += sum(map(int, fields[11:15])) / _TICKS
    return cpu


def tree_memory(root: int) -> int:
    """The memory of a process and its descendants in bytes; shared pages count once (PSS)."""
    return sum(_memory(pid, "Pss") for pid in descendants(root))


def tree_seconds(root: int) -> float:
    """The CPU time of a process and its descendants, with those that ended and were waited for."""
    fields = filter(None, map(_stat, descendants(root)))
    return sum(sum(map(int, f[11:15])) for f in fields) / _TICKS


def machine_seconds() -> float:
    """The CPU time that all processes together have used since the machine's start."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()
    user, nice, system, _, _, interrupts, soft, stolen = map(int, fields[1:9])
    return (user + nice + system + interrupts + soft + stolen) / _TICKS


def descendants(root: int) -> list[int]:
    """The process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def _kind(pid: int) -> str:
    try:
        name = Path(f"/proc/{pid}/comm").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "workers"
    return "java" if name.strip() == "java" else "workers"


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; none when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()


def _memory(pid: int, kind: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{kind}:"))
