"""A merge task, for programs and for the commands of the command line.

The methods import modules that take long to import: `status` needs neither Spark nor the models of
the task file.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

import anyio
from anyio.from_thread import start_blocking_portal

from actors.control.arguments import is_file, name_of

if TYPE_CHECKING:
    from actors.comparing.comparing import CompareOptions
    from actors.comparing.target_run import ComparisonView
    from actors.control.waiting import Waited
    from config import Task
    from replicator.api.comparison import Comparison
    from replicator.pipeline.compare.findings import TargetComparison
    from replicator.status import LockStatus, ShardStatus, TaskStatus

_Result = TypeVar("_Result")
_Arguments = TypeVarTuple("_Arguments")

MOST_ROWS = 100_000
"""Maximum number of differing rows that a `Comparison` keeps for each target, by default."""


@dataclass(frozen=True)
class OpenTask:
    """A merge task, running or not.

    Its methods wait for their results. They may also be called where an event loop runs, as in a
    notebook, but block this loop.

    Attributes:
        name: the name of the task.
        file: its task file; None if the task was opened by its name.
    """

    name: str
    file: Path | None = None

    @classmethod
    def open(cls, task: str | os.PathLike[str]) -> OpenTask:
        """Open a task by its task file, or a task that runs on this host by its name.

        Raises config.TaskFileError for a task file that can't be read.
        """
        given = os.fspath(task)
        return cls(name_of(given), Path(given) if is_file(given) else None)

    def status(self) -> TaskStatus:
        """Return the status; if the task does not run and has a task file, its saved state.

        Raises NotRunningError; ControlError if the task does not answer; StatusFormatError if the
        task runs another release.
        """
        return _run(self._status)

    def locks(self) -> tuple[LockStatus, ...]:
        """Return the schema changes that wait for shards. Raises the same errors as `status`."""
        return self.status().locks

    def shards(self) -> tuple[ShardStatus, ...]:
        """Return the shards that the running task follows. Raises the same errors as `status`."""
        from actors.control.requests import shards_of

        return _run(shards_of, self.name)

    def wait(
        self, until: str | Sequence[str] = "now", *, timeout: float | timedelta | None = None
    ) -> Waited:
        """Wait until the task has applied all changes up to an end, including held rows.

        A task that does not run has 20 seconds to start.

        Args:
            until: the end: ``now`` for the present ends of the sources' binlogs, a time, or
                ``SOURCE=POSITION``, where POSITION is FILE:OFFSET or a GTID set.
            timeout: maximum number of seconds to wait; None for no limit.

        If a lock, a fault, a pause or the timeout keeps the task from the end, the ``reached`` of
        the result is false, and its ``reasons`` say why. Raises ValueError for an end that can't be
        parsed, NotRunningError and ControlError.
        """
        from actors.control.waiting import wait_after_start

        ends = [until] if isinstance(until, str) else list(until)
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        return _run(wait_after_start, self.name, ends, seconds)

    def compare(
        self,
        tables: Sequence[str] = (),
        *,
        where: str = "",
        checksums: bool = True,
        most_rows: int = MOST_ROWS,
    ) -> Comparison:
        """Compare targets with their shards, also while the task runs.

        Writes nothing to any server.

        Args:
            tables: names of targets as schema.table, with the wildcards * and ?; empty for all
                targets.
            where: an SQL condition that selects the rows to compare, on columns that both sides
                have.
            checksums: compare checksums that the servers compute, and read rows only where these
                differ. Otherwise compare all rows.
            most_rows: maximum number of differing rows to keep for each target.

        Raises ValueError without a task file, DatabaseUnavailableError, and Spark's errors.
        """
        import structlog

        from actors.comparing.comparing import CompareOptions
        from replicator import logs
        from replicator.api.comparison import Comparison, DifferenceCollector

        if not structlog.is_configured():
            # Otherwise structlog prints every record on standard output.
            logs.configure("warning", task=self.name)

        options = CompareOptions(tables=tuple(tables), where=where, checksums=checksums)
        collector = DifferenceCollector(most_rows)
        results = self.compare_with(options, collector)
        return Comparison(self.name, tuple(results), collector.tables())

    def compare_with(self, options: CompareOptions, view: ComparisonView) -> list[TargetComparison]:
        """Compare targets as `replicator compare` does. Raises the same errors as `compare`."""
        from actors.comparing.comparing import compare_task

        return _run(compare_task, self._loaded(), options, view)

    async def _status(self) -> TaskStatus:
        from actors.control.client import NotRunningError
        from actors.control.requests import status_of

        try:
            return await status_of(self.name)
        except NotRunningError:
            if self.file is None:
                raise
        from actors.control.saved_status import saved_status

        saved: TaskStatus | NotRunningError
        try:
            saved = await saved_status(self._loaded())
        except NotRunningError as error:
            saved = error
        # A process may have started to run the task since it was first asked for its status.
        with suppress(NotRunningError):
            return await status_of(self.name)
        if isinstance(saved, NotRunningError):
            raise saved
        return saved

    def _loaded(self) -> Task:
        from config import load_task

        if self.file is None:
            raise ValueError(
                f"task {self.name} was opened by its name: open it by its task file to compare it"
            )
        return load_task(self.file)


def _run(function: Callable[[*_Arguments], Awaitable[_Result]], *arguments: *_Arguments) -> _Result:
    """Run an asynchronous function until it returns, also where an event loop already runs."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return anyio.run(function, *arguments)
    with start_blocking_portal() as portal:
        return portal.call(function, *arguments)
