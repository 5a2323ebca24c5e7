"""Reads the records of a log line by line: JSON as `replicator run` writes it, among other lines.

The log is read as a stream, so it may have any length. A line that is no record is only counted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO

LONGEST_LINE = 4 << 20
"""Maximum length of a line in bytes; each piece of a longer line counts as a line without a
record."""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One record: its time, level and event, and its other fields as they are in the log."""

    at: datetime
    level: str
    event: str
    fields: Mapping[str, object]

    def text(self, name: str) -> str:
        """Return a field as text; empty if it is missing or null."""
        value = self.fields.get(name)
        if value is None:
            return ""
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    def number(self, name: str) -> float | None:
        """Return a field as a number; None if it is none."""
        value = self.fields.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        try:
            number = float(value)
        except OverflowError:
            return None
        return number if math.isfinite(number) else None

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a field that is a list, as texts; empty if it is no list."""
        value = self.fields.get(name)
        return tuple(map(str, value)) if isinstance(value, list) else ()


class LogReader:
    """Reads the records of one task from ``since`` on (None: from the beginning).

    ``lines``, ``unreadable``, ``earlier`` and ``others`` (by task) count what it has read so far.
    """

    def __init__(self, task: str, since: datetime | None = None) -> None:
        self._task, self._since = task, since
        self.lines = self.unreadable = self.earlier = 0
        self.others: dict[str, int] = {}

    def records(self, lines: Iterable[bytes]) -> Iterator[LogRecord]:
        """Yield the records in the order of the log."""
        for line in lines:
            if not (line := line.strip()):
                continue
            self.lines += 1
            record = _record(line)
            if record is None:
                self.unreadable += 1
            elif self._since is not None and record.at < self._since:
                self.earlier += 1
            elif (task := record.fields.get("task")) not in (None, self._task):
                # No real log has this many tasks; the counts of one with more would be useless.
                if len(self.others) < 1000:
                    self.others[str(task)] = self.others.get(str(task), 0) + 1
            else:
                yield record


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file, in pieces of at most `LONGEST_LINE`."""
    return iter(lambda: file.readline(LONGEST_LINE), b"")


def _record(line: bytes) -> LogRecord | None:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    event, level = fields.get("event"), fields.get("level")
    if not isinstance(event, str) or not isinstance(level, str):
        return None
    at = _moment(fields.get("timestamp"))
    return None if at is None else LogRecord(at, level, event, fields)


def _moment(text: object) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
