"""The process between the owner and its server, which ends the server when the owner has ended.

It is run by its path (``python -I -S keeper_process.py PREFIX``), so it imports only the standard
library. `replicator.sandbox.keeper` gives the reasons for this process and the owner's side of the
protocol. Each line of input is a JSON list, and each line of output a JSON value. The first line of
output is the folder.
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
    """The program that runs, at most one at a time, with all processes of its session."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, argv: list[str], env: dict[str, str], log: str, stdin: str) -> int:
        """Start the program in a separate session; append its output to `log`."""
        with open(log, "ab") as out, open(stdin, "rb") as source:
            self._process = subprocess.Popen(
                argv,
                env=env,
                # Some servers create files in their working folder.
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
        """Return the exit status, or None if the program runs for ``seconds`` longer."""
        if self._process is None:
            return 0
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> int:
        """Send SIGKILL to the program and its children; the program has been reaped on return."""
        if self._process is None:
            return 0
        # An unreaped child keeps its process id reserved. Its process group may live longer.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait()

    def stop(self) -> int:
        """Send SIGTERM, so that a server shuts down cleanly; after `STOP_SECONDS`, SIGKILL."""
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
    # sys.stdout would complain at exit about output that was never read.
    os.write(1, (json.dumps(answer) + "\n").encode())


def main() -> None:
    """Keep a folder and a program until the owner ends, then remove both."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    folder = tempfile.mkdtemp(prefix="replicator-")
    child = Child(folder)
    try:
        # If the owner was killed, it no longer reads: that ends this process like closed input.
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
