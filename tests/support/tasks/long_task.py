"""A task that goes on from test to test, each of which leaves target and shards equal."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from pymysql.err import OperationalError, ProgrammingError

from replicator.status import Fault
from tests.support.tasks.processes import PATIENCE, TaskProcess, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task


class LongTask:
    """The task of `Shards`, in a process that is started when there is none."""

    def __init__(self, shards: Shards, folder: Path) -> None:
        self.shards = shards
        self.name = shards.database
        self.values = shards.task()
        self._folder = folder
        self._options: tuple[str, ...] = ()
        self._process: TaskProcess | None = None
        self._resources = ExitStack()

    @property
    def file(self) -> Path:
        """The task file."""
        return write_task(self._folder, self.values)

    @property
    def task(self) -> TaskProcess:
        """The process; running, if it had to be started."""
        if self._process is None or self._process.process.poll() is not None:
            self.end()
            context = task_process(self.file, self._folder, *self._options)
            self._process = self._resources.enter_context(context)
            self._options = ()
            self._process.until_state(self.name, "running")
        return self._process

    def end(self) -> None:
        """Kill the process."""
        self._resources.close()
        self._process = None

    def start_anew(self, starts: Mapping[str, Mapping[str, Any]], *options: str) -> None:
        """Forget everything and go on from other positions, by source, in another process."""
        process = self._process
        if process is not None and process.process.poll() is None:
            assert process.cli("stop", self.name).returncode == 0
            process.process.wait(PATIENCE)
        for instance in self.values["mysql-instances"]:
            instance["meta"] = dict(starts[instance["source-id"]])
        self._options = ("--remove-meta", *options)
        assert self.task.process.poll() is None

    def logged(self, event: str) -> int:
        """How often the log has an event."""
        return sum(e["event"] == event for e in self.task.events())

    def fault(self) -> Fault:
        """What the task, or a part of it, is blocked by; waits for that.

        A restart that the task makes by itself is no fault.
        """
        found: list[Fault] = []

        def blocked() -> bool:
            status = self.task.status(self.name)
            if status is None or status.state not in ("paused", "running"):
                return False
            found.extend([status.error] if status.error else [])
            found.extend(part.error for part in status.blocked if part.error)
            found[:] = [fault for fault in found if fault.event != "task.restart"]
            return bool(found)

        self.task.until(blocked, "a fault")
        return found[0]

    def resume(self) -> None:
        """Let the task, or what is blocked of it, go on."""
        answer = self.task.cli("resume", self.name)
        assert answer.returncode == 0, answer.stderr

    def reload(self) -> None:
        """Let the task read its changed file."""
        answer = self.task.cli("reload", str(self.file))
        assert answer.returncode == 0, answer.stderr

    def copy_first(self) -> None:
        """Let the task copy first; for some time after that, it is in safe mode by itself."""
        self.values["task-mode"] = "all"
        for instance in self.values["mysql-instances"]:
            del instance["meta"]

    def until_equal(self) -> None:
        """Wait until the target has exactly the rows of the shards; it may not be there yet."""

        def equal() -> bool:
            with suppress(AssertionError, ProgrammingError, OperationalError):
                self.shards.assert_equal()
                return True
            return False

        self.task.until(equal, "equal")

    def assert_equal(self) -> None:
        """Wait until all is applied that has been done up to now; then compare."""
        self.task.until_applied(self.name, self.shards.sources)
        self.shards.assert_equal()
