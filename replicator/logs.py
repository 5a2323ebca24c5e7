"""The log of a process: JSON lines for machines, readable text on a terminal.

Every record has ``timestamp`` (UTC, ISO 8601), ``level`` and ``event`` (a stable dotted name such
as ``source.connected``; `replicator.events` lists all of them). If they apply, it also has
``task``, ``source``, ``target``, ``position`` and ``version``. Values of keys that hold secrets are
masked.

A log file that can't be written is reported once, and does not stop the task.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from io import TextIOWrapper
from itertools import pairwise
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Any, TextIO

import structlog
from structlog.typing import ExcInfo, Processor

from replicator.printable_text import printable_text, safe_json, shown_line


class LogFile(WatchedFileHandler):
    """Appends to a file, and opens it again when a rotation has renamed it.

    While the file can't be written (the disk is full, the folder is missing), lost records are
    counted, and each record is another attempt. Only the owner and the group can read a new file,
    because it contains names of tables, statements and keys. Raises OSError if the file can't be
    opened.

    Args:
        report_lost: called with the reason when the first record is lost; it may log.
        report_back: called with the number of lost records when writing works again; it may log.
        most_bytes: if set, rename the file when it has this size. Older files are numbered, and
            `KEPT_FILES` of them are kept.
    """

    def __init__(
        self,
        path: Path,
        report_lost: Callable[[str], None],
        report_back: Callable[[int], None],
        most_bytes: int = 0,
    ) -> None:
        super().__init__(path, encoding="utf-8")
        self._report_lost, self._report_back = report_lost, report_back
        self._lost = 0
        self._most = most_bytes

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
            self._report_back(lost)

    def _write(self, line: str) -> None:
        self.reopenIfNeeded()
        if self.stream is None:
            self.stream = self._open()
            self._statstream()
        if self._lost and self._is_torn():
            line = f"\n{line}"
        self.stream.write(line)
        self.stream.flush()
        if self._most and os.fstat(self.stream.fileno()).st_size >= self._most:
            self._rotate()

    def _rotate(self) -> None:
        names = [self.baseFilename, *(f"{self.baseFilename}.{n}" for n in range(1, KEPT_FILES + 1))]
        for newer, older in reversed([*pairwise(names)]):
            # A file that can't be renamed only grows, so no record is lost.
            with suppress(OSError):
                os.replace(newer, older)

    def _is_torn(self) -> bool:
        """Return whether a full disk has left an incomplete line at the end."""
        with open(self.baseFilename, "rb") as file:
            if not file.seekable() or not file.seek(0, os.SEEK_END):
                return False
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"

    def _fail(self, error: OSError) -> None:
        # Buffered text would be retried, and would grow, with each record.
        if self.stream is not None:
            with suppress(OSError):
                self.stream.close()
        self.stream = None
        first, self._lost = not self._lost, self._lost + 1
        if first:
            self._report_lost(error.strerror or str(error))


KEPT_FILES = 5
"""Number of older log files that a rotation by size keeps; ``FILE.1`` is the newest one."""

_SECRET_WORDS = ("password", "passwd", "secret", "token", "private_key")
_MASK = "***"
_CHATTY_LIBRARIES = ("py4j", "asyncio", "pyspark")


_LOGGED_ONCE = frozenset(
    {
        "route.unused",
        "source.no-tables",
        "source.binlogs-unknown",
        "sequence.not-replicated",
        "buckets.kept",
        "member.unknown",
        "schema.older-rows",
        "online-ddl.unclear",
        "ddl.not-executed",
        "ddl.override",
    }
)
"""Warnings about a state or a binlog position, which every restart of an actor would repeat."""

_KEPT = 10_000
"""Number of remembered warnings; an older warning may be logged again."""


class LogFileError(Exception):
    """The log file can't be written."""


