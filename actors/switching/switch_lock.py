"""Allows one `replicator switch` per task at a time: a second one would undo what the first set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from actors.control.lock_file import LockFile
from actors.control.protocol import ControlError, socket_path


@contextmanager
def only_switch(task_name: str) -> Iterator[None]:
    """Prevent other switches of the task until this process ends.

    Raises ControlError if another one runs.
    """
    with closing(LockFile(socket_path(task_name).with_suffix(".switch"))) as lock:
        if not lock.acquire():
            raise ControlError(
                f"another `replicator switch` of task {task_name} is at work"
                f" (process {lock.holder()}); Ctrl-C aborts it"
            )
        yield
