"""`replicator run` as a process of its own, asked for its status over its socket."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import yaml

from actors.control.client import NotRunningError, ask
from actors.control.protocol import Request
from benchmarks.errors import BenchmarkError
from benchmarks.estate import SCHEMA, TARGET_SCHEMA, Estate
from replicator.binlog.positions.position import BinlogPosition
from replicator.sandbox.server import DatabaseServer
from replicator.status import TaskStatus

NAME = "bench"
LOOK_SECONDS = 0.25
LOOK_SHARE = 0.005
"""Between two looks at least this share of the time so far: each takes from what is measured."""
PATIENCE = 3600.0
STOP_SECONDS = 120.0

T = TypeVar("T")


class RunningTask:
    """A task that runs; its times are seconds since the epoch."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.pid = process.pid
        self._process = process
        self._log = log

    def await_reading(self) -> float:
        """Wait until the task runs and a binlog is being read; when both were so."""
        return max(self.await_event("source.connected"), self.await_event("task.running"))

    def await_event(self, name: str, times: int = 1) -> float:
        """Wait until the log has an event so many times; when it came the last of them."""

        def found() -> float | None:
            records = [record for record in self.records() if record["event"] == name]
            if len(records) < times:
                return None
            return datetime.fromisoformat(records[times - 1]["timestamp"]).timestamp()

        return self.until(found, f"event {name}", LOOK_SECONDS / 5)

    def await_applied(self, ends: Sequence[BinlogPosition]) -> TaskStatus:
        """Wait until all up to ``ends``, one for each source, is applied."""

        def applied() -> TaskStatus | None:
            status = self.status()
            if status is None:
                return None
            places = {source.source: source.applied_position for source in status.sources}
            behind = [
                number
                for number, end in enumerate(ends)
                if not (place := places.get(source_id(number))) or _position(place).key < end.key
            ]
            return None if behind else status

        return self.until(applied, "having caught up")

    def until(self, look: Callable[[], T | None], what: str, pause: float = LOOK_SECONDS) -> T:
        """Look until there is something. Raises BenchmarkError where the task ends before.

        ``pause``: between the first looks, in seconds.
        """
        began = time.monotonic()
        while (found := look()) is None:
            if self._process.poll() is not None:
                raise BenchmarkError(f"the task ended before {what}: {self.records()[-3:]}")
            passed = time.monotonic() - began
            if passed > PATIENCE:
                raise BenchmarkError(f"no {what} in {PATIENCE:.0f} s: {self.records()[-3:]}")
            time.sleep(max(pause, LOOK_SHARE * passed))
        return found

    def status(self) -> TaskStatus | None:
        """What it tells about itself; None while it starts. Raises BenchmarkError for a fault."""
        try:
            reply = anyio.run(partial(ask, NAME, Request("status")))
        except NotRunningError:
            return None
        status = TaskStatus.from_dict(dict(reply.body))
        faults = [status.error, *(part.error for part in status.blocked)]
        for fault in faults:
            if fault is not None:
                raise BenchmarkError(f"the task reports a fault: {fault.message}")
        return status

    def wait(self) -> int:
        """Wait for the process to end by itself; its exit code."""
        try:
            return self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired as error:
            raise BenchmarkError(f"the task has not ended in {PATIENCE:.0f} s") from error

    def records(self) -> list[dict[str, Any]]:
        """The log so far."""
        if not self._log.exists():
            return []
        lines = self._log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]


@contextmanager
def running_task(
    values: dict[str, Any], target: DatabaseServer, folder: Path, *, again: bool = False
) -> Iterator[RunningTask]:
    """Run a task until the block ends; ``again``: from what an earlier run has saved."""
    if not again:
        target.execute(f"DROP DATABASE IF EXISTS {TARGET_SCHEMA}_meta")
    task_file = folder / "task.yaml"
    task_file.write_text(yaml.safe_dump(values))
    log = folder / "task.log"
    log.unlink(missing_ok=True)
    with (folder / "console.log").open("wb") as console:
        process = subprocess.Popen(
            command("run", str(task_file), "--log-file", str(log)),
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            env=environment(folder),
            start_new_session=True,
        )
    try:
        yield RunningTask(process, log)
        process.terminate()
        process.wait(STOP_SECONDS)
    finally:
        if process.poll() is None:
            # With its Java process and workers.
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def command(*arguments: str) -> list[str]:
    """The command line of `replicator` from this tree."""
    return [sys.executable, "-m", "cli", *arguments]


def environment(folder: Path) -> dict[str, str]:
    """That of a task whose socket and temporary files are in the folder."""
    runtime = folder / "run"
    runtime.mkdir(mode=0o700, exist_ok=True)
    # This process asks the task over its socket, and so looks where the task puts it.
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)
    return {**os.environ, "TMPDIR": str(folder)}


def source_id(number: int) -> str:
    """The name that a task has for the server of this number."""
    return f"source-{number}"


def task_values(
    estate: Estate,
    target: DatabaseServer,
    starts: Sequence[BinlogPosition] | None,
    shard_mode: str = "",
) -> dict[str, Any]:
    """The task file that merges the estate: from ``starts`` on, or, without them, a full copy."""
    numbers = range(len(estate.servers))
    instances: list[dict[str, Any]] = [
        {
            "source-id": source_id(number),
            "route-rules": [table.name for table in estate.tables],
            "block-allow-list": "shards",
        }
        for number in numbers
    ]
    if starts is not None:
        for instance, start in zip(instances, starts, strict=True):
            instance["meta"] = {"binlog-name": start.file, "binlog-pos": start.offset}
    return {
        "name": NAME,
        "task-mode": "full" if starts is None else "incremental",
        "shard-mode": shard_mode,
        "meta-schema": f"{TARGET_SCHEMA}_meta",
        "target-database": _endpoint(target),
        "sources": [
            {"source-id": source_id(number), "from": _endpoint(estate.servers[number])}
            for number in numbers
        ],
        "mysql-instances": instances,
        "routes": {
            table.name: {
                "schema-pattern": SCHEMA,
                "table-pattern": f"{table.name}_*",
                "target-schema": TARGET_SCHEMA,
                "target-table": table.name,
            }
            for table in estate.tables
        },
        "block-allow-list": {"shards": {"do-dbs": [SCHEMA]}},
    }


def _endpoint(server: DatabaseServer) -> dict[str, Any]:
    """A server as task files name it."""
    return {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
    }


def _position(text: str) -> BinlogPosition:
    file, _, offset = text.rpartition(":")
    return BinlogPosition(file, int(offset))
