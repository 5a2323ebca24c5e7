"""A task as a service: its unit, as systemd reads it, and what goes to a real notify socket."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from actors.service.systemd_notify import GRACE_SECONDS, ServiceManager, status_line
from actors.service.systemd_unit import systemd_unit, unit_file_name
from replicator.status import TaskState, TaskStatus, now
from tests.unit.replicator.test_status import FULL
from tests.unit.test_cli import invoke

EXAMPLE = Path(__file__).parents[4] / "config" / "examples" / "merge-two-sources.yaml"
EXTENDED = f"EXTEND_TIMEOUT_USEC={GRACE_SECONDS * 1_000_000}"


def status(state: TaskState) -> TaskStatus:
    return TaskStatus("orders", state, now(), 7)


@contextmanager
def notify_socket(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reader:
        reader.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        reader.settimeout(10)
        yield reader


def address_of(kind: str, folder: Path) -> str:
    return f"@replicator-test-{os.getpid()}" if kind == "abstract" else str(folder / "notify")


def told(reader: socket.socket) -> list[str]:
    return reader.recv(65536).decode().split("\n")


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_systemd_is_told_of_each_state(kind: str, tmp_path: Path) -> None:
    address = address_of(kind, tmp_path)
    manager = ServiceManager({"NOTIFY_SOCKET": address})
    states: list[TaskState] = ["starting", "running", "starting", "paused", "stopping"]
    with notify_socket(address) as reader:
        found = []
        for state in states:
            manager.beat(status(state))
            line, *rest = told(reader)
            assert line.startswith(f"STATUS={state}")
            found.append(rest)
    assert found == [
        ["WATCHDOG=1", EXTENDED],
        ["WATCHDOG=1", "READY=1"],
        ["WATCHDOG=1"],
        ["WATCHDOG=1"],
        ["WATCHDOG=1", "STOPPING=1", EXTENDED],
    ]


def test_a_task_that_waits_for_its_operator_is_ready(tmp_path: Path) -> None:
    address = address_of("path", tmp_path)
    with notify_socket(address) as reader:
        ServiceManager({"NOTIFY_SOCKET": address}).beat(status("paused"))
        assert "READY=1" in told(reader)


@pytest.mark.parametrize(
    ("environment", "least"),
    [
        ({"WATCHDOG_USEC": "30000"}, 3),
        ({"WATCHDOG_USEC": "30000", "WATCHDOG_PID": str(os.getpid())}, 3),
        ({"WATCHDOG_USEC": "30000", "WATCHDOG_PID": "1"}, 1),
        ({"WATCHDOG_USEC": "0"}, 1),
        ({"WATCHDOG_USEC": "x"}, 1),
    ],
    ids=["watchdog", "ours", "of another", "zero", "text"],
)
def test_the_event_loop_beats_as_often_as_the_watchdog_wants(
    environment: dict[str, str], least: int, tmp_path: Path
) -> None:
    address = address_of("path", tmp_path)

    async def live(reader: socket.socket) -> int:
        beats = 0
        async with anyio.create_task_group() as tasks:
            manager = ServiceManager({"NOTIFY_SOCKET": address, **environment})
            tasks.start_soon(manager.keep, lambda: status("running"))
            while beats < least:
                found = await anyio.to_thread.run_sync(told, reader)
                beats += "WATCHDOG=1" in found
            tasks.cancel_scope.cancel()
        return beats

    with notify_socket(address) as reader:
        assert anyio.run(live, reader) == least
        reader.settimeout(0.01)
        last: list[str] = []
        with suppress(TimeoutError):
            while True:
                last = told(reader)
        assert last == ["STOPPING=1"]


@pytest.mark.parametrize("address", ["", "/nowhere/at.all", "relative", "@", "/" * 300])
def test_a_task_goes_on_where_nobody_reads(address: str) -> None:
    async def live() -> None:
        with anyio.move_on_after(0.02):
            manager = ServiceManager({"NOTIFY_SOCKET": address})
            await manager.keep(lambda: status("running"))

    anyio.run(live)


def test_a_socket_that_is_full_is_not_waited_for(tmp_path: Path) -> None:
    address = address_of("path", tmp_path)
    manager = ServiceManager({"NOTIFY_SOCKET": address})
    with notify_socket(address):
        for _ in range(1000):
            manager.beat(status("running"))


def test_the_line_of_the_status_is_one_line_and_says_who_must_act() -> None:
    line = status_line(replace(FULL, task="a\nREADY=1"))
    assert "\n" not in line
    assert "needs you: `replicator status" in line


def unit(**more: str) -> str:
    folder = more.get("folder", "/etc/replicator")
    command = ["/usr/bin/env", "run", f"{folder}/{more.get('file', 'orders.yaml')}"]
    environment = {"JAVA_HOME": more.get("java", "/usr/lib/jvm")}
    return systemd_unit(
        more.get("task", "orders"), command, folder, "replicator", environment, ["SHARD_PASSWORD"]
    )


def analyzed(text: str, name: str, folder: Path, *arguments: str) -> str:
    """What systemd-analyze says of a unit. It fails where that finds something wrong."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed: the unit is not verified")
    file = folder / name
    file.write_text(text)
    done = subprocess.run(
        [program, *arguments, str(file)], capture_output=True, text=True, timeout=60, check=False
    )
    if "Failed to initialize manager" in done.stderr:
        pytest.skip(f"systemd-analyze does not work here: {done.stderr}")
    ours = [line for line in done.stderr.splitlines() if name in line]
    assert (done.returncode, ours) == (0, []), done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"task": "Ünited/order % s"},
        {"folder": "/tmp", "file": 'a "b" 100% $HOME \\ ü.yaml'},
        {"java": "/opt/my java/100%"},
    ],
    ids=["plain", "task", "file", "java"],
)
def test_systemd_takes_the_unit(odd: dict[str, str], tmp_path: Path) -> None:
    analyzed(unit(**odd), unit_file_name(odd.get("task", "orders")), tmp_path, "verify")


