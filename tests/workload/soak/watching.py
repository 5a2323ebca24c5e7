"""Threads that watch a task: its memory, its metrics, and `compare` beside it."""

from __future__ import annotations

import subprocess
import threading
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from statistics import median

from tests.support.tasks.processes import TaskProcess
from tests.workload.soak.estate import TASK

MEMORY_SECONDS = 10.0
PARTS = 6
"""The memory is reported for as many parts of the time."""
SIGNS = (
    "replicator_source_reconnects_total",
    "replicator_restarts_total",
    "replicator_faults_total",
    "replicator_writer_retrying",
    "replicator_blocked_seconds",
    "replicator_source_relay_failed",
    "replicator_source_reading",
    "replicator_source_lag_seconds",
    "replicator_state",
    "replicator_locks",
)
"""Metrics that may tell of a fault."""


class Memory:
    """Reads the memory of a task's processes from time to time; one thread."""

    def __init__(self) -> None:
        self.task: TaskProcess | None = None
        self.over = threading.Event()
        self.own: list[int] = []
        self.others: list[int] = []

    def run(self) -> None:
        """Read, until it is over."""
        while not self.over.wait(MEMORY_SECONDS):
            task = self.task
            if task is not None and (own := mebibytes(task.process.pid)):
                self.own.append(own)
                self.others.append(sum(map(mebibytes, task.descendants())))

    @staticmethod
    def by_part(found: list[int]) -> list[int]:
        """Return the median of each part of the time."""
        size = max(1, -(-len(found) // PARTS))
        return [round(median(found[at : at + size])) for at in range(0, len(found), size)]


def mebibytes(process: int) -> int:
    """Return the resident memory of a process, 0 if it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS"))


class Comparisons:
    """Runs `compare` again and again beside the task; one thread.

    Attributes:
        ends: how often it ended with each exit code. Rows that wait for a lock or for a
            reconciliation differ, so these comparisons count separately.
        found: the end of the output of the others that found a difference.
    """

    def __init__(self, file: Path, every: float) -> None:
        self._file = file
        self._every = every
        self.task: TaskProcess | None = None
        self.over = threading.Event()
        self.ends: Counter[str] = Counter()
        self.found: list[str] = []

    def run(self) -> None:
        """Compare, until it is over."""
        while not self.over.wait(self._every):
            if (task := self.task) is not None:
                waits = _rows_wait(task)
                try:
                    answer = task.cli("compare", str(self._file), patience=300)
                except subprocess.TimeoutExpired:
                    self.ends["not ended in 300 s"] += 1
                    continue
                code = str(answer.returncode)
                if answer.returncode == 1 and (waits or _rows_wait(self.task)):
                    code += " while rows wait"
                elif answer.returncode == 1:
                    self.found.append((answer.stdout + answer.stderr)[-1_500:])
                self.ends[code] += 1


def _rows_wait(task: TaskProcess | None) -> bool:
    status = task.status(TASK) if task is not None else None
    if status is None:
        return True
    return bool(status.reconciling or status.locks or status.blocked)


def metrics(port: int) -> dict[str, float]:
    """Return the metrics of a task that may tell of a fault; none if it does not answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=2) as answer:
            lines = answer.read().decode().splitlines()
    except (urllib.error.URLError, OSError):
        return {}
    pairs = (line.rpartition(" ") for line in lines if line.startswith(SIGNS))
    return {name: float(value) for name, _, value in pairs}


class FaultSigns:
    """Whether the metrics told of the faults, while these lasted and shortly afterwards.

    Attributes:
        seen: for each kind of fault, how often its metrics changed.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._kind = ""
        self._before: dict[str, float] = {}
        self._changed: set[str] = set()
        self.over = threading.Event()
        self.seen: Counter[str] = Counter()
        self.by: dict[str, Counter[str]] = {}

    def begin(self, kind: str) -> None:
        """Note the end of the former fault, and the metrics before the next one."""
        self.end()
        self._kind, self._before, self._changed = kind, metrics(self._port), set()

    def end(self) -> None:
        """Note what the metrics told of the last fault."""
        if self._kind and self._changed:
            self.seen[self._kind] += 1
            self.by.setdefault(self._kind, Counter()).update(self._changed)
        self._kind = ""

    def run(self) -> None:
        """Read the metrics each second, until it is over."""
        while not self.over.wait(1.0):
            if self._kind:
                self._compare(metrics(self._port))

    def _compare(self, found: dict[str, float]) -> None:
        if not found:
            self._changed.add("not answered")
        for name, value in found.items():
            short = name.partition("{")[0].removeprefix("replicator_")
            before = self._before.get(name, 0.0)
            if short == "source_lag_seconds":
                if value > before + 3:
                    self._changed.add(short)
            elif value != before and short != "locks":
                self._changed.add(short)
