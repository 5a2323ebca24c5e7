"""Which tasks have run here: a small file for each beside its socket, for `replicator status`.

It is written when a process begins to run the task and when it ends in order, so a process that
was killed is told from one that has ended. `replicator remove` forgets the task.
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
    """A task that a process has run here; ``ended`` is empty until that has ended in order.

    ``began`` and ``ended`` are UTC in ISO 8601.
    """

    task: str
    pid: int
    began: str
    ended: str = ""

    @property
    def since(self) -> datetime:
        """When it ended, or else when it began."""
        return datetime.fromisoformat(self.ended or self.began)


def note_begun(task: str) -> None:
    """Note that this process runs a task. Raises OSError, and ControlError as `runtime_dir`."""
    _write(TaskRecord(task, os.getpid(), now().isoformat()))


def note_ended(task: str) -> None:
    """Note that the task has ended in order. Raises as `note_begun`."""
    found = find_record(task) or TaskRecord(task, os.getpid(), now().isoformat())
    _write(replace(found, ended=now().isoformat()))


def forget_record(task: str) -> None:
    """Forget a task that is removed. Raises as `note_begun`."""
    path = socket_path(task)
    path.with_suffix(_SUFFIX).unlink(missing_ok=True)
    if not _is_locked(path.with_suffix(".lock")):
        path.unlink(missing_ok=True)


def find_record(task: str) -> TaskRecord | None:
    """The record of a task. Raises ControlError as `runtime_dir`."""
    return _read(socket_path(task).with_suffix(_SUFFIX))


def records() -> Iterator[TaskRecord]:
    """Those of all tasks of this user on this host. Raises ControlError as `runtime_dir`."""
    for path in sorted(runtime_dir().glob(f"*{_SUFFIX}")):
        found = _read(path)
        if found is not None:
            yield found


def was_killed(record: TaskRecord) -> bool:
    """Whether the process of a task is gone without having ended in order."""
    return not record.ended and not _is_locked(socket_path(record.task).with_suffix(".lock"))


def _write(record: TaskRecord) -> None:
    path = socket_path(record.task).with_suffix(_SUFFIX)
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps(asdict(record)), encoding="utf-8")
    fresh.replace(path)


def _read(path: Path) -> TaskRecord | None:
    """None also for a file that is no record: one of another version, say."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        record = TaskRecord(**values)
        return record if record.since and isinstance(record.pid, int) else None
    except (OSError, ValueError, TypeError):
        return None


def _is_locked(path: Path) -> bool:
    """Whether a process runs the task: it holds the lock for as long as it lives."""
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