def configure(
    level: str = "info",
    log_file: Path | None = None,
    *,
    task: str = "",
    stream: TextIO | None = None,
    most_bytes: int = 0,
) -> None:
    """Send the records of structlog and of the standard library to the given outputs.

    A later call replaces an earlier one. Raises LogFileError if the file can't be opened.

    Args:
        level: ``debug``, ``info``, ``warning`` or ``error``.
        log_file: the file to append to, always in JSON lines.
        task: the task's name, which is added to every record from any thread.
        stream: gets readable text if it is a terminal, JSON lines otherwise; by default the
            standard error output.
        most_bytes: rotate the log file at this size, as `LogFile` does.
    """
    out = sys.stderr if stream is None else stream
    console = _Console(_PresentStderr() if stream is None else stream)
    console.setFormatter(_formatter(task, readable=out.isatty()))
    handlers: list[logging.Handler] = [console]
    if log_file is not None:
        handlers.append(_file_handler(log_file, task, console, most_bytes))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
        old.close()
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    for name in _CHATTY_LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            _once(),
            *_shared(task),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


class _Console(logging.StreamHandler[Any]):
    """The standard error output. If it fails, the record is lost, as there is no other output."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


class _PresentStderr(io.TextIOBase):
    """The present value of `sys.stderr`.

    A progress bar replaces it to show records above the bar.
    """

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def _file_handler(
    path: Path, task: str, console: logging.Handler, most_bytes: int
) -> logging.Handler:
    # The file's handler can't log its own failure to the file.
    apart = logging.getLogger("replicator.logs.file")
    apart.propagate = False
    apart.handlers = [console]

    def report_lost(reason: str) -> None:
        log = structlog.get_logger(apart.name)
        log.warning("log.file-lost", file=str(path), reason=reason)

    def report_back(records: int) -> None:
        structlog.get_logger().warning("log.file-back", file=str(path), lost_records=records)

    try:
        handler = LogFile(path, report_lost, report_back, most_bytes)
    except OSError as error:
        raise LogFileError(
            f"the log file {path} can't be written: {error.strerror or error}. "
            "Name another with --log-file, or make its folder writable"
        ) from error
    handler.setFormatter(_formatter(task, readable=False))
    return handler


def _once() -> Processor:
    """Return a processor that drops records that were logged before with the same content."""
    known: dict[str, None] = {}

    def leave_out(
        logger: Any, method: str, record: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        if record.get("event") in _LOGGED_ONCE:
            said = repr(sorted(record.items(), key=lambda item: item[0]))
            if said in known:
                raise structlog.DropEvent
            known[said] = None
            if len(known) > _KEPT:
                del known[next(iter(known))]
        return record

    return leave_out


def _shared(task: str) -> list[Processor]:
    def add_task(
        logger: Any, method: str, record: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        record.setdefault("task", task)
        return record

    return [
        *([add_task] if task else []),
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _mask_secrets,
    ]


def _formatter(task: str, *, readable: bool) -> structlog.stdlib.ProcessorFormatter:
    tail: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if readable:
        # The plain form, because the rich form shows local variables, which can hold passwords and
        # rows.
        tail += [
            _in_one_line,
            structlog.dev.ConsoleRenderer(exception_formatter=_plain_traceback),
        ]
    else:
        tail += [structlog.processors.format_exc_info, _as_json]
    return structlog.stdlib.ProcessorFormatter(processors=tail, foreign_pre_chain=_shared(task))


_json = structlog.processors.JSONRenderer(default=str, ensure_ascii=False)


def _as_json(logger: Any, method: str, record: MutableMapping[str, Any]) -> str:
    return safe_json(str(_json(logger, method, record)))


def _in_one_line(
    logger: Any, method: str, record: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Keep names and values from starting new lines or controlling the terminal."""
    lines = ("exception", "stack")
    return {
        shown_line(key): _shown(value, printable_text if key in lines else shown_line)
        for key, value in record.items()
    }


def _shown(value: Any, shown: Callable[[str], str]) -> Any:
    """Return a value in printable form.

    Of values other than text, `repr`, which has escapes itself.
    """
    return shown(value) if isinstance(value, str) else value


def _plain_traceback(stream: TextIO, exc_info: ExcInfo) -> None:
    text = io.StringIO()
    structlog.dev.plain_traceback(text, exc_info)
    stream.write(printable_text(text.getvalue()))


def _mask_secrets(
    logger: Any, method: str, record: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    for key, value in record.items():
        record[key] = _masked(key, value)
    return record


def _masked(key: str, value: Any) -> Any:
    if any(word in key.lower().replace("-", "_") for word in _SECRET_WORDS):
        return _MASK
    if isinstance(value, dict):
        return {inner: _masked(str(inner), held) for inner, held in value.items()}
    return value
