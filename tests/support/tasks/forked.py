"""Runs the command line in processes that are forked from one that has imported it.

A start is shorter by the time that Python needs to import the program.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

IMPORTED = [
    "cli",
    "actors.task.foreground",
    "replicator.pipeline.apply.batch",
    "replicator.pipeline.worker_daemon",
    "replicator.pipeline.spark.worker_fork",
    "tests.support.tasks.forked",
]


class ForkedProcess:
    """The command line with these arguments; has what tests use of `subprocess.Popen`."""

    def __init__(self, arguments: Sequence[str], env: Mapping[str, str], console: Path) -> None:
        context: ForkServerContext = get_context("forkserver")
        context.set_forkserver_preload(IMPORTED)
        self._process: ForkServerProcess = context.Process(
            target=run_forked, args=(list(arguments), dict(env), str(console))
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends. Raises TimeoutExpired."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("cli", timeout or 0.0)
        return code

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()

    def terminate(self) -> None:
        """Ask it to stop."""
        self._process.terminate()

    def send_signal(self, number: int) -> None:
        """Send a signal to it."""
        os.kill(self.pid, number)


def run_forked(arguments: list[str], env: dict[str, str], console: str) -> None:
    """Become the command line, in a session of its own."""
    import cli

    os.setsid()
    written = os.open(console, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(written, 1)
    os.dup2(written, 2)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["cli", *arguments]
    cli.main()
