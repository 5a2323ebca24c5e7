"""How much memory this process and the Python workers of its Spark use, while something runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SAMPLE_SECONDS = 0.05


@dataclass
class Growth:
    """Peaks in bytes since the start: of this process beyond what it had, of any worker in all."""

    driver: int = 0
    worker: int = 0
    workers: set[int] = field(default_factory=set)


@contextmanager
def memory_growth() -> Iterator[Growth]:
    """Sample until the end of the block."""
    growth, end, before = Growth(), threading.Event(), resident(os.getpid())

    def sample() -> None:
        while not end.wait(SAMPLE_SECONDS):
            growth.driver = max(growth.driver, resident(os.getpid()) - before)
            growth.workers |= (found := python_workers())
            growth.worker = max(growth.worker, *map(resident, found), 0)

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        yield growth
    finally:
        end.set()
        sampler.join()


def resident(process: int) -> int:
    """Bytes of memory that a process holds; 0 when it is gone."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def python_workers() -> set[int]:
    """The processes below this one that Spark runs Python in."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(entry.name)] = (int(stat.rpartition(")")[2].split()[1]), stat)
    found, below = set(), {os.getpid()}
    while below:
        below = {process for process, (parent, _) in parents.items() if parent in below}
        found |= {process for process in below if "(python" in parents[process][1]}
    return found
