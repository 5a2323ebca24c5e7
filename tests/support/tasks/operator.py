"""An operator who starts, stops and removes a task in any order, and makes mistakes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from replicator.sandbox.server import DatabaseServer
from replicator.status import TaskStatus
from tests.support.servers.binlog_ends import end_of
from tests.support.tasks.copying import copy_task
from tests.support.tasks.processes import TaskProcess, place_of, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.tables import rows_of, union_of
from tests.support.tasks.task_files import endpoint, write_task

ROWS = 40
"""Rows of one insert into each shard between two steps."""

HOSTS = ("here", "there")
"""Two hosts, as far as one process can't see the other's control socket."""

FILES = {"both": "ab", "one": "a", "other": " b", "renamed": "cd", "exchanged": "ba"}
"""Task files of one name: the ``source-id`` that each server has in it, blank: not in it."""


class Operator:
    """Goes through steps of a task; after each it can be looked whether a row is missing."""

    def __init__(self, shards: Shards, folder: Path, seed: int) -> None:
        self._shards = shards
        self._folder = folder
        self._random = random.Random(seed)
        self._name = shards.database
        self._file = "both"
        self._running: dict[str, tuple[TaskProcess, str]] = {}
        self._resources = ExitStack()
        self._removals: list[subprocess.Popen[str]] = []
        self.starts = 0
        self.steps: list[str] = []
        self.compared = 0
        for host in HOSTS:
            (folder / host).mkdir()

    def close(self) -> None:
        """End all processes."""
        for removal in self._removals:
            removal.communicate()
        self._resources.close()

    def step(self) -> None:
        """One thing that a person may try, while rows are changed; then look at the rows."""
        going = bool(self._running)
        steps: list[tuple[int, Callable[[], str]]] = [
            (1 if going else 8, lambda: self._run("here")),
            (2 if going else 4, lambda: self._run("there")),
            (0 if going else 1, lambda: self._run("here", "--remove-meta")),
            (2, self._stop),
            (2, self._kill),
            (1, self._pause),
            (1, self._resume),
            (2, self._remove),
            (1, self._remove_meanwhile),
            (1, self._drop_some),
            (1, self._drop_all),
            (1, self._drop_target),
            (6, self._empty),
            (1, self._choose_file),
        ]
        weights, actions = zip(*steps, strict=True)
        [action] = self._random.choices(actions, weights)
        told = action()
        if told:
            self.steps.append(told)
            self._shards.change(rows=ROWS)
            self.look()

    def settle(self) -> None:
        """Start anew as the manual says, which must lead to a target that lacks nothing."""
        while self._running:
            self._stop()
        self._await_removals()
        self._drop_all()
        self._file = "both"
        self.steps += ["start anew", self._empty(), self._run("here")]
        before = self.compared
        self.look()
        assert self.compared > before, self.steps

    def look(self) -> None:
        """Wait until each process has come to rest; fail where one runs and a row is missing."""
        for host, (process, file) in list(self._running.items()):
            status = self._at_rest(process, file)
            if status is None:
                self.steps.append(f"({host} has ended: {faults_of(process)})")
                del self._running[host]
            elif status.state == "running" and not status.blocked:
                self._compare(self._sources(file))
                self.steps.append(f"({host} has all rows)")
            else:
                self.steps.append(f"({host} is {status.state}: {faults_of(process)})")

    def _at_rest(self, process: TaskProcess, file: str) -> TaskStatus | None:
        """The status of a process that does not go on by itself, or has read all; None: ended."""
        ends = {source: end_of(server).key for source, server in self._sources(file).items()}
        seen: list[TaskStatus] = []

        def rests() -> bool:
            status = process.status(self._name)
            if status is None:
                return False
            seen.append(status)
            if status.state == "starting":
                return len(self._running) > 1 and waits_for_lease(process)
            if status.state == "running" and not status.blocked:
                places = {s.source: s.applied_position for s in status.sources}
                return all(
                    places.get(source) and place_of(places[source]).key >= end
                    for source, end in ends.items()
                )
            return status.state == "paused" or bool(status.blocked)

        try:
            process.until(rests, f"rest after {self.steps}")
        except AssertionError:
            if process.process.poll() is None:
                raise
            return None
        return seen[-1]

    def _compare(self, servers: Mapping[str, DatabaseServer]) -> None:
        name = self._name
        shards = [(server, f"{name}.t{n}") for server in servers.values() for n in (1, 2)]
        bags = [(server, f"{name}.bag") for server in servers.values()]
        for table, members in (("t", shards), ("bag", bags)):
            there = self._is_there(table)
            found = rows_of(self._shards.target, f"{name}.{table}") if there else Counter()
            lost = union_of(members) - found
            assert not lost, f"{len(lost)} rows of {table} are missing behind {self.steps}"
        self.compared += 1

    def _sources(self, file: str) -> dict[str, DatabaseServer]:
        named = zip(FILES[file], self._shards.servers, strict=False)
        return {source: server for source, server in named if source != " "}

    def _run(self, host: str, *options: str) -> str:
        if host in self._running:
            return ""
        self.starts += 1
        folder = self._folder / host
        (folder / "task.log").unlink(missing_ok=True)
        file = self._written(self._file)
        context = task_process(file, folder, *options)
        self._running[host] = (self._resources.enter_context(context), self._file)
        return f"run {self._file} {host} {' '.join(options)}"

    def _written(self, file: str) -> Path:
        values = copy_task(self._shards)
        instance = values["mysql-instances"][0]
        servers = self._sources(file)
        values["sources"] = [
            {"source-id": source, "from": endpoint(server)} for source, server in servers.items()
        ]
        values["mysql-instances"] = [{**instance, "source-id": source} for source in servers]
        folder = self._folder / file
        folder.mkdir(exist_ok=True)
        return write_task(folder, values)

    def _one(self) -> str | None:
        return self._random.choice(sorted(self._running)) if self._running else None

    def _stop(self) -> str:
        host = self._one()
        if host is None:
            return ""
        process, _ = self._running.pop(host)
        done = process.cli("stop", self._name)
        assert done.returncode in (0, 3), done
        process.process.wait(60)
        return f"stop {host}"

    def _kill(self) -> str:
        host = self._one()
        if host is None:
            return ""
        process, _ = self._running.pop(host)
        os.kill(process.process.pid, signal.SIGKILL)
        process.process.wait()
        return f"kill {host}"

    def _pause(self) -> str:
        host = self._one()
        if host is None or self._running[host][0].status(self._name) is None:
            return ""
        self._running[host][0].cli("pause", self._name)
        return f"pause {host}"

    def _resume(self) -> str:
        host = self._one()
        if host is None:
            return ""
        self._running[host][0].cli("resume", self._name)
        return f"resume {host}"

    def _remove(self) -> str:
        self._await_removals()
        done = self._cli("remove", str(self._written(self._file)), "--yes")
        done.communicate()
        return f"remove {done.returncode}"

    def _remove_meanwhile(self) -> str:
        self._await_removals()
        self._removals.append(self._cli("remove", str(self._written(self._file)), "--yes"))
        return "remove, not waited for"

    def _await_removals(self) -> None:
        while self._removals:
            self._removals.pop().communicate()

    def _cli(self, *arguments: str) -> subprocess.Popen[str]:
        runtime = {"XDG_RUNTIME_DIR": str(self._folder)}
        return subprocess.Popen(
            [sys.executable, "-m", "cli", *arguments],
            env={**os.environ, **runtime},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _drop_some(self) -> str:
        present = self._meta_tables()
        if not present:
            return ""
        gone = self._random.sample(present, self._random.randint(1, len(present)))
        self._drop(gone)
        return f"DROP {' '.join(gone)}"

    def _drop_all(self) -> str:
        present = self._meta_tables()
        if present:
            self._drop(present)
        return "DROP all meta tables" if present else ""

    def _drop(self, names: list[str]) -> None:
        listed = ", ".join(f"`{self._name}_meta`.`{name}`" for name in names)
        self._shards.target.execute(f"DROP TABLE IF EXISTS {listed}")

    def _meta_tables(self) -> list[str]:
        rows = self._shards.target.execute(
            "SELECT TABLE_NAME FROM information_schema.TABLES"
            f" WHERE TABLE_SCHEMA = '{self._name}_meta'"
        )
        return sorted(str(name) for (name,) in rows)

    def _drop_target(self) -> str:
        table = self._random.choice(("t", "bag"))
        self._shards.target.execute(f"DROP TABLE IF EXISTS {self._name}.{table}")
        return f"DROP TABLE {table}"

    def _empty(self) -> str:
        """As the remedies say: where nothing of the task is there any more."""
        lease = f"{self._name}_lease"
        if self._running or set(self._meta_tables()) - {lease}:
            return ""
        for table in ("t", "bag"):
            name = f"{self._name}.{table}"
            if self._is_there(table):
                self._shards.target.execute(f"TRUNCATE TABLE {name}")
        return "TRUNCATE"

    def _is_there(self, table: str) -> bool:
        return bool(
            self._shards.target.execute(
                "SELECT 1 FROM information_schema.TABLES"
                f" WHERE TABLE_SCHEMA = '{self._name}' AND TABLE_NAME = '{table}'"
            )
        )

    def _choose_file(self) -> str:
        self._file = self._random.choice(sorted(FILES))
        return f"edit: {self._file}"


def faults_of(process: TaskProcess) -> str:
    """The errors at the end of a process's log, for messages."""
    return ", ".join(e["event"] for e in process.events() if e["level"] == "error") or "no fault"


def waits_for_lease(process: TaskProcess) -> bool:
    """Whether a process waits for another to let go of the task."""
    return any(event["event"] == "task.lease-waiting" for event in process.events())
