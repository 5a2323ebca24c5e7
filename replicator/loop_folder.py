"""Where compiled loops are kept, so that a host compiles them once.

Beside their modules, where these may be written to. Elsewhere, and for the modules that an executor
has unpacked for one application only, in the cache folder of the user: all processes of a host
then share it. Numba knows what was compiled by the module and by the processor.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import stat
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

UNPACKED = "replicator-package"
"""The folder that an executor unpacks our package in, anew for each application."""


def loop_folder(package: Path) -> Path:
    """Where the loops of the modules in a folder are kept. Raises OSError."""
    if UNPACKED not in package.parts and os.access(package, os.W_OK):
        return package / "__pycache__"
    return _shared_folder() / package.name


@contextlib.contextmanager
def compiling_alone(package: Path) -> Iterator[None]:
    """Have one process of this host compile at a time: the others find what it has kept."""
    try:
        folder = loop_folder(package)
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "compiling.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        # Nothing can be kept, so there is nothing to wait for.
        yield
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


@cache
def _shared_folder() -> Path:
    """The folder of this user for this Python and this numba, others' being of no use to them.

    Who could write there could have us run what he likes, so it must be ours alone.
    """
    # Here: who asks for the name of the unpacked package alone need not load it.
    import numba

    for parent in _cache_folders():
        try:
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = parent.lstat()
            if (
                stat.S_ISDIR(found.st_mode)
                and found.st_uid == os.geteuid()
                and not stat.S_IMODE(found.st_mode) & 0o022
                and os.access(parent, os.W_OK)
            ):
                return parent / f"loops-{platform.python_version()}-{numba.__version__}"
        except OSError:
            continue
    raise OSError("there is no folder to keep compiled loops in")


def _cache_folders() -> Iterator[Path]:
    given = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(given):
        yield Path(given, "replicator")
    with contextlib.suppress(RuntimeError):
        yield Path.home() / ".cache" / "replicator"
    yield Path(tempfile.gettempdir(), f"replicator-cache-{os.geteuid()}")
