"""The folder of compiled loops, so that a host compiles them once.

It is beside their modules, if that is writable. Otherwise, and for modules that an executor has
unpacked for one application only, it is in the cache folder of the user: all processes of a host
then share it. Numba identifies compiled loops by the module and by the processor.
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
"""The folder that an executor unpacks our package in, again for each application."""


def loop_folder(package: Path) -> Path:
    """Return the folder for the loops of the modules in a folder. Raises OSError."""
    if UNPACKED not in package.parts and os.access(package, os.W_OK):
        return package / "__pycache__"
    return _shared_folder() / package.name


@contextlib.contextmanager
def compiling_alone(package: Path) -> Iterator[None]:
    """Let only one process of this host compile at a time: the others find its files."""
    try:
        folder = loop_folder(package)
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "compiling.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        # Nothing can be cached, so there is nothing to wait for.
        yield
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


@cache
def _shared_folder() -> Path:
    """The folder of this user for this Python and this numba; others can't use its files."""
    # Here: the name of the unpacked package alone does not need it.
    import numba

    return cache_folder() / f"loops-{platform.python_version()}-{numba.__version__}"
