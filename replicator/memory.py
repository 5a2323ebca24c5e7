"""The memory that this process may use, and the defaults derived from it.

Sources: Linux, cgroups(7), "Control Group v2" (``memory.max``) and "Memory Resource Controller"
(v1: ``memory.limit_in_bytes``); MySQL manual, ``max_allowed_packet`` (1 GiB at most).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

MIB: Final = 1 << 20
LARGEST_PACKET: Final = 1 << 30
"""Maximum size of an event, row or value: no server sends or accepts a larger one."""
_LARGEST_EVENT: Final = "REPLICATOR_LARGEST_EVENT"
_MEMORY: Final = "REPLICATOR_MEMORY"
"""The environment variables that pass the settings of the task file to workers."""
_LEAST_HEAP: Final = 512 * MIB
"""Spark does not start with less than 450 MiB."""
_V1: Final = "memory"


@dataclass(frozen=True, slots=True)
class MemoryDefaults:
    """Settings in bytes that apply if the task file does not set them.

    ``largest_event`` limits an event, a row and the result of a query. ``batch_bytes`` is the size
    of a batch. ``java_heap`` is the heap of the driver's Java.
    """

    largest_event: int
    batch_bytes: int
    java_heap: int


def memory_defaults(memory: int) -> MemoryDefaults:
    """Return the defaults for a process that may use this number of bytes of memory."""
    return MemoryDefaults(
        largest_event=_between(16 * MIB, memory // 8, LARGEST_PACKET),
        batch_bytes=_between(MIB, memory // 128, 64 * MIB),
        java_heap=_between(_LEAST_HEAP, memory // 4, 1024 * MIB),
    )


def _between(least: int, wanted: int, most: int) -> int:
    return max(least, min(wanted, most)) // MIB * MIB


def available_memory(root: Path = Path("/"), physical: int | None = None) -> int:
    """Return the bytes that this process may use: its cgroup's limit or the machine's memory.

    The smaller of both counts. ``root`` is the folder of ``proc`` and ``sys``; ``physical`` is the
    machine's memory in bytes.
    """
    if physical is None:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min((physical, *_cgroup_limits(root)))


def _cgroup_limits(root: Path) -> Iterator[int]:
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and _V1 not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup"
        # If v1 is mounted too, v2 is mounted one level below.
        mounts = (mount / _V1,) if controllers else (mount, mount / "unified")
        name = "memory.limit_in_bytes" if controllers else "memory.max"
        for base in mounts:
            # In a container the path may be the host's; then only the mount point exists.
            folder = base / path.strip("/")
            for place in (folder, *folder.parents):
                yield from _limit(place / name)
                if place == base:
                    break


def _limit(file: Path) -> Iterator[int]:
    try:
        text = file.read_text().strip()
    except OSError:
        return
    # "max" means no limit.
    if text.isdecimal():
        yield int(text)


def granted_memory() -> int:
    """Return the bytes for this process and its children.

    All available, or fewer by `set_memory`.
    """
    given = os.environ.get(_MEMORY, "")
    return min([available_memory(), *([int(given)] if given.isdecimal() else [])])


@cache
def _own_defaults() -> MemoryDefaults:
    return memory_defaults(granted_memory())


def set_memory(size: int | None) -> None:
    """Derive the defaults of this process and its children from ``size`` bytes of memory.

    More than the available memory counts as the available memory, and so does None.
    """
    _set(_MEMORY, size)
    _own_defaults.cache_clear()
    largest_event.cache_clear()


def set_largest_event(size: int | None) -> None:
    """Limit events of this process and its children to ``size`` bytes; None means the default."""
    _set(_LARGEST_EVENT, size)
    largest_event.cache_clear()


def _set(name: str, size: int | None) -> None:
    if size is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = str(size)


@cache
def largest_event() -> int:
    """Return the maximum size of an event, a row or a query result that this process accepts."""
    given = os.environ.get(_LARGEST_EVENT, "")
    return int(given) if given.isdecimal() else _own_defaults().largest_event


def worker_environment() -> dict[str, str]:
    """Return the environment variables that workers on other machines need."""
    return {_LARGEST_EVENT: os.environ[_LARGEST_EVENT]} if _LARGEST_EVENT in os.environ else {}


def batch_bytes(given: int | None) -> int:
    """Return the size of a batch: the value of the task file, or the default."""
    return given or _own_defaults().batch_bytes


def default_java_heap() -> int:
    """Return the bytes of the driver's Java heap for a task file that does not set it."""
    return _own_defaults().java_heap


def too_large(what: str, size: int) -> str:
    """Return the message for an event or answer that is larger than the limit."""
    return (
        f"{what} has {size} bytes or more, and this task takes {largest_event()} at most"
        " (limits.largest-event in the task file; by default an eighth of the memory there is, 1GiB"
        " at most). If the server is sound, set it to more and give the process more memory"
    )
