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
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from replicator.cache_folder import cache_folder

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
    """The folder of this user for this Python and this numba, others' being of no use to them."""
    # Here: who asks for the name of the unpacked package alone need not load it.
    import numba

    return cache_folder() / f"loops-{platform.python_version()}-{numba.__version__}"
