"""A source that turns hostile while a task runs: it is blocked by name, and all others go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.servers.hostile_server import Answer, HostileServer, endless_event, endless_rows
from tests.support.tasks.long_task import LongTask
from tests.support.tasks.shards import Shards

BOUND = 1 << 30
"""Bytes of the driver: some 300 MiB without anything of the kind."""


@pytest.fixture
def task(shards: Shards, tmp_path: Path) -> Iterator[LongTask]:
    task = LongTask(shards, tmp_path)
    yield task
    task.end()


@pytest.mark.parametrize(
    ("marker", "answer"),
    [
        pytest.param(b"\nreplicator", endless_event, id="event"),
        pytest.param(b"@@", endless_rows, id="look-up", marks=pytest.mark.slow),
    ],
)
def test_one_hostile_source_keeps_no_other_from_going_on(
    task: LongTask, marker: bytes, answer: Answer
) -> None:
    shards, name = task.shards, task.name
    bad, good = shards.sources["a"], shards.sources["b"]
    with HostileServer(bad.port, marker, answer) as hostile:
        hostile.armed = False
        task.values["sources"][0]["from"]["port"] = hostile.port
        task.values["limits"] = {"largest-event": "20MiB"}
        shards.change(rows=20)
        task.assert_equal()
        hostile.armed = True
        hostile.end_all()
        fault = task.fault()
        assert fault.event == "source.unreadable"
        assert "limits.largest-event" in fault.message
        assert "20971520" in fault.message
        _insert(good, name)
        task.task.until(lambda: _has(shards.target, name), "rows of the other source")
        assert _peak_memory(task.task.process.pid) < BOUND
        hostile.armed = False
        hostile.end_all()
        task.resume()
        shards.change(rows=20)
        task.assert_equal()


def _insert(server: DatabaseServer, name: str) -> None:
    server.execute(f"INSERT INTO {name}.bag VALUES (-77, 'from the good one')")


def _has(server: DatabaseServer, name: str) -> bool:
    return bool(server.execute(f"SELECT 1 FROM {name}.bag WHERE a = -77"))


def _peak_memory(process: int) -> int:
    """The most bytes that a process has had (proc_pid_status(5), VmHWM)."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10
