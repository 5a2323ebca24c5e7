"""`replicator run` as a process of its own, asked for its status over its socket."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import yaml

from actors.control.client import NotRunningError, ask
from actors.control.protocol import Request
from benchmarks.workloads import SCHEMA, TARGET_SCHEMA, Table
from replicator.binlog.position import BinlogPosition
from replicator.sandbox.server import DatabaseServer
from replicator.status import TaskStatus

LOOK_SECONDS = 0.1
PATIENCE = 1200.0
STOP_SECONDS = 60.0


class BenchmarkError(Exception):
    """A run can't be measured; the message says why."""


class RunningTask:
    """A task that runs; its times are seconds since the epoch."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.pid = process.pid
        self._process = process
        self._log = log

    def await_reading(self) -> float:
        """Wait until the binlog is being read; when that began."""
        deadline = time.monotonic() + PATIENCE
        while True:
            for record in self._records():
                if record["event"] == "source.connected":
                    return datetime.fromisoformat(record["timestamp"]).timestamp()
            self._check(deadline)
            time.sleep(LOOK_SECONDS / 5)

    def await_applied(self, end: BinlogPosition) -> TaskStatus:
        """Wait until all up to ``end`` is applied."""
        deadline = time.monotonic() + PATIENCE
        while True:
            status = self.status()
            if status is not None:
                if status.error is not None:
                    raise BenchmarkError(f"the task reports an error: {status.error.message}")
                applied = status.sources[0].applied_position if status.sources else ""
                if applied and _position(applied).key >= end.key:
                    return status
            self._check(deadline)
            time.sleep(LOOK_SECONDS)

    def status(self) -> TaskStatus | None:
        """What it tells about itself; None while it starts."""
        try:
            reply = anyio.run(partial(ask, self.name, Request("status")))
        except NotRunningError:
            return None
        return TaskStatus.from_dict(dict(reply.body))

    def _records(self) -> list[dict[str, Any]]:
        if not self._log.exists():
            return []
        return [json.loads(line) for line in self._log.read_text().splitlines() if line]

    def _check(self, deadline: float) -> None:
        if self._process.poll() is not None:
            raise BenchmarkError(f"the task ended by itself: {self._records()[-3:]}")
        if time.monotonic() > deadline:
            raise BenchmarkError(f"the task has not come to its end in {PATIENCE:.0f} s")


@contextmanager
def running_task(
    table: Table,
    source: DatabaseServer,
    start: BinlogPosition,
    target: DatabaseServer,
    folder: Path,
    settings: dict[str, Any],
) -> Iterator[RunningTask]:
    """Merge a table from ``start`` on, with no memory of an earlier run, until the block ends."""
    name = f"bench-{table.name}"
    target.execute(f"DROP DATABASE IF EXISTS {TARGET_SCHEMA}_meta")
    task_file = folder / "task.yaml"
    task_file.write_text(yaml.safe_dump(_task(name, table, source, start, target) | settings))
    log = folder / "task.log"
    log.unlink(missing_ok=True)
    runtime = folder / "run"
    runtime.mkdir(mode=0o700, exist_ok=True)
    # This process asks the task over its socket, and so looks where the task puts it.
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)
    with (folder / "console.log").open("wb") as console:
        process = subprocess.Popen(
            [sys.executable, "-m", "cli", "run", str(task_file), "--log-file", str(log)],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(folder)},
            start_new_session=True,
        )
    try:
        yield RunningTask(name, process, log)
        process.terminate()
        process.wait(STOP_SECONDS)
    finally:
        if process.poll() is None:
            # With its Java process and workers.
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def end_of(server: DatabaseServer) -> BinlogPosition:
    """Where the server's binlog ends now."""
    (row,) = server.execute("SHOW MASTER STATUS")
    return BinlogPosition(str(row[0]), int(row[1]))


def _position(text: str) -> BinlogPosition:
    file, _, offset = text.rpartition(":")
    return BinlogPosition(file, int(offset))


def _task(
    name: str, table: Table, source: DatabaseServer, start: BinlogPosition, target: DatabaseServer
) -> dict[str, Any]:
    return {
        "name": name,
        "task-mode": "incremental",
        "meta-schema": f"{TARGET_SCHEMA}_meta",
        "target-database": endpoint(target),
        "sources": [{"source-id": "source", "from": endpoint(source)}],
        "mysql-instances": [
            {
                "source-id": "source",
                "meta": {"binlog-name": start.file, "binlog-pos": start.offset},
                "route-rules": ["merge"],
                "block-allow-list": "shards",
            }
        ],
        "routes": {
            "merge": {
                "schema-pattern": SCHEMA,
                "table-pattern": f"{table.name}_*",
                "target-schema": TARGET_SCHEMA,
                "target-table": table.name,
            }
        },
        "block-allow-list": {"shards": {"do-dbs": [SCHEMA]}},
    }


def endpoint(server: DatabaseServer) -> dict[str, Any]:
    """A server as task files name it."""
    return {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
    }
