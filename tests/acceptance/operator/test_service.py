"""A real task tells systemd when it is ready, that it lives, and that it stops."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.many_targets import ManyTargets
from tests.support.tasks.processes import PATIENCE, task_process

pytestmark = pytest.mark.slow


def test_a_service_is_ready_lives_and_stops(
    mariadb_source: DatabaseServer,
    mariadb_target: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    sources = {"shop-eu-01": mariadb_source}
    estate = ManyTargets(
        sources, mariadb_target, database_name, tmp_path, tables=("orders",), mode="pessimistic"
    )
    address = f"replicator-test-{os.getpid()}"
    env = {"NOTIFY_SOCKET": f"@{address}", "WATCHDOG_USEC": "1500000"}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reader:
        reader.bind(f"\0{address}")
        reader.settimeout(PATIENCE)
        with task_process(estate.file, tmp_path, env=env) as task:
            first = reader.recv(4096).decode().split("\n")
            assert first[0].startswith("STATUS=starting")
            assert any(word.startswith("EXTEND_TIMEOUT_USEC=") for word in first)
            while "READY=1" not in reader.recv(4096).decode().split("\n"):
                pass
            assert task.until_state(database_name, "running")
            for _ in range(3):
                assert "WATCHDOG=1" in reader.recv(4096).decode().split("\n")
            task.process.terminate()
            while "STOPPING=1" not in reader.recv(4096).decode().split("\n"):
                pass
            assert task.process.wait(PATIENCE) == 0
