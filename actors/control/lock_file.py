"""Files that one process at a time locks, and that have the id of this process."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class LockFile:
    """A file to lock. The system releases the lock when the process ends, however it ends.

    The file itself is kept: removing it would let two processes lock two files of the same name.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, or create it. Raises OSError."""
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def acquire(self) -> bool:
        """Lock the file, and write the id of this process into it; return False if it is locked."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        return True

    def holder(self) -> str:
        """Return the id of the last process that locked the file; empty if there was none."""
        return os.pread(self._descriptor, 20, 0).decode("ascii", "replace").strip()

    def close(self) -> None:
        """Close the file, and end the lock."""
        os.close(self._descriptor)
