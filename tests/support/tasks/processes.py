"""`replicator run` as a process of its own, for tests that kill it or look at its exit code."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import anyio

from actors.control.client import NotRunningError, ask
from actors.control.protocol import ControlError, Request
from replicator.binlog.positions.position import BinlogPosition
from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from replicator.status import TaskStatus
from tests.support.servers.binlog_ends import end_of
from tests.support.tasks.forked import ForkedProcess

PATIENCE = 120.0
LOOK_SECONDS = 0.05

COMMAND_LINE = ("-m", "cli")


class TaskProcess:
    """A running `replicator run`; its log is read as JSON lines."""

    def __init__(
        self, process: subprocess.Popen[bytes] | ForkedProcess, log: Path, env: Mapping[str, str]
    ) -> None:
        self.process = process
        self.log = log
        self.env = env

    @contextmanager
    def killed_at(
        self, point: Failpoint, *, time: int = 1, alone: bool = True
    ) -> Iterator[TaskProcess]:
        """Have the task killed when it reaches a step for that time from now on; wait for it.

        ``alone``: and for all processes that it had started, which else may meet its next start.
        """
        written = crash_file(self.log.parent).with_suffix(".written")
        written.write_text(f"{point.value}:{time}")
        written.replace(crash_file(self.log.parent))
        yield self
        assert self.process.wait(PATIENCE) == -signal.SIGKILL, self.tail()
        if alone:
            self.until_alone()

    def cli(self, *arguments: str, patience: float = PATIENCE) -> subprocess.CompletedProcess[str]:
        """Run another command of the CLI that finds this task, for so many seconds at most."""
        return subprocess.run(
            [sys.executable, "-m", "cli", *arguments],
            env=dict(self.env),
            capture_output=True,
            text=True,
            timeout=patience,
            check=False,
        )

    def events(self) -> list[dict[str, Any]]:
        """The log so far, without a line that is being written."""
        if not self.log.exists():
            return []
        *lines, _ = self.log.read_bytes().split(b"\n")
        return [json.loads(line) for line in lines if line]

    def until(self, condition: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
        """Look until the condition holds; fails when the process ends before, or in the end."""
        deadline = time.monotonic() + patience
        while not condition():
            assert self.process.poll() is None, f"the task ended before {what}:\n{self.tail()}"
            assert time.monotonic() < deadline, f"no {what} in {patience} s:\n{self.tail()}"
            time.sleep(LOOK_SECONDS)

    def until_logged(self, event: str, count: int = 1) -> None:
        """Wait until the log has an event so often."""
        self.until(
            lambda: sum(e["event"] == event for e in self.events()) >= count, f"event {event}"
        )

    def status(self, task: str) -> TaskStatus | None:
        """What `replicator status` shows; None while the task does not answer yet."""
        with mock.patch.dict(os.environ, XDG_RUNTIME_DIR=self.env["XDG_RUNTIME_DIR"]):
            try:
                return TaskStatus.from_dict(dict(anyio.run(ask, task, Request("status")).body))
            except (NotRunningError, ControlError):
                return None

    def until_state(self, task: str, state: str) -> TaskStatus:
        """Wait until the task is in this state; its status then."""
        found: list[TaskStatus] = []

        def reached() -> bool:
            status = self.status(task)
            if status is None or status.state != state:
                return False
            found.append(status)
            return True

        self.until(reached, f"state {state}")
        return found[-1]

    def until_applied(
        self, task: str, sources: Mapping[str, DatabaseServer], patience: float = PATIENCE
    ) -> None:
        """Wait until everything that the sources have logged up to now is applied."""
        ends = {source: end_of(server) for source, server in sources.items()}

        def applied() -> bool:
            status = self.status(task)
            if status is None:
                return False
            assert status.error is None or status.error.event == "task.restart", status.error
            places = {s.source: s.applied_position for s in status.sources}
            return all(
                places.get(source) and place_of(places[source]).key >= end.key
                for source, end in ends.items()
            )

        self.until(applied, "catching up", patience)

    def descendants(self) -> dict[int, str]:
        """The processes that the task has started, and these in turn, that still live.

        By process id, with the words of the command line.
        """
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) != self.process.pid:
                try:
                    stat = Path(entry, "stat").read_text()
                    command = Path(entry, "cmdline").read_text()
                except (FileNotFoundError, ProcessLookupError):
                    continue
                # After the name, which may hold anything: state, parent, group, session.
                fields = stat.rpartition(")")[2].split()
                if int(fields[3]) == self.process.pid and fields[0] != "Z":
                    found[int(entry.name)] = command.replace("\0", " ")
        return found

    def until_alone(self) -> None:
        """Wait until no process is left that the ended task had started."""
        deadline = time.monotonic() + PATIENCE
        while left := self.descendants():
            assert time.monotonic() < deadline, f"processes are left behind: {left}"
            time.sleep(LOOK_SECONDS)

    def console(self) -> str:
        """What the task wrote to the terminal so far."""
        return self.log.with_name("console.log").read_text()

    def tail(self) -> str:
        """The end of the log, for messages."""
        return "\n".join(map(str, self.events()[-15:]))


STARTED: list[TaskProcess] = []
"""The processes of the tests so far."""


@contextmanager
def task_process(
    task_file: Path,
    folder: Path,
    *options: str,
    env: Mapping[str, str] | None = None,
    program: tuple[str, str] = COMMAND_LINE,
    forked: bool = True,
) -> Iterator[TaskProcess]:
    """Run a task until the end of the block; then it is killed if it still runs.

    It is a `ForkedProcess`, except with a ``program`` or an ``env`` of its own, which a process
    that has imported the program already may not heed.

    ``program``: what Python executes, where that is not the command line as it is. ``forked``:
    False for a test of its start or its memory, which a fork shares with others.
    """
    # Not below the test's folder: the path of a Unix socket must be short.
    name = hashlib.sha256(str(folder).encode()).hexdigest()[:12]
    runtime = Path(tempfile.gettempdir(), f"rt-{name}")
    runtime.mkdir(mode=0o700, exist_ok=True)
    crash_file(folder).unlink(missing_ok=True)
    full_env = {
        **os.environ,
        "XDG_RUNTIME_DIR": str(runtime),
        "TMPDIR": str(folder),
        "REPLICATOR_CRASH_AT": str(crash_file(folder)),
        **(env or {}),
    }
    log = folder / "task.log"
    arguments = ["run", str(task_file), "--log-file", str(log), *options]
    process: subprocess.Popen[bytes] | ForkedProcess
    if forked and program == COMMAND_LINE and not env:
        process = ForkedProcess(arguments, full_env, folder / "console.log")
    else:
        with (folder / "console.log").open("ab") as console:
            process = subprocess.Popen(
                [sys.executable, *program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                env=full_env,
                start_new_session=True,
            )
    plain = {k: v for k, v in full_env.items() if not k.startswith("REPLICATOR_CRASH")}
    STARTED.append(TaskProcess(process, log, plain))
    try:
        yield STARTED[-1]
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@contextmanager
def killed_at(
    point: Failpoint,
    task_file: Path,
    folder: Path,
    *,
    time: int = 1,
    alone: bool = True,
) -> Iterator[TaskProcess]:
    """Run a task that `TaskProcess.killed_at` has killed."""
    with (
        task_process(task_file, folder) as task,
        task.killed_at(point, time=time, alone=alone),
    ):
        yield task


def crash_file(folder: Path) -> Path:
    """The file that says where a task of this folder is killed."""
    return folder / "crash-at"


def place_of(position: str) -> BinlogPosition:
    """A position of the status."""
    file, _, offset = position.rpartition(":")
    return BinlogPosition(file, int(offset))
