"""A start that is interrupted waits for nobody."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
import yaml

from actors.task.resources.cancellation import done_unless
from actors.task.resources.spark import TaskSpark
from actors.task.supervisor import TaskSupervisor
from config.loading import load_task
from replicator.mysql.connection.address import CONNECT_TIMEOUT
from tests.support.tasks.running import LOOK_SECONDS
from tests.unit.test_cli import TASK, private_runtime

__all__ = ["private_runtime"]


@pytest.fixture
def silent_server() -> Iterator[socket.socket]:
    """One that takes connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


async def test_a_server_that_says_nothing_does_not_hold_up_the_end(
    silent_server: socket.socket, tmp_path: Path
) -> None:
    values = yaml.safe_load(TASK)
    values["target-database"]["port"] = silent_server.getsockname()[1]
    file = tmp_path / "orders.yaml"
    file.write_text(yaml.safe_dump(values))
    task = load_task(file)
    supervisor = TaskSupervisor(task, TaskSpark(task))
    codes = []
    began = time.monotonic()
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            codes.append(await supervisor.run())

        tasks.start_soon(run)
        connection, _ = await anyio.to_thread.run_sync(silent_server.accept)
        with connection:
            supervisor.request("stop")
            while not codes:
                await anyio.sleep(LOOK_SECONDS)
    assert codes == [0]
    assert time.monotonic() - began < CONNECT_TIMEOUT / 2


async def test_work_is_done_or_given_up_and_its_error_is_its_own() -> None:
    wished = anyio.Event()
    assert await done_unless(wished, anyio.lowlevel.checkpoint)

    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await done_unless(wished, fail)
    wished.set()
    assert not await done_unless(wished, anyio.sleep_forever)
