"""The relay log of a source: what its writer and its readers share.

The writer copies the source's binlog into files, in a thread and on a connection of its own. A
reader gets the same packets from these files as from the source. It is used only after the writer
has proven that the files are of the source's present binlog. Where the relay has no answer, the
reader asks the source.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from replicator.binlog.errors import StreamLostError
from replicator.binlog.positions.position import FILE_HEADER, BinlogPosition
from replicator.binlog.relay.relay_files import binlog_files, files_to_purge, sequence_of
from replicator.failpoints import Failpoint, reach

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """The settings of a relay, as in DM's source file.

    Attributes:
        source: the name of the source, for the log.
        folder: where the folders of the servers are.
        enabled: whether the relay is written from the start on; else from when it is needed.
        purge_interval: seconds between two purges.
        purge_expires: hours after which a file that is not needed is deleted; 0: never.
        purge_remain_space: GiB; if less is free, files that are not needed are deleted.
    """

    source: str
    folder: Path
    enabled: bool = True
    purge_interval: int = 3600
    purge_expires: int = 0
    purge_remain_space: int = 15


@dataclass(frozen=True, slots=True)
class RelaySize:
    """The size of a relay, for reports: bytes and files, and where it begins and ends."""

    bytes: int
    files: int
    first: str
    end: str
    error: str


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a relay. ``beat`` is the heartbeat that came there, the ``beats``-th of all."""

    file: str
    offset: int
    beat: bytes
    beats: int


