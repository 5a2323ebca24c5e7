"""The tasks of this host, of which one may hang, and the exit codes of what goes wrong."""

from __future__ import annotations

import importlib
import json
import time

import anyio
import pytest

from actors.control import client, exit_codes
from actors.control.protocol import Reply, Request
from actors.control.server import ControlServer
from tests.unit.test_cli import Task, invoke, listening, private_runtime, task

__all__ = ["private_runtime", "task"]


def test_a_task_that_hangs_hides_no_other(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(request: Request) -> Reply:
        await anyio.sleep_forever()
        raise AssertionError

    async def refuse(request: Request) -> Reply:
        return Reply(False, error="the task is being removed")

    async def other(request: Request) -> Reply:
        return Reply(True, {"task": "later"})

    monkeypatch.setattr(client, "LIST_TIMEOUT", 2.0)
    with (
        listening(ControlServer("another", hang)),
        listening(ControlServer("ä hung/one", hang)),
        listening(ControlServer("gone", refuse)),
        listening(ControlServer("other", other)),
    ):
        began = time.monotonic()
        code, out, err = invoke("status")
        took = time.monotonic() - began
        assert code == 1
        lines = {line.split("  ")[0].strip(): line for line in out.splitlines()}
        assert "running" in lines["orders"]
        for name in ("another", "ä hung/one", "gone", "other"):
            assert "does not answer" in lines[name]
        for told in (
            "'another' did not answer",
            "'ä hung/one' did not answer",
            "'gone': the task is being removed",
            "'other': the status of the task is not",
        ):
            assert told in err
        assert took < 2 * client.LIST_TIMEOUT, "they are asked at the same time"
        code, out, err = invoke("status", "--json")
        assert (code, [found["task"] for found in json.loads(out)]) == (1, ["orders"])
        assert "'another' did not answer" in err


@pytest.mark.parametrize("name", exit_codes._CODES)
def test_what_exit_codes_name_is_an_error(name: str) -> None:
    module, _, error = name.rpartition(".")
    kind = getattr(importlib.import_module(module), error)
    assert issubclass(kind, Exception)
    assert f"{kind.__module__}.{kind.__qualname__}" == name
