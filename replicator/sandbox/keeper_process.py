"""The process between the owner and its server: ends the server when the owner is gone.

Run by path (``python -I -S keeper_process.py PREFIX``), so it imports the standard library only.
See `replicator.sandbox.keeper` for the reasons and for the owner's side of the protocol: one JSON
list per line in, one JSON value per line out. The first line out is the folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

STOP_SECONDS = 30.0
"""Seconds after SIGTERM until a server that has not ended gets SIGKILL."""


class Child:
    """The one program that runs at a time, with all the processes of its session."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, argv: list[str], env: dict[str, str], log: str, stdin: str) -> int:
        """Start the program in a separate session; append its output to `log`."""
        with open(log, "ab") as out, open(stdin, "rb") as source:
            self._process = subprocess.Popen(
                argv,
                env=env,
                # Some servers make files in their working folder.
                cwd=self._folder,
                stdin=source,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit status, or None while the program runs."""
        return self._process.poll() if self._process else 0

    def wait(self, seconds: float) -> int | None:
        """Return the exit status, or None if the program still runs after so many seconds."""
        if self._process is None:
            return 0
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> int:
        """Send SIGKILL to the program and its children; it is reaped on return."""
        if self._process is None:
            return 0
        # Our unreaped child keeps its id from being used again. The group may outlive it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait()

    def stop(self) -> int:
        """Send SIGTERM, which lets a server shut down cleanly; SIGKILL if that takes too long."""
        if self._process is None or self._process.poll() is not None:
            return self.poll() or 0
        self._process.terminate()
        status = self.wait(STOP_SECONDS)
        return self.kill() if status is None else status


def answers(child: Child) -> Iterator[Any]:
    """Carry out the owner's requests until its end of the pipe is closed."""
    for line in sys.stdin:
        verb, *arguments = json.loads(line)
        if verb == "start":
            yield child.start(*arguments)
        elif verb == "poll":
            yield child.poll()
        elif verb == "wait":
            yield child.wait(*arguments)
        elif verb == "stop":
            yield child.stop()
        elif verb == "kill":
            yield child.kill()
        else:
            raise ValueError(f"unknown request {verb!r}")


def reply(answer: Any) -> None:
    """Write one line to the owner."""
    # Not through sys.stdout, which would complain at exit about output that nobody has read.
    os.write(1, (json.dumps(answer) + "\n").encode())


def main() -> None:
    """Keep a folder and a program until the owner goes, then remove both."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    folder = tempfile.mkdtemp(prefix="replicator-")
    child = Child(folder)
    try:
        # An owner that was killed no longer reads: the end, like the end of its requests.
        with contextlib.suppress(BrokenPipeError):
            reply(folder)
            for answer in answers(child):
                reply(answer)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child.kill()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
