"""The files of a relay: exact copies of a server's binlog files, with their names and offsets.

So a position has the same meaning in both, and the servers' own tools can read the files. Each file
begins at the beginning of the server's file. Only the last file grows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from replicator.binlog.errors import BinlogError
from replicator.binlog.events.event_header import HEAD, HEADER_SIZE, EventType
from replicator.binlog.events.structural_events import Checksum, read_checksum
from replicator.binlog.positions.position import FILE_HEADER, BinlogPosition
from replicator.binlog.relay.relay_kernel import RelayCursor, pass_whole
from replicator.kernels.compiled import Bytes, record_of
from replicator.kernels.crc32 import TABLES

MAGIC = b"\xfebin"
"""The first bytes of a binlog file."""
_LONGEST_FORMAT = 4096


@dataclass(frozen=True, slots=True)
class FileEnd:
    """The end of a file, and the beginning of its last complete event."""

    file: str
    end: int
    last: int


def sequence_of(file: str) -> int:
    """Return the number of a file; -1 if its name has none."""
    number = file.rpartition(".")[2]
    return int(number) if number.isdecimal() else -1


def binlog_files(folder: Path) -> list[str]:
    """Return the names of the newest files without a gap between their numbers, oldest first."""
    try:
        names = sorted((n for n in os.listdir(folder) if sequence_of(n) >= 0), key=sequence_of)
    except FileNotFoundError:
        return []
    first = len(names) - 1
    while first > 0 and sequence_of(names[first - 1]) + 1 == sequence_of(names[first]):
        first -= 1
    return names[max(first, 0) :]


def read_format(file: int) -> bytes:
    """Return the format description with which an open file begins; empty if it has none."""
    head = os.pread(file, _LONGEST_FORMAT, FILE_HEADER)
    if len(head) < HEADER_SIZE:
        return b""
    kind, size, _ = HEAD.unpack_from(head)
    return head[:size] if kind == EventType.FORMAT_DESCRIPTION and size <= len(head) else b""


def has_checksums(description: bytes) -> bool:
    """Return whether a file's events end with a checksum, by its format description."""
    return read_checksum(description) is Checksum.CRC32


def cut_torn_end(folder: Path) -> FileEnd | None:
    """Cut off an incomplete event that a crash has left at the end; None if no file is left.

    A last file without a complete event is removed. Raises OSError.
    """
    for name in reversed(binlog_files(folder)):
        path = folder / name
        found = _whole_end(path)
        if found is not None:
            os.truncate(path, found.end)
            return found
        path.unlink()
    return None


def _whole_end(path: Path) -> FileEnd | None:
    with path.open("rb") as file:
        description = read_format(file.fileno())
        if not description or os.pread(file.fileno(), FILE_HEADER, 0) != MAGIC:
            return None
        data: Bytes = np.memmap(file, np.uint8, "r")
        checks = has_checksums(description)
        cursor = RelayCursor(at=FILE_HEADER, end=len(data), offset=FILE_HEADER, checks=checks)
        pass_whole(data, record_of(cursor), TABLES)
        found = FileEnd(path.name, cursor.offset, cursor.last)
        return found if cursor.at > FILE_HEADER else None


class FileWriter:
    """Appends complete events to one file at a time. All methods raise OSError."""

    def __init__(self, folder: Path, file: str, offset: int) -> None:
        """``offset``: the end of the file; 0 creates the file."""
        self.file = file
        self.offset = offset
        flags = os.O_WRONLY | os.O_CLOEXEC | (0 if offset else os.O_CREAT | os.O_TRUNC)
        self._descriptor = os.open(folder / file, flags, 0o640)
        self._dirty = False
        if not offset:
            self.write(memoryview(MAGIC))
            _sync_folder(folder)

    def write(self, data: memoryview) -> None:
        """Append bytes; if they do not all fit, append none of them."""
        written = 0
        try:
            while written < len(data):
                self._dirty = True
                written += os.pwrite(self._descriptor, data[written:], self.offset + written)
        except OSError:
            os.ftruncate(self._descriptor, self.offset)
            raise
        self.offset += written

    def sync(self) -> None:
        """Save the content written so far, so that it survives a power failure."""
        if self._dirty:
            os.fsync(self._descriptor)
            self._dirty = False

    def close(self) -> None:
        """Close the file; a power failure may lose content that is not synchronized."""
        os.close(self._descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def former_files(folder: Path) -> list[Path]:
    """Return the files in the source's other folders.

    Files of former servers, and set-aside files.
    """
    found = folder.parent.glob("*/*")
    return sorted(path for path in found if path.parent != folder and sequence_of(path.name) >= 0)


def files_to_purge(
    former: Sequence[Path],
    files: Sequence[Path],
    needed: BinlogPosition,
    *,
    written_before: float,
    missing_space: int,
) -> list[Path]:
    """Return the files to delete: old ones, then as many as free ``missing_space`` bytes.

    Raises OSError.

    Args:
        former: files that are not needed.
        files: files of the present binlog, oldest first.
        needed: the oldest position still needed. Its file and all later ones stay.
        written_before: seconds since the epoch; 0 if no file is too old.
    """
    found = []
    earlier = [path for path in files[:-1] if sequence_of(path.name) < needed.sequence]
    for path in (*former, *earlier):
        stat = path.stat()
        if stat.st_mtime >= written_before and missing_space <= 0:
            break
        missing_space -= stat.st_size
        found.append(path)
    return found


def refuse_gap(file: str, offset: int, event: bytes) -> None:
    """Raise BinlogError unless an event begins at an offset of its file."""
    _, size, end = HEAD.unpack_from(event)
    if end and end != (offset + size) % (1 << 32):
        raise BinlogError(
            f"The source left events out: the copy of {file} ends at {offset}, and the next event"
            f" ends at {end} and has {size} bytes."
        )
