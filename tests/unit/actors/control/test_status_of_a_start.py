"""The status of a task whose process begins while the command reads its saved state."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from actors.control.client import NotRunningError, RunsElsewhereError
from actors.control.protocol import Reply, Request
from actors.control.server import ControlServer
from config.models import Task
from replicator.api.open_task import OpenTask
from replicator.status import TaskStatus, now
from tests.unit.test_cli import listening, private_runtime

__all__ = ["private_runtime"]

STOPPED = TaskStatus("orders", "stopped", now(), 0)
STARTING = TaskStatus("orders", "starting", now(), 1)


@pytest.mark.usefixtures("private_runtime")
@pytest.mark.parametrize(
    "saved",
    [
        STOPPED,
        RunsElsewhereError("orders", "process 1"),
        NotRunningError("orders", ". It has saved nothing"),
    ],
    ids=["stopped", "runs elsewhere", "nothing saved"],
)
def test_the_task_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, saved: TaskStatus | NotRunningError
) -> None:
    async def answer(request: Request) -> Reply:
        return Reply(True, STARTING.to_dict())

    file = tmp_path / "orders.yaml"
    file.write_text("name: orders\n")
    with ExitStack() as running:

        async def begin(task: Task) -> TaskStatus:
            if begins:
                running.enter_context(listening(ControlServer("orders", answer)))
            if isinstance(saved, NotRunningError):
                raise saved
            return saved

        monkeypatch.setattr("actors.control.saved_status.saved_status", begin)
        monkeypatch.setattr(OpenTask, "_loaded", lambda _: None)
        task = OpenTask("orders", file)
        begins = False
        if isinstance(saved, NotRunningError):
            with pytest.raises(type(saved)):
                task.status()
        else:
            assert task.status().state == "stopped"
        begins = True
        assert task.status().state == "starting"