class RelayLog:
    """The state of a relay, under one lock. Its methods may be called in any thread.

    ``writing``: there is a writer. ``proven``: the files are of the source's present binlog.
    ``error``: why nothing is written now.
    """

    def __init__(self, settings: RelaySettings) -> None:
        self.settings = settings
        self.error = ""
        self.writing = False
        self.proven = False
        self.closed = False
        self.folder: Path | None = None
        self._lock: int | None = None
        self._changed = threading.Condition()
        self._tail = Tail("", 0, b"", 0)
        self._files: list[str] = []
        self._interruptions = 0
        self._interruption = ""
        self._damaged = False
        self._purged_at = 0.0

    def open(self, folder: Path) -> None:
        """Take a folder into use, for this process alone. Raises OSError."""
        folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        self._lock = os.open(folder.with_name(f"{folder.name}.lock"), os.O_RDWR | os.O_CREAT, 0o640)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            self._lock = None
            raise
        self.folder = folder

    def close(self) -> None:
        """End it: readers that wait are interrupted."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def unlock(self) -> None:
        """Let another process use the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def set_aside(self) -> Path:
        """Begin with an empty folder; the former one is renamed. Raises OSError."""
        assert self.folder is not None
        number = 1
        while (aside := self.folder.with_name(f"{self.folder.name}.former-{number}")).exists():
            number += 1
        self.folder.rename(aside)
        self.folder.mkdir(mode=0o750)
        return aside

    def prove(self) -> None:
        """The files are those of the source; readers may use them."""
        assert self.folder is not None
        with self._changed:
            self._files = binlog_files(self.folder)
            self.proven, self.error = True, ""
            self._changed.notify_all()

    def advance(self, file: str, offset: int) -> None:
        """The file has whole events up to this offset."""
        with self._changed:
            if not self._files or self._files[-1] != file:
                self._files.append(file)
            self._tail = Tail(file, offset, b"", self._tail.beats)
            self._changed.notify_all()

    def heartbeat(self, event: bytes) -> None:
        """The source has reported that there is no more."""
        with self._changed:
            tail = self._tail
            self._tail = Tail(tail.file, tail.offset, event, tail.beats + 1)
            self._changed.notify_all()

    def interrupt(self, reason: str, *, failed: bool) -> None:
        """Nothing is written for now: readers at the end have to connect again.

        Args:
            failed: reconnecting does not help; they read from the source meanwhile.
        """
        with self._changed:
            self._interruptions += 1
            self._interruption = reason
            self.error = reason if failed else ""
            self._tail = Tail(self._tail.file, self._tail.offset, b"", self._tail.beats)
            self._changed.notify_all()

    def distrust(self) -> None:
        """The files can't be read: readers use the source from now on."""
        with self._changed:
            self._damaged = True
            self._changed.notify_all()

    @property
    def tail(self) -> Tail:
        """The present end."""
        return self._tail

    @property
    def state(self) -> tuple[Tail, int]:
        """The present end, and how often writing was interrupted."""
        with self._changed:
            return self._tail, self._interruptions

    def wake(self) -> None:
        """Have the readers that wait look whether they were closed."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, seen: tuple[Tail, int], timeout: float) -> None:
        """Wait until the end is another one than was seen; returns early where `wake` was called.

        Raises StreamLostError if writing was interrupted, or the relay is closed or damaged.
        """
        with self._changed:
            if (self._tail, self._interruptions) == seen and not self.error:
                self._changed.wait(timeout)
            if self._interruptions != seen[1] or self.closed or self._damaged or self.error:
                raise StreamLostError(f"The relay was interrupted. {self._interruption}".rstrip())

    def has(self, position: BinlogPosition) -> bool:
        """Whether readers get the events from a position on here.

        Not if there is no more at the end and the position is behind it, and if the relay does not
        go on: then only if the position is in an earlier file.
        """
        with self._changed:
            if not self.proven or self._damaged or self.closed or not self._files:
                return False
            first, last = sequence_of(self._files[0]), sequence_of(self._tail.file)
            if self._files[0].rpartition(".")[0] != position.file.rpartition(".")[0]:
                return False
            if position.sequence < first:
                return False
            if position.sequence < last:
                return position.offset <= self._size(position.file)
            if self.error:
                return False
            behind = position.key > BinlogPosition(self._tail.file, self._tail.offset).key
            return not (behind and self._tail.beat)

    def reached(self, position: BinlogPosition) -> bool:
        """Whether the files have come to a position. Raises StreamLostError if they won't."""
        with self._changed:
            tail = BinlogPosition(self._tail.file, self._tail.offset)
            if position.file in self._files and position.key <= tail.key:
                return True
            if self._tail.beat or position.sequence < tail.sequence:
                raise StreamLostError(f"The relay does not have {position}.")
            return False

    def decided(self, timeout: float) -> bool:
        """Wait until it is known whether the files are the source's; False if that takes longer.

        Raises StreamLostError if the source can't be reached.
        """
        until = time.monotonic() + timeout
        with self._changed:
            before = self._interruptions
            while self.writing and not (self.proven or self.error or self.closed):
                if self._interruptions != before:
                    raise StreamLostError(self._interruption)
                left = until - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
            return True

    def _size(self, file: str) -> int:
        assert self.folder is not None
        try:
            return (self.folder / file).stat().st_size
        except OSError:
            return -1

    def next_file(self, file: str) -> str | None:
        """Return the file after this one, if there is one. Raises StreamLostError if it is gone."""
        with self._changed:
            if self._tail.file == file:
                return None
            if file not in self._files:
                raise StreamLostError(f"The relay no longer has the file {file}.")
            return self._files[self._files.index(file) + 1]

    def purge(self, needed: BinlogPosition) -> list[str]:
        """Delete what the settings say of the files before the needed one, if it is time to.

        Returns the names of the deleted files. Raises OSError.
        """
        settings, now = self.settings, time.time()
        due = now >= self._purged_at + settings.purge_interval
        if self.folder is None or not self.proven or not due:
            return []
        self._purged_at = now
        sizes = []
        for name in list(self._files):
            stat = (self.folder / name).stat()
            sizes.append((name, stat.st_size, stat.st_mtime))
        expires = settings.purge_expires * 3600
        free = shutil.disk_usage(self.folder).free
        gone = [
            *files_to_purge(
                sizes,
                needed,
                written_before=now - expires if expires else 0.0,
                missing_space=settings.purge_remain_space * _GIB - free,
            )
        ]
        for name in gone:
            with self._changed:
                self._files.remove(name)
            (self.folder / name).unlink()
            reach(Failpoint.RELAY_PURGED)
        return gone

    def size(self) -> RelaySize | None:
        """Return the size for a report; None before the files are proven."""
        if self.folder is None or not self.proven:
            return None
        total = 0
        files = list(self._files)
        for name in files:
            with suppress(OSError):
                total += (self.folder / name).stat().st_size
        first = f"{files[0]}:{FILE_HEADER}" if files else ""
        end = f"{self._tail.file}:{self._tail.offset}"
        return RelaySize(total, len(files), first, end, self.error)
