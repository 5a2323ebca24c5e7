"""The tasks of a host: which state each is in, whether it needs its operator, and how one ended."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import pytest

from actors.control import commands, task_records
from actors.control.protocol import Reply, Request, socket_path
from actors.control.server import ControlServer
from actors.control.task_records import find_record, forget_record, note_begun
from replicator.status import (
    BlockedPart,
    CopyStatus,
    Fault,
    LockStatus,
    SourceStatus,
    TaskStatus,
    WriterStatus,
    condition,
    needs_operator,
    now,
)
from replicator.terminal.status import render
from tests.unit.replicator.terminal.test_pasted_commands import shown
from tests.unit.test_cli import invoke, listening, private_runtime

__all__ = ["private_runtime"]

FAULT = Fault("rows.duplicate", "the key is there", "", ("mend it",), now())
BLOCKED = BlockedPart("target", "m.t", now(), FAULT)
WAITS = BlockedPart("target", "m.u", now(), waits_for="m.copied")
PAUSED_PART = BlockedPart("target", "m.v", now())
LOCK = LockStatus("m.t:1", "m.t", 1, "ALTER …", "a", "waiting", None)
CONFLICT = LockStatus("m.t:1", "m.t", 1, "ALTER …", "a", "conflict", None)


def status(state: str = "running", **more: object) -> TaskStatus:
    return TaskStatus("orders", state, now(), 7, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "named", "needed"),
    [
        (status(), "running", False),
        (status("starting"), "starting", False),
        (status("starting", error=Fault("task.restart", "away", "", (), now())), "starting", False),
        (status("paused", error=FAULT), "paused", True),
        (status("stopped"), "stopped", False),
        (status("killed"), "killed", True),
        (status(blocked=(BLOCKED,)), "blocked (1 part)", True),
        (status(blocked=(BLOCKED, WAITS)), "blocked (2 parts)", True),
        (status(blocked=(PAUSED_PART,)), "blocked (1 part)", True),
        (status(blocked=(WAITS,)), "blocked (1 part)", False),
        (status(locks=(LOCK,)), "waiting for a lock", False),
        (status(locks=(LOCK,), writer=WriterStatus("retrying: it is away")), "retrying", False),
        (status(sources=(SourceStatus("a", "reconnecting: it is away"),)), "retrying", False),
        (status(copy=CopyStatus("copying", waiting="it is away")), "retrying", False),
        (status(copy=CopyStatus("deferred", waiting="of m.t: a1")), "running", False),
        (status(blocked=(WAITS,), writer=WriterStatus("retrying: x")), "blocked (1 part)", False),
        (status(locks=(LOCK, CONFLICT)), "lock in conflict", True),
    ],
)
def test_what_a_task_is_in(found: TaskStatus, named: str, needed: bool) -> None:
    assert (condition(found), needs_operator(found)) == (named, needed)


def telling(found: TaskStatus) -> ControlServer:
    async def answer(request: Request) -> Reply:
        return Reply(True, found.to_dict())

    return ControlServer(found.task, answer)


def _run_until_killed(name: str, ready: object) -> None:
    async def answer(request: Request) -> Reply:
        return Reply(True)

    async def serve() -> None:
        async with anyio.create_task_group() as group:
            await group.start(ControlServer(name, answer).run)
            ready.set()  # type: ignore[attr-defined]
            await anyio.sleep_forever()

    anyio.run(serve)


@contextmanager
def killed(name: str) -> Iterator[int]:
    """A task whose process was killed; its id."""
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    process = context.Process(target=_run_until_killed, args=(name, ready))
    process.start()
    assert ready.wait(20)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    yield process.pid


LONG = "a task with a name that is too long for the name of a socket: it is cut"


@pytest.mark.parametrize("name", ["orders", "ä hung/one", LONG])
def test_a_task_that_was_killed_is_listed_as_that_and_one_that_ended_as_stopped(name: str) -> None:
    with killed(name) as pid:
        code, out, _ = invoke("status", "--json")
        [found] = json.loads(out)
        assert (code, found["task"], found["state"]) == (0, name, "killed")
        assert invoke("status", "--exit-code")[0] == 4
        code, _, err = invoke("status", name)
        assert code == 3
        assert f"process {pid}" in err
        assert "killed" in err
    with listening(telling(TaskStatus(name, "running", now(), 7))):
        [found] = json.loads(invoke("status", "--json")[1])
        assert found["state"] == "running", "it was started again"
    [found] = json.loads(invoke("status", "--json")[1])
    assert (found["task"], found["state"], found["condition"]) == (name, "stopped", "stopped")
    assert invoke("status", "--exit-code")[0] == 0
    assert name[:20] in invoke("status")[1]
    forget_record(name)
    assert "no task" in invoke("status")[1]


def test_a_removed_task_that_was_killed_leaves_nothing_behind() -> None:
    with killed("orders"):
        forget_record("orders")
        assert not socket_path("orders").exists()
        assert json.loads(invoke("status", "--json")[1]) == []


def test_a_record_that_is_not_understood_hides_no_other() -> None:
    note_begun("orders")
    path = socket_path("other").with_suffix(".task")
    for text in ("", "[]", '{"task": "other"}', '{"task": "o", "pid": "x", "began": "?"}'):
        path.write_text(text)
        assert [record.task for record in task_records.records()] == ["orders"]
        assert find_record("other") is None


@pytest.mark.parametrize(
    ("found", "code"),
    [(status(), 0), (status(blocked=(BLOCKED,)), 4), (status("paused", error=FAULT), 4)],
)
def test_the_exit_code_says_whether_a_task_is_healthy(found: TaskStatus, code: int) -> None:
    with listening(telling(found)):
        assert invoke("status", "orders")[0] == 0
        assert invoke("status", "orders", "--exit-code")[0] == code
        assert invoke("status", "--exit-code")[0] == code
        _, out, _ = invoke("status", "orders", "--json", "--exit-code")
        assert json.loads(out)["needs_operator"] == bool(code)


def test_a_list_names_the_condition_of_each_task() -> None:
    one = TaskStatus("one", "running", now(), 7, blocked=(BLOCKED, WAITS))
    other = TaskStatus("other", "running", now(), 7, locks=(LOCK,))
    with listening(telling(one)), listening(telling(other)), killed("third"):
        _, out, _ = invoke("status")
    rows = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert "blocked (2 parts)" in rows["one"]
    assert "rows.duplicate" in rows["one"]
    assert "waiting for a lock" in rows["other"]
    assert "killed" in rows["third"]


def test_watching_ends_with_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "WATCH_SECONDS", 0.05)

    class Ending:
        """Ends its server at the third look."""

        looks = 0
        scope: anyio.CancelScope

        async def answer(self, request: Request) -> Reply:
            self.looks += 1
            if self.looks == 3:
                self.scope.cancel()
            return Reply(True, status().to_dict())

    ending = Ending()

    class Server(ControlServer):
        async def run(self, **more: object) -> None:
            with anyio.CancelScope() as ending.scope:
                await super().run(**more)  # type: ignore[arg-type]

    # The server has ended by itself before it is to be ended.
    with suppress(RuntimeError), listening(Server("orders", ending.answer)):
        code, out, _ = invoke("status", "orders", "--watch")
    assert code == 0
    assert out.rstrip().endswith("task orders has ended")


def test_watching_tells_that_the_task_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "WATCH_SECONDS", 0.05)
    looks: list[str] = []

    async def once(name: str) -> TaskStatus:
        from actors.control.client import NotRunningError

        looks.append(name)
        if len(looks) > 1:
            raise NotRunningError(name)
        return status()

    monkeypatch.setattr("actors.control.requests.status_of", once)
    with killed("orders") as pid:
        code, _, err = invoke("status", "orders", "--watch")
    assert code == 1
    assert f"its process {pid} is gone" in err


@pytest.mark.parametrize(
    ("sources", "age", "told"),
    [
        ((), None, ""),
        ((SourceStatus("a", "reading"),), 3.0, "nothing saved yet"),
        ((SourceStatus("a", "reading", saved_position="b.1:4"),), 3.0, "saved 3.0 s ago"),
        ((SourceStatus("a", "stopped", saved_position="b.1:4"),), None, ""),
    ],
)
def test_nothing_saved_yet_is_said_where_it_is_so(
    sources: tuple[SourceStatus, ...], age: float | None, told: str
) -> None:
    found = status(sources=sources, writer=WriterStatus(checkpoint_age_seconds=age))
    [line] = [line for line in shown(render(found), 200, terminal=True) if "writer" in line]
    assert ("saved" in line) == bool(told)
    assert told in line


def test_the_socket_of_a_killed_task_of_an_older_version_is_passed_over(tmp_path: Path) -> None:
    path = socket_path("older")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    assert json.loads(invoke("status", "--json")[1]) == []
