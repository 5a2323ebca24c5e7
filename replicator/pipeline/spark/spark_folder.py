"""The temporary folder of a Spark session: settings, shuffle files, files for executors.

It is removed at the end of the process. A process that was killed does not remove it, with any
secret settings in it. So each start removes the folders that are no longer locked.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "replicator-spark-"
_LOCK = "owner.lock"
_kept: list[int] = []
"""The locks of this process, which end with it."""
_made: list[str] = []


def make_folder() -> str:
    """Make a folder for this process alone, which is removed at its end."""
    remove_abandoned()
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    # Registered before Spark's own clean-up, and so run after it.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = Path(folder, f"{_LOCK}.new")
    descriptor = os.open(made, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    # Nobody may find the file before it is locked.
    made.rename(Path(folder, _LOCK))
    _kept.append(descriptor)
    _made.append(folder)
    return folder


def first_folder() -> str:
    """Return the first folder that this process has made; there must be one."""
    return _made[0]


def newest_folder() -> str:
    """Return the newest folder that this process has made; make one if there is none."""
    return _made[-1] if _made else make_folder()


def remove_abandoned() -> None:
    """Remove the folders of this user's processes that have ended."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            if folder.stat().st_uid != os.geteuid():
                continue
            descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue  # It is being made, or being removed.
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)
