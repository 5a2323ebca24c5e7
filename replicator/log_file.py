"""The log file of a process: that it can't be written is told once, and does not stop the task."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler
from pathlib import Path


class LogFile(WatchedFileHandler):
    """Appends to a file, which is opened anew when a rotation has renamed it.

    While it can't be written (a full disk, a folder that is gone) records are counted, and each
    tries anew. ``tell_lost`` is called with the reason when that begins, ``tell_back`` with the
    number of lost records when it ends; it may log. A file that it makes is for its owner and group
    alone: it tells of tables, statements and keys. Raises OSError where the file can't be opened.
    """

    def __init__(
        self, path: Path, tell_lost: Callable[[str], None], tell_back: Callable[[int], None]
    ) -> None:
        super().__init__(path, encoding="utf-8")
        self._tell_lost, self._tell_back = tell_lost, tell_back
        self._lost = 0

    def _open(self) -> TextIOWrapper:
        handle = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
        made = os.fdopen(handle, self.mode, encoding=self.encoding)
        assert isinstance(made, TextIOWrapper)
        return made

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record. Called by `logging`."""
        try:
            line = f"{self.format(record)}\n"
        except Exception:  # noqa: BLE001  (as every handler of logging)
            self.handleError(record)
            return
        try:
            self._write(line)
        except OSError as error:
            self._fail(error)
            return
        if self._lost:
            lost, self._lost = self._lost, 0
            self._tell_back(lost)

    def _write(self, line: str) -> None:
        self.reopenIfNeeded()
        if self.stream is None:
            self.stream = self._open()
            self._statstream()
        if self._lost and self._is_torn():
            line = f"\n{line}"
        self.stream.write(line)
        self.stream.flush()

    def _is_torn(self) -> bool:
        """Whether a full disk has left a part of a line at the end."""
        with open(self.baseFilename, "rb") as file:
            if not file.seekable() or not file.seek(0, os.SEEK_END):
                return False
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"

    def _fail(self, error: OSError) -> None:
        # What is buffered would be tried again, and grow, with each record.
        if self.stream is not None:
            with suppress(OSError):
                self.stream.close()
        self.stream = None
        first, self._lost = not self._lost, self._lost + 1
        if first:
            self._tell_lost(error.strerror or str(error))
