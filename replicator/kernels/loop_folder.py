"""The folder of compiled loops, so that each host compiles them only once.

The folder is beside the modules, if that place is writable. Otherwise, and for modules that an
executor has unpacked for one application only, it is in the user's cache folder, where all
processes of the host share it. Numba identifies compiled loops by the module and the processor.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from replicator.cache_folder import cache_folder

UNPACKED = "replicator-package"
"""The folder that an executor unpacks our package into, once for each application."""


def loop_folder(package: Path) -> Path:
    """Return the folder for the loops of the modules in a folder. Raises OSError."""
    if UNPACKED not in package.parts and os.access(package, os.W_OK):
        return package / "__pycache__"
    return _shared_folder() / package.name


@contextlib.contextmanager
def compiling_alone(package: Path) -> Iterator[None]:
    """Let only one process of this host compile at a time; the others then find its files."""
    try:
        folder = loop_folder(package)
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "compiling.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        # Nothing can be cached, so waiting for another process is useless.
        yield
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


@cache
def _shared_folder() -> Path:
    """Return the user's folder for this Python and this numba; other users can't use its files."""
    # Imported here because `UNPACKED` is also needed without numba.
    import numba

    return cache_folder() / f"loops-{platform.python_version()}-{numba.__version__}"
