"""The relay log of a source: the state that its writer and its readers share.

The writer copies the source's binlog into files, in a separate thread and over a separate
connection. After the writer has proven that the files belong to the source's present binlog, a
reader gets from them the same packets as from the source. It requests all other packets from the
source.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from math import inf
from pathlib import Path

import structlog

from replicator.binlog.errors import StreamLostError
from replicator.binlog.positions.position import FILE_HEADER, BinlogPosition
from replicator.binlog.relay.relay_files import (
    binlog_files,
    files_to_purge,
    former_files,
)
from replicator.failpoints import Failpoint, reach
from replicator.relay_status import RelayStatus


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """The settings of a relay, as in DM's source file.

    Attributes:
        source: the name of the source, for the log.
        folder: the parent of the servers' folders.
        enabled: whether the relay is written from the start on, or otherwise only when it is
            needed.
        purge_interval: seconds between two purges.
        purge_expires: hours after which a file that is not needed is deleted; 0 for never.
        purge_remain_space: GiB; if less is free, files that are not needed are deleted.
    """

    source: str
    folder: Path
    enabled: bool = True
    purge_interval: int = 3600
    purge_expires: int = 0
    purge_remain_space: int = 15


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a relay, with the last heartbeat at this end.

    ``beats``: the number of all heartbeats. ``interruptions``: how often writing was interrupted.
    """

    at: BinlogPosition
    beat: bytes = b""
    beats: int = 0
    interruptions: int = 0


