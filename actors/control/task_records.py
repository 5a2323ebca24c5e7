"""Records of the tasks that have run here: small files beside the sockets for `replicator status`.

A record is written when a process begins to run the task and when it ends properly. So a process
that was killed is distinguished from one that has ended. `replicator remove` deletes the record.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from actors.control.protocol import runtime_dir, socket_path
from replicator.status import now

_SUFFIX = ".task"


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A task that a process has run here; ``ended`` is empty until the process has ended properly.

    ``began`` and ``ended`` are UTC in ISO 8601.
    """

    task: str
    pid: int
    began: str
    ended: str = ""

    @property
    def since(self) -> datetime:
        """Return when the task ended, or when it began if it has not ended."""
        return datetime.fromisoformat(self.ended or self.began)


def note_begun(task: str) -> None:
    """Record that this process runs a task.

    Raises OSError, and the same errors as `runtime_dir`.
    """
    _write(TaskRecord(task, os.getpid(), now().isoformat()))


def note_ended(task: str) -> None:
    """Record that the task has ended properly. Raises the same errors as `note_begun`."""
    found = find_record(task) or TaskRecord(task, os.getpid(), now().isoformat())
    _write(replace(found, ended=now().isoformat()))


def forget_record(task: str) -> None:
    """Delete the record of a removed task. Raises the same errors as `note_begun`."""
    path = socket_path(task)
    path.with_suffix(_SUFFIX).unlink(missing_ok=True)
    if not _is_locked(path.with_suffix(".lock")):
        path.unlink(missing_ok=True)


def find_record(task: str) -> TaskRecord | None:
    """Return the record of a task. Raises the same errors as `runtime_dir`."""
    return _read(socket_path(task).with_suffix(_SUFFIX))


def records() -> Iterator[TaskRecord]:
    """Yield the records of all tasks of this user on this host.

    Raises the same errors as `runtime_dir`.
    """
    for path in sorted(runtime_dir().glob(f"*{_SUFFIX}")):
        found = _read(path)
        if found is not None:
            yield found


def was_killed(record: TaskRecord) -> bool:
    """Return whether the process of a task has disappeared without having ended properly."""
    return not record.ended and not _is_locked(socket_path(record.task).with_suffix(".lock"))


def _write(record: TaskRecord) -> None:
    path = socket_path(record.task).with_suffix(_SUFFIX)
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps(asdict(record)), encoding="utf-8")
    fresh.replace(path)


def _read(path: Path) -> TaskRecord | None:
    """Return the record in a file; None also for a file with another content or version."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        record = TaskRecord(**values)
        return record if record.since and isinstance(record.pid, int) else None
    except (OSError, ValueError, TypeError):
        return None


def _is_locked(path: Path) -> bool:
    """Return whether a process runs the task: a running process holds the lock."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
