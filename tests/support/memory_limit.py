"""A control group with a limit of memory, for a process and all that it starts (cgroups(7))."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MOUNT = Path("/sys/fs/cgroup")
_V1 = _MOUNT / "memory"
_GONE_SECONDS = 20.0


class MemoryLimit:
    """A group. ``peak`` is the most that it had in bytes, files' pages among them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def entered(self) -> Iterator[None]:
        """What this process starts in the block belongs to the group."""
        former = _own_folder()
        self._move(self._folder)
        try:
            yield
        finally:
            self._move(former)

    @property
    def peak(self) -> int:
        name = "memory.max_usage_in_bytes" if _is_v1() else "memory.peak"
        return int((self._folder / name).read_text())

    @property
    def kills(self) -> int:
        """How many processes were killed for the limit."""
        name = "memory.oom_control" if _is_v1() else "memory.events"
        lines = (self._folder / name).read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))

    def _move(self, folder: Path) -> None:
        (folder / "cgroup.procs").write_text(str(os.getpid()))


def _is_v1() -> bool:
    return (_V1 / "cgroup.procs").exists()


def _own_folder() -> Path:
    wanted = "memory" if _is_v1() else ""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if wanted in controllers.split(","):
            return (_V1 if wanted else _MOUNT) / path.strip("/")
    raise OSError("this process is in no control group for memory")


@contextmanager
def memory_limit(size: int) -> Iterator[MemoryLimit]:
    """A group that may have so many bytes; removed in the end. Raises OSError where none can be."""
    folder = (_V1 if _is_v1() else _MOUNT) / f"replicator-test-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    try:
        name = "memory.limit_in_bytes" if _is_v1() else "memory.max"
        (folder / name).write_text(str(size))
        yield MemoryLimit(folder)
    finally:
        deadline = time.monotonic() + _GONE_SECONDS
        while (folder / "cgroup.procs").read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        folder.rmdir()