def test_systemd_rates_the_unit_as_safe(tmp_path: Path) -> None:
    arguments = ("security", "--offline=true", "--threshold=25", "--no-pager")
    said = analyzed(unit(), "replicator-orders.service", tmp_path, *arguments)
    assert "NoNewPrivileges=" in said


def test_words_are_quoted_as_systemd_reads_them() -> None:
    lines = unit(folder="/a b", file="$x 100%.yaml", java="/j\\a").splitlines()
    assert 'ExecStart=/usr/bin/env run "/a b/$$x 100%%.yaml"' in lines
    assert "WorkingDirectory=/a b" in lines
    assert 'Environment="JAVA_HOME=/j\\\\a"' in lines
    assert unit_file_name("a/b c") == "replicator-a\\x2fb\\x20c.service"
    for line in ("Restart=on-failure", "RestartPreventExitStatus=2", "KillMode=mixed"):
        assert line in lines


def test_a_line_break_makes_no_setting() -> None:
    with pytest.raises(ValueError, match="control character"):
        unit(folder="/a\nExecStartPre=/bin/false")
    assert "\nUser=root" not in unit(task="x\nUser=root")


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/opt/java")
    monkeypatch.setenv("TARGET_PASSWORD", "open sesame")
    monkeypatch.setenv("SHARD_PASSWORD", "open sesame")
    code, out, _ = invoke("service", str(EXAMPLE), "--user", "merge")
    assert code == 0
    lines = out.splitlines()
    assert {"User=merge", "Type=notify", "Environment=JAVA_HOME=/opt/java"} <= {*lines}
    [start] = [line for line in lines if line.startswith("ExecStart=")]
    assert start.endswith(f" run {EXAMPLE}")
    assert "open sesame" not in out
    [at] = [place for place, line in enumerate(lines) if line.startswith("EnvironmentFile=/etc/")]
    assert lines[at - 1].endswith(": SHARD_PASSWORD, TARGET_PASSWORD")
    code, _, err = invoke("service", str(EXAMPLE), "--user", "a b")
    assert code == 2
    assert "name a user of this host" in err
