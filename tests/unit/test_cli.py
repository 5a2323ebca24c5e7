from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.from_thread
import pytest
from anyio.abc import SocketStream
from typer.testing import CliRunner

import cli
from actors.control import client
from actors.control.exit_codes import exit_code, innermost
from actors.control.protocol import Reply, Request
from actors.control.server import AlreadyRunningError, ControlServer
from replicator.checks.result import CheckResult
from replicator.checks.run import all_checks
from replicator.status import Fault, TaskStatus, now

DATA_PLANE = {"pyspark", "py4j", "pyarrow", "numba", "numpy", "pandas"}
TASK = """\
name: orders
task-mode: incremental
target-database: {host: 127.0.0.1, port: 1, user: root}
sources:
  - source-id: a
    from: {host: 127.0.0.1, port: 1, user: root}
mysql-instances:
  - source-id: a
    meta: {binlog-name: bin.000001, binlog-pos: 4}
    route-rules: [all]
routes:
  all: {schema-pattern: "s*", table-pattern: "t*", target-schema: d, target-table: t}
"""


@pytest.fixture(autouse=True)
def private_runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="rt-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        monkeypatch.setenv("COLUMNS", "200")
        yield


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    path = tmp_path / "orders.yaml"
    path.write_text(TASK)
    return path


