"""The progress of a copying task within its chunks, reported to the driver on the same host.

Each job has a file in the private folder of the session, with two big-endian numbers of 8 bytes:
the rows and bytes since the job began. The task overwrites it after each block of rows; the driver
reads it when the progress is requested. The numbers are only displayed; no decision depends on
them.
"""

from __future__ import annotations

import contextlib
import os
import struct
import tempfile
from pathlib import Path

_COUNTS = struct.Struct("!QQ")

MOST = 1 << 56
"""Larger counts, in rows or bytes, are invalid."""


class ProgressReader:
    """The driver's side of one job; a context manager.

    Raises OSError if the file can't be created in the folder.
    """

    def __init__(self, folder: str) -> None:
        self._descriptor, self.path = tempfile.mkstemp(prefix="progress-", dir=folder)
        os.pwrite(self._descriptor, _COUNTS.pack(0, 0), 0)

    def __enter__(self) -> ProgressReader:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
        Path(self.path).unlink(missing_ok=True)

    def counts(self) -> tuple[int, int]:
        """Return the rows and bytes that the job has sent to the target, or zeros if unreadable.

        Reads only a file that the driver itself has opened, at most 16 bytes of it, and only as
        numbers. So the task can't make the driver read anything else.
        """
        data = os.pread(self._descriptor, _COUNTS.size, 0)
        if len(data) != _COUNTS.size:
            return 0, 0
        rows, size = _COUNTS.unpack(data)
        return (rows, size) if max(rows, size) <= MOST else (0, 0)


class ProgressWriter:
    """The task's side. ``path`` is empty if the driver is not on the same host."""

    def __init__(self, path: str) -> None:
        self._rows = self._size = 0
        self._descriptor = -1
        if path:
            # The file does not exist any more if the driver has ended.
            with contextlib.suppress(OSError):
                self._descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def __enter__(self) -> ProgressWriter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def tell(self, rows: int, size: int) -> None:
        """Report the rows and bytes sent so far of the present chunk."""
        if self._descriptor >= 0:
            # A failure to report progress must not stop the copy.
            with contextlib.suppress(OSError):
                os.pwrite(self._descriptor, _COUNTS.pack(self._rows + rows, self._size + size), 0)

    def end_chunk(self, rows: int, size: int) -> None:
        """Count a chunk that is on the target, with its rows and bytes."""
        self._rows += rows
        self._size += size
        self.tell(0, 0)
