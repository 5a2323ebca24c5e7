"""How far a task is within the chunks that it copies, for the driver on the same host.

Each job has a file in the private folder of the session: ``rows (8 bytes, big-endian), bytes (8)``,
counted since the job began. The task overwrites it whenever a block of rows is on its way, the
driver looks when somebody wants to know. Both are figures to be shown; nothing depends on them.
"""

from __future__ import annotations

import contextlib
import os
import struct
import tempfile
from pathlib import Path

_COUNTS = struct.Struct("!QQ")

MOST = 1 << 56
"""Larger counts than this, in rows or bytes, are damage."""


class ProgressReader:
    """The driver's side of one job; use it as a context manager. Raises OSError where the folder
    takes no file."""

    def __init__(self, folder: str) -> None:
        self._descriptor, self.path = tempfile.mkstemp(prefix="progress-", dir=folder)
        os.pwrite(self._descriptor, _COUNTS.pack(0, 0), 0)

    def __enter__(self) -> ProgressReader:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
        Path(self.path).unlink(missing_ok=True)

    def counts(self) -> tuple[int, int]:
        """Rows and bytes that the job has sent to the target; none where the file makes no sense.

        Reads what the driver itself has opened, of that so many bytes, and only as numbers.
        """
        data = os.pread(self._descriptor, _COUNTS.size, 0)
        if len(data) != _COUNTS.size:
            return 0, 0
        rows, size = _COUNTS.unpack(data)
        return (rows, size) if max(rows, size) <= MOST else (0, 0)


class ProgressWriter:
    """The task's side. ``path`` is empty where there is no driver on the same host."""

    def __init__(self, path: str) -> None:
        self._rows = self._size = 0
        self._descriptor = -1
        if path:
            # A driver that is gone has taken the file with it.
            with contextlib.suppress(OSError):
                self._descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def __enter__(self) -> ProgressWriter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def tell(self, rows: int, size: int) -> None:
        """So many rows and bytes of the chunk under way were sent."""
        if self._descriptor >= 0:
            # Rows are not to wait because a figure can't be shown.
            with contextlib.suppress(OSError):
                os.pwrite(self._descriptor, _COUNTS.pack(self._rows + rows, self._size + size), 0)

    def end_chunk(self, rows: int, size: int) -> None:
        """The chunk under way is on the target, with so many rows and bytes."""
        self._rows += rows
        self._size += size
        self.tell(0, 0)