def invoke(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


class Task:
    """A task that obeys, and remembers what it was told."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.fault: Fault | None = None
        self.end_state = "paused"
        self._states = ["running"]

    async def answer(self, request: Request) -> Reply:
        self.commands.append(request.command)
        if request.command == "status":
            state = self._states[0] if len(self._states) == 1 else self._states.pop(0)
            status = TaskStatus("orders", "running", now(), os.getpid(), self.fault).to_dict()
            return Reply(True, {**status, "state": state})
        if request.command == "pause":
            self._states = ["running", "pausing", self.end_state]
        if request.command == "resume" and self._states == ["running"]:
            return Reply(False, error="it is not paused")
        return Reply(True)


@pytest.fixture
def task() -> Iterator[Task]:
    """A task called ``orders`` that listens, in a thread of this process."""
    running = Task()
    with listening(ControlServer("orders", running.answer)):
        yield running


@contextmanager
def listening(server: ControlServer) -> Iterator[None]:
    ready: Future[tuple[anyio.from_thread.BlockingPortal, anyio.CancelScope]] = Future()

    async def serve() -> None:
        portal = anyio.from_thread.BlockingPortal()
        async with portal, anyio.create_task_group() as group:
            await group.start(server.run)
            ready.set_result((portal, group.cancel_scope))

    thread = threading.Thread(target=anyio.run, args=(serve,))
    thread.start()
    portal, scope = ready.result(10)
    try:
        yield
    finally:
        portal.call(scope.cancel)
        thread.join(10)


def test_the_version() -> None:
    code, out, _ = invoke("--version")
    assert code == 0
    assert out.startswith("replicator 0.")


def test_a_comparison_that_reaches_no_server_does_not_say_that_rows_differ(
    task_file: Path,
) -> None:
    code, _, told = invoke("compare", task_file)
    assert code == 2, told
    assert "127.0.0.1" in told


def test_help_names_all_commands() -> None:
    code, out, _ = invoke("--help")
    assert code == 0
    for command in (
        *("run", "check", "compare", "status", "pause", "resume", "stop", "demo"),
        *("show-ddl-locks", "unlock-ddl-lock", "binlog", "encrypt"),
    ):
        assert f" {command} " in out


@pytest.mark.parametrize(
    "arguments",
    [
        ("fly",),
        ("run",),
        ("run", "x.yaml", "--on-error", "ignore"),
        ("run", "x.yaml", "--log-level", "loud"),
        ("status", "orders", "--json", "--watch"),
        ("demo", "--seconds", "0"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    code, _, err = invoke(*arguments)
    assert code == 2
    assert err


@pytest.mark.parametrize(
    ("arguments", "not_needed"),
    [
        (["--help"], {*DATA_PLANE, "pydantic", "pymysql", "structlog", "asyncio"}),
        (["status"], {*DATA_PLANE, "pydantic", "pymysql", "structlog", "yaml"}),
        (["status", "x"], {*DATA_PLANE, "pydantic", "pymysql", "structlog", "yaml"}),
    ],
)
def test_quick_commands_import_nothing_of_the_slow_ones(
    arguments: list[str], not_needed: set[str]
) -> None:
    told = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "cli", *arguments],
        cwd=Path(cli.__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    ).stderr
    imported = set(re.findall(r"\| +(\w+)$", told, re.MULTILINE))
    assert "typer" in imported
    assert imported & not_needed == set()


@pytest.mark.parametrize("command", ["run", "check", "status", "pause", "resume", "stop"])
def test_a_task_file_that_is_missing(command: str, tmp_path: Path) -> None:
    code, _, err = invoke(command, tmp_path / "missing.yaml")
    assert code == 2
    assert "missing.yaml" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("command", ["run", "check", "status"])
def test_a_task_file_with_faults(command: str, task_file: Path) -> None:
    task_file.write_text(TASK.replace("task-mode", "task-mood"))
    code, _, err = invoke(command, task_file)
    assert code == 2
    assert "task-mode" in err
    assert "orders.yaml:2" in err


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("status", []),
        ("pause", []),
        ("resume", []),
        ("stop", []),
        ("show-ddl-locks", []),
        ("unlock-ddl-lock", ["d.t:1"]),
    ],
)
def test_a_task_that_does_not_run(command: str, arguments: list[str], task_file: Path) -> None:
    for name in ("orders", task_file):
        code, _, err = invoke(command, name, *arguments)
        assert code == 3
        assert "'orders'" in err


def test_a_log_file_that_cannot_be_written(task_file: Path, tmp_path: Path) -> None:
    code, _, err = invoke("run", task_file, "--log-file", tmp_path / "missing" / "log")
    assert code == 2
    assert "--log-file" in err


def test_a_runtime_folder_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/nowhere/at/all")
    code, _, err = invoke("status", "orders")
    assert code == 1
    assert "XDG_RUNTIME_DIR" in err


def test_status_by_name_and_by_file(task: Task, task_file: Path) -> None:
    for name in ("orders", task_file):
        code, out, _ = invoke("status", name)
        assert code == 0
        assert "orders" in out
        assert "running" in out


def test_the_tasks_of_this_host(task: Task) -> None:
    code, out, _ = invoke("status")
    assert code == 0
    assert {"orders", "running", str(os.getpid())} <= set(out.split())
    code, out, _ = invoke("status", "--json")
    [found] = json.loads(out)
    assert (code, found["task"]) == (0, "orders")
    assert task.commands == ["status", "status"]


def test_a_host_without_tasks() -> None:
    code, out, _ = invoke("status")
    assert (code, out.strip()) == (0, "no task runs here as this user")
    assert json.loads(invoke("status", "--json")[1]) == []
    assert invoke("status", "--watch")[0] == 2


def test_status_as_json(task: Task) -> None:
    task.fault = Fault("a.b", "[bold]it's\\broken[/]", "source a", (), now())
    code, out, _ = invoke("status", "orders", "--json")
    assert code == 0
    assert json.loads(out)["error"]["message"] == "[bold]it's\\broken[/]"
    assert TaskStatus.from_dict(json.loads(out)).state == "running"


def test_status_shows_a_fault_as_it_was_written(task: Task) -> None:
    task.fault = Fault("a.b", "[bold]it's\\broken[/]", "source a", ("mend [it]",), now())
    _, out, _ = invoke("status", "orders")
    assert "[bold]it's\\broken[/]" in out
    assert "mend [it]" in out


def test_pause_waits_until_it_is_done(task: Task) -> None:
    code, out, _ = invoke("pause", "orders")
    assert code == 0
    assert "paused" in out
    assert task.commands == ["pause", "status", "status", "status"]


def test_pause_of_a_task_that_ends_instead(task: Task) -> None:
    task.end_state = "stopped"
    code, _, err = invoke("pause", "orders")
    assert code == 1
    assert "stopped" in err


def test_a_paused_task_resumes(task: Task) -> None:
    assert invoke("pause", "orders")[0] == 0
    code, out, _ = invoke("resume", "orders")
    assert code == 0
    assert "orders" in out


def test_a_refusal_is_told(task: Task) -> None:
    code, _, err = invoke("resume", "orders")
    assert code == 1
    assert "it is not paused" in err


def test_stop_waits_for_the_end_of_the_process(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []

    async def wait(stream: SocketStream) -> None:
        waited.append("until it hangs up")

    monkeypatch.setattr(client, "_hung_up", wait)
    monkeypatch.setattr(client, "LAST_STEP_SECONDS", 0)
    code, out, _ = invoke("stop", "orders")
    assert code == 0
    assert "has ended" in out
    assert task.commands == ["stop"]
    assert waited == ["until it hangs up"]


def test_the_error_inside_nested_groups_decides() -> None:
    inner = AlreadyRunningError("orders", 7)
    group = BaseExceptionGroup("outer", [BaseExceptionGroup("inner", [inner])])
    assert innermost(group) is inner
    assert exit_code(inner) == 1
    assert exit_code(KeyError()) is None


def test_check_of_servers_that_are_away(task_file: Path) -> None:
    code, out, _ = invoke("check", task_file)
    assert code == 1
    assert "can't run" in out
    code, out, _ = invoke("check", task_file, "--json")
    assert code == 1
    found = json.loads(out)
    assert (found["task"], found["passed"]) == ("orders", False)
    assert {check["where"] for check in found["checks"]} == {"a", "target"}
    assert set(found["checks"][0]) == {"name", "where", "state", "finding", "remedies"}


def test_check_shows_what_passed_and_what_to_mend(
    task_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(task: object, ignore: frozenset[str]) -> list[CheckResult]:
        assert ignore == {"version"}
        return [
            CheckResult("binlog_enable", "a", "passed", "it [does]"),
            CheckResult("server_id", "a", "warning", "is 0", ("SET it",)),
        ]

    monkeypatch.setattr(all_checks, "run_checks", found)
    task_file.write_text(TASK + "ignore-checking-items: [version]\n")
    code, out, _ = invoke("check", task_file, "--keys", "none")
    assert code == 0
    assert "it [does]" not in out
    code, out, _ = invoke("check", task_file, "--keys", "none", "--verbose")
    assert code == 0
    for expected in (
        "it [does]",
        "remedies:",
        "SET it",
        "1 passed, 1 with a warning, 0 failed",
        "can run",
    ):
        assert expected in out


def test_check_says_that_a_task_starts_whose_shards_share_keys(
    task_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(task: object, ignore: frozenset[str]) -> list[CheckResult]:
        return [CheckResult("key_collisions", "target", "failed", "twice", ("Renumber",))]

    monkeypatch.setattr(all_checks, "run_checks", found)
    code, out, _ = invoke("check", task_file, "--keys", "none")
    assert code == 1
    assert "the task starts" in out
    assert "can't run" not in out


def test_a_machine_without_java(task_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from replicator.pipeline.spark import java as java_home

    def missing() -> str:
        raise java_home.JavaMissingError("install openjdk")

    monkeypatch.setattr(java_home, "find_java_home", missing)
    code, _, err = invoke("run", task_file)
    assert code == 1
    assert "install openjdk" in err


def test_a_java_home_without_java(task_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    code, _, err = invoke("run", task_file)
    assert code == 1
    assert "/nowhere" in err