class RelayLog:
    """The state of a relay, under one lock. Its methods may be called in any thread.

    Attributes:
        error: why nothing is written now.
        writing: whether there is a writer.
        proven: whether the files are known to belong to the source's present binlog.
        unusable: why readers use the source: the relay has ended, or a file can't be read.
        tail: the present end.
    """

    def __init__(self, settings: RelaySettings) -> None:
        self.settings = settings
        self.error = ""
        self.writing = False
        self.proven = False
        self.unusable = ""
        self.tail = Tail(BinlogPosition("", 0))
        self.folder: Path | None = None
        self._log = structlog.get_logger().bind(source=settings.source)
        self._lock: int | None = None
        self._changed = threading.Condition()
        self._files: list[str] = []
        self._interruption = ""
        self._purged_at = 0.0

    def open(self, name: str) -> Path:
        """Open a server's folder for this process alone. Raises OSError."""
        folder = self.settings.folder / name
        folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        self.unlock()
        self._lock = os.open(self.settings.folder / "lock", os.O_RDWR | os.O_CREAT, 0o640)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.folder = folder
        return folder

    def distrust(self, reason: str) -> None:
        """Make readers use the source from now on; waiting readers are interrupted."""
        self._log.warning("relay.failed", error=reason)
        self.unusable = reason
        self.wake()

    def unlock(self) -> None:
        """Release the lock on the folder, so that another process can use it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def set_aside(self, reason: str) -> None:
        """Begin with an empty folder; the former folder is renamed. Raises OSError."""
        assert self.folder is not None
        aside = self.folder.with_name(f"{self.folder.name}.former-{time.time_ns()}")
        self.folder.rename(aside)
        self.folder.mkdir(mode=0o750)
        self._log.warning("relay.set-aside", folder=str(aside), error=reason)

    def advance(self, file: str, offset: int) -> None:
        """Record that the file is the source's, and has complete events up to this offset."""
        assert self.folder is not None
        with self._changed:
            if not self.proven:
                self._files = binlog_files(self.folder)
            if self._files[-1:] != [file]:
                self._files = [*takewhile(lambda name: name != file, self._files), file]
            self.proven, self.error = True, ""
            self._move(replace(self.tail, at=BinlogPosition(file, offset), beat=b""))

    def heartbeat(self, event: bytes) -> None:
        """Record that the source has reported that it has no more events."""
        with self._changed:
            self._move(replace(self.tail, beat=event, beats=self.tail.beats + 1))

    def interrupt(self, reason: str, *, failed: bool) -> None:
        """Record that writing is interrupted: readers at the end must connect again.

        Args:
            failed: whether reconnecting does not help, so that readers use the source in the
                meantime.
        """
        with self._changed:
            self._interruption = reason
            self.error = reason if failed else ""
            interruptions = self.tail.interruptions + 1
            self._move(replace(self.tail, beat=b"", interruptions=interruptions))

    def _move(self, tail: Tail) -> None:
        self.tail = tail
        self._changed.notify_all()

    def wake(self) -> None:
        """Make waiting readers check whether they were closed."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, seen: Tail, timeout: float) -> None:
        """Wait until the end differs from ``seen``, or `wake` is called.

        Raises StreamLostError if writing was interrupted, or the files can't be used.
        """
        with self._changed:
            if self.tail == seen and not (self.error or self.unusable):
                self._changed.wait(timeout)
            interrupted = self.tail.interruptions != seen.interruptions
            if interrupted or self.error or self.unusable:
                raise StreamLostError(f"The relay was interrupted. {self._interruption}".rstrip())

    def has(self, position: BinlogPosition) -> bool:
        """Return whether readers get the events after a position from the relay.

        If writing has failed, only events of earlier files.
        """
        with self._changed:
            if not self.proven or self.unusable or not self._files:
                return False
            if self._files[0].rpartition(".")[0] != position.file.rpartition(".")[0]:
                return False
            if position.sequence < self.tail.at.sequence:
                return position.file in self._files
            return not (self.error or (self.tail.beat and position.key > self.tail.at.key))

    def reached(self, position: BinlogPosition) -> bool:
        """Return whether the files have reached a position.

        Raises StreamLostError if they never will.
        """
        with self._changed:
            if position.file in self._files and position.key <= self.tail.at.key:
                return True
            if self.tail.beat or position.sequence < self.tail.at.sequence:
                raise StreamLostError(f"The relay does not have {position}.")
            return False

    @property
    def undecided(self) -> bool:
        """Whether writing has begun, but it is not known yet whether the files are the source's."""
        return self.writing and not (self.proven or self.error or self.unusable)

    def decided(self, timeout: float) -> bool:
        """Wait until it is known whether the files are the source's; return whether it is known.

        Raises StreamLostError if the source can't be reached.
        """
        with self._changed:
            before = self.tail.interruptions
            if self.undecided:
                self._changed.wait(timeout)
            if self.undecided and self.tail.interruptions != before:
                raise StreamLostError(self._interruption)
            return not self.undecided

    def next_file(self, file: str) -> str:
        """Return the file after one that is not the last. Raises StreamLostError if it is gone."""
        with self._changed:
            if file not in self._files[:-1]:
                raise StreamLostError(f"The relay no longer has the file {file}.")
            return self._files[self._files.index(file) + 1]

    def purge(self, needed: BinlogPosition, *, every: bool = False) -> list[str]:
        """Delete files before ``needed``, or of former servers and binlogs, as configured.

        Returns their names. Does nothing if no purge is due. Raises OSError.

        Args:
            every: whether to delete all of these files now, regardless of the settings.
        """
        settings, now = self.settings, time.time()
        due = every or self.error or now >= self._purged_at + settings.purge_interval
        if self.folder is None or not self.proven or not due:
            return []
        self._purged_at = now
        expires = settings.purge_expires * 3600
        gone = files_to_purge(
            former_files(self.folder),
            [self.folder / name for name in self._files],
            needed,
            written_before=inf if every else now - expires if expires else 0.0,
            missing_space=(settings.purge_remain_space << 30) - shutil.disk_usage(self.folder).free,
        )
        with self._changed:
            self._files = [name for name in self._files if self.folder / name not in gone]
        for path in gone:
            path.unlink()
            with suppress(OSError):
                # A former folder, if it is empty.
                path.parent.rmdir()
            reach(Failpoint.RELAY_PURGED)
        return [path.name for path in gone]

    def size(self) -> RelayStatus | None:
        """Return the size for a report; None before the files are proven."""
        if self.folder is None or not self.proven:
            return None
        total = 0
        files = list(self._files)
        for name in files:
            with suppress(OSError):
                total += (self.folder / name).stat().st_size
        first = f"{files[0]}:{FILE_HEADER}"
        error = self.error or self.unusable
        return RelayStatus(len(files), total, first, str(self.tail.at), error=error)
