"""The replicator of the demo: a separate process, started in the way that a user would start it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
import yaml

from actors.control.client import NotRunningError, ask
from actors.control.protocol import ControlError, Reply, Request
from replicator.binlog.positions.position import BinlogPosition
from replicator.demo.estate import Estate
from replicator.demo.tables import ENTITIES, META_SCHEMA, TARGET_SCHEMA
from replicator.sandbox.server import DatabaseServer
from replicator.status import Fault, StatusFormatError, TaskStatus

STOP_SECONDS = 60.0
ASK_SECONDS = 10.0
LOG_LINES = 15


class DemoError(Exception):
    """The demo can't continue. The message is for the user; ``fault`` is the replicator's fault."""

    def __init__(self, message: str, fault: Fault | None = None) -> None:
        super().__init__(message)
        self.fault = fault


class ReplicatorProcess:
    """``replicator run`` on a task file, as a context manager that ends the process on exit.

    ``folder`` gets its log, console output and temporary files. Its control socket is found through
    XDG_RUNTIME_DIR, which must be the same in both processes.
    """

    def __init__(self, task_file: Path, folder: Path) -> None:
        self._task_file = task_file
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log_file(self) -> Path:
        """The log of the process, as JSON lines."""
        return self._folder / "replicator.log"

    def __enter__(self) -> Self:
        arguments = ["run", str(self._task_file), "--log-file", str(self.log_file)]
        with (self._folder / "console.log").open("wb") as console:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "cli", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                # If the process is killed, the files that it leaves are removed with our folder.
                env={**os.environ, "TMPDIR": str(self._folder)},
                # Ctrl-C reaches only the demo, which then stops this process properly.
                start_new_session=True,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        process = self._process
        if process is None:
            return
        try:
            if process.poll() is None and error is None:
                process.terminate()
                process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired as slow:
            raise DemoError(f"the replicator did not end within {STOP_SECONDS:.0f} s") from slow
        finally:
            # Kill the whole process group, because a Java process may still run.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def status(self) -> TaskStatus | None:
        """Return the status of the replicator; None while it starts.

        Raises DemoError if the replicator has ended, does not answer, or reports an error.
        """
        try:
            reply = anyio.run(self._ask_status)
        except NotRunningError:
            self._raise_if_ended()
            return None
        except ControlError as error:
            self._raise_if_ended()
            raise DemoError(str(error)) from error
        if not reply.ok:
            raise DemoError(f"the replicator does not tell its status: {reply.error}")
        try:
            status = TaskStatus.from_dict(dict(reply.body))
        except StatusFormatError as error:
            raise DemoError(str(error)) from error
        for fault in (status.error, *(part.error for part in status.blocked)):
            if fault is not None:
                raise DemoError("The replicator reports an error.", fault)
        if status.state in ("paused", "stopped"):
            raise DemoError(f"The replicator has {status.state} by itself.")
        return status

    async def _ask_status(self) -> Reply:
        return await ask(TASK_NAME, Request("status"), timeout=ASK_SECONDS)

    def _raise_if_ended(self) -> None:
        if self._process is None or (code := self._process.poll()) is None:
            return
        raise DemoError(
            f"The replicator ended by itself with exit code {code}. The last it said:\n"
            + (_last_error(self.log_file) or _last_words(self._folder / "console.log"))
        )


def _last_error(log: Path) -> str:
    if not log.exists():
        return ""
    for line in reversed(log.read_text(encoding="utf-8", errors="replace").splitlines()):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and record.get("level") in ("error", "critical"):
            return f"{record.get('event')}: {record.get('error') or line}"
    return ""


def _last_words(console: Path) -> str:
    lines = console.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines[-LOG_LINES:])


TASK_NAME = "demo"
_HEAD = """\
# The task of `replicator demo`: follow the binlogs of two sources from where they stood before
# the first row, and merge the tables that look alike.
"""


def write_task_file(path: Path, estate: Estate, starts: dict[str, BinlogPosition]) -> None:
    """Write the task that merges the estate from the given binlog positions on."""
    task: dict[str, Any] = {
        "name": TASK_NAME,
        "task-mode": "incremental",
        "meta-schema": META_SCHEMA,
        "target-database": _endpoint(estate.target),
        "sources": [
            {"source-id": source, "from": _endpoint(server)}
            for source, server in estate.sources.items()
        ],
        "mysql-instances": [
            {
                "source-id": source,
                "meta": {"binlog-name": start.file, "binlog-pos": start.offset},
                "route-rules": [entity.name for entity in ENTITIES],
                "block-allow-list": "shards",
                "syncer-config-name": "often",
            }
            for source, start in starts.items()
        ],
        "routes": {
            entity.name: {
                "schema-pattern": "shop_*",
                "table-pattern": f"{entity.name}_*",
                "target-schema": TARGET_SCHEMA,
                "target-table": entity.name,
            }
            for entity in ENTITIES
        },
        "block-allow-list": {"shards": {"do-dbs": ["~^shop_[0-9]+$"]}},
        "syncers": {"often": {"checkpoint-flush-interval": 1}},
    }
    path.write_text(_HEAD + yaml.safe_dump(task, sort_keys=False), encoding="utf-8")


def _endpoint(server: DatabaseServer) -> dict[str, Any]:
    return {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
    }
