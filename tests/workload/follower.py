"""One task that follows one source, in a process of its own, and what becomes of it."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from replicator.downstream.meta.all_tables import META_TABLES
from replicator.downstream.meta.checkpoint import CHECKPOINT_TABLE
from replicator.downstream.meta.lease import LEASE_TABLE
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.binlog_ends import end_of
from tests.support.tasks.processes import TaskProcess, place_of, task_process
from tests.support.tasks.task_files import endpoint, start_of, write_task

NAME = "suite"
META = "suite_meta"
LOOK_SECONDS = 0.03
QUIET_SECONDS = 180.0
"""A task that applies nothing further for so long hangs: updates of a large table without a key
take their time."""
LONGEST_SECONDS = 240.0
START_SECONDS = 120.0
RESTARTS = 4
"""So many restarts at one place are without end."""


@dataclass(frozen=True)
class Trouble:
    """Why a task does not go on: `kind` is ``refused``, ``hangs``, ``restarts`` or ``died``."""

    kind: str
    event: str
    message: str


class Follower:
    """A running task: a context manager that starts it at the present end of the binlog."""

    def __init__(
        self,
        source: DatabaseServer,
        target: DatabaseServer,
        schemas: Mapping[str, str],
        without: frozenset[str],
    ) -> None:
        self._source = source
        self._target = target
        self._schemas = schemas
        self._without = without
        self._resources = contextlib.ExitStack()
        self._process: TaskProcess | None = None
        self.folder = Path()

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="suite-task-"))
        self._resources.callback(shutil.rmtree, self.folder, ignore_errors=True)
        file = write_task(self.folder, self._values())
        self._process = self._resources.enter_context(task_process(file, self.folder))
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def _values(self) -> dict[str, Any]:
        return {
            "name": NAME,
            "task-mode": "incremental",
            "shard-mode": "",
            "ignore-checking-items": ["routes"],  # there are no tables before the first file
            "meta-schema": META,
            "target-database": endpoint(self._target),
            "sources": [{"source-id": "a", "from": endpoint(self._source)}],
            "mysql-instances": [
                {
                    "source-id": "a",
                    "meta": start_of(self._source),
                    "route-rules": list(self._schemas),
                    "block-allow-list": "all",
                    "syncer-config-name": "sync",
                }
            ],
            "routes": {
                schema: {"schema-pattern": schema, "target-schema": there}
                for schema, there in self._schemas.items()
            },
            "block-allow-list": {"all": {"ignore-dbs": sorted(self._without)}},
            "syncers": {"sync": {"checkpoint-flush-interval": 1}},
            "spark": {"master": "local[2]"},
        }

    def log(self) -> str:
        """The task's log so far."""
        log = self.folder / "task.log"
        return log.read_text(errors="replace") if log.exists() else ""

    def caught_up(self) -> Trouble | None:
        """Wait until all that the source has logged is applied, or the task is in trouble."""
        assert self._process is not None
        end = end_of(self._source)
        started = moved = time.monotonic()
        last, restarts = "", self._restarts()
        patience = QUIET_SECONDS if self.log() else START_SECONDS
        while True:
            if self._process.process.poll() is not None:
                return Trouble("died", "", self._process.console()[-2000:])
            status = self._process.status(NAME)
            now = time.monotonic()
            if status is not None:
                faults = [part.error for part in status.blocked if part.error is not None]
                error, [source] = next(iter(faults), status.error), status.sources or [None]
                if error is not None and error.event != "task.restart":
                    return Trouble("refused", error.event, error.message)
                place = (source.applied_position or "") if source is not None else ""
                if place and place_of(place).key >= end.key:
                    return None
                if place != last:
                    last, moved, restarts = place, now, self._restarts()
                elif self._restarts() - restarts >= RESTARTS:
                    text = error.message if error is not None else ""
                    return Trouble("restarts", "task.restart", text or self._process.tail())
            if now - moved > patience or now - started > LONGEST_SECONDS:
                text = f"at {last}, the binlog ends at {end}: {self._process.tail()}"
                return Trouble("hangs", "", text)
            time.sleep(LOOK_SECONDS)

    def moved_to_end(self) -> bool:
        """Let the task forget all tables and go on at the source's end; False if it can't.

        A task of its own for each file would be cleaner, and take half a minute each. So this one
        is paused, its tables are made those of a task that has nothing behind it, and it resumes:
        what it goes on from is what is saved. It must have saved something.
        """
        assert self._process is not None
        status = self._process.status(NAME) if self._process.process.poll() is None else None
        if status is None:
            return False
        if status.state != "paused" and self._process.cli("pause", NAME).returncode != 0:
            return False
        end = end_of(self._source)
        with self._target.connect(database=META) as connection, connection.cursor() as cursor:
            for table in META_TABLES:
                if table not in (CHECKPOINT_TABLE, LEASE_TABLE):
                    cursor.execute(f"DELETE FROM {table.qualified(META, NAME)}")
            moved = cursor.execute(
                f"UPDATE {CHECKPOINT_TABLE.qualified(META, NAME)}"
                " SET binlog_file = %s, binlog_offset = %s,"
                " open_items = 0, saved_at = NOW() + INTERVAL 1 SECOND",
                (end.file, end.offset),
            )
        return bool(moved) and self._process.cli("resume", NAME).returncode == 0

    def _restarts(self) -> int:
        return self.log().count('"task.restart"')
