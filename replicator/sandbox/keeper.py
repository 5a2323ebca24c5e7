"""A folder and a program that end with this process, however this process ends.

A keeper process runs between us and a server. It makes the folder, starts the server, and reads our
requests from a pipe. When the pipe closes (we closed it, or we ended for any reason, even SIGKILL),
it kills the server and removes the folder. Simpler methods do not work:

* ``atexit`` and signal handlers do not run on SIGKILL;
* PR_SET_PDEATHSIG is cleared when the server changes its user, is sent when the *thread* that
  started the server ends, and removes no folder;
* a watchdog that gets a process id could get it too late, and kill another process that has got the
  same id since. The keeper is the server's parent, so it always has the right id.

The keeper has a separate session, so Ctrl-C and signals to our process group do not reach it. A
child that was forked without exec keeps our end of the pipe open: the keeper then cleans up only
after this child has ended, too.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self


class SandboxError(Exception):
    """A private server, or its keeper process, is not in the necessary state."""


class ServerUnavailableError(SandboxError):
    """The server's program is missing on this machine; the message says what to install."""


class ServerStartError(SandboxError):
    """Starting the server, or creating its data folder, failed; the message ends with its log."""


class ServerDiedError(SandboxError):
    """A server ended without a request; the message ends with its log."""


class Keeper:
    """Owns `folder` (new, empty, private) and at most one running program."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("keeper_process.py")
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.folder = Path(self._answer())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(
        self, argv: Sequence[str], env: Mapping[str, str], log: Path, stdin: Path | None = None
    ) -> int:
        """Start a program in the folder, write its output to `log`, and return its process id."""
        pid = self._ask("start", list(argv), dict(env), str(log), str(stdin or "/dev/null"))
        return int(pid)

    def running(self) -> bool:
        """Whether the program that was started last still runs."""
        return self._ask("poll") is None

    def wait(self, seconds: float) -> int | None:
        """Return the program's exit status; None if it still runs after this number of seconds."""
        status: int | None = self._ask("wait", seconds)
        return status

    def stop(self) -> None:
        """Stop the program with SIGTERM, or with SIGKILL if it has not ended after 30 s."""
        self._ask("stop")

    def kill(self) -> None:
        """Stop the program with SIGKILL."""
        self._ask("kill")

    def close(self) -> None:
        """Kill the program and remove the folder; return when both are done. Idempotent.

        Raises SandboxError if the keeper could not do it.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # The buffer may still contain a request that a killed keeper never read.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        status = self._process.wait()
        self._process.stdout.close()
        if status != 0:
            raise SandboxError(
                f"The keeper process of {self.folder} ended with status {status}, its error is on"
                " standard error. Its server may still run: look for one with that folder among"
                " its arguments, end it, and remove the folder."
            )

    def _ask(self, *request: Any) -> Any:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise SandboxError(f"{request[0]}: the server's keeper process has ended") from error
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SandboxError(
                "The keeper process of a private server ended unexpectedly"
                f" (exit status {self._process.wait()}); its error is on standard error."
            )
        return json.loads(line)
