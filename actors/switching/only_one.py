"""One `replicator switch` for a task at a time: another one would undo what the first has set."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from actors.control.protocol import ControlError, socket_path


@contextmanager
def only_switch(task_name: str) -> Iterator[None]:
    """Keep other switches of the task away, until this process ends.

    Raises ControlError if another one runs.
    """
    path = socket_path(task_name).with_suffix(".switch")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            pid = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            raise ControlError(
                f"another `replicator switch` of task {task_name} is at work (process {pid});"
                " Ctrl-C aborts it"
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        # The file stays: removing it would let two processes lock two files of one name.
        os.close(descriptor)
