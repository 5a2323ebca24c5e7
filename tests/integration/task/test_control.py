"""The control socket, over real Unix sockets."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from actors.control import client, server
from actors.control.client import NotRunningError, ask, end
from actors.control.protocol import (
    REQUEST_LIMIT,
    ControlError,
    Reply,
    Request,
    runtime_dir,
    socket_path,
)
from actors.control.server import AlreadyRunningError, ControlServer
from tests.support.tasks.running import PATIENCE


@pytest.fixture(autouse=True)
def private_runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # Not tmp_path: a socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="rt-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


async def echo(request: Request) -> Reply:
    return Reply(True, {"command": request.command, **request.arguments})


@asynccontextmanager
async def serving(
    task: str = "orders", answer: Callable[[Request], Awaitable[Reply]] = echo
) -> AsyncIterator[None]:
    async with anyio.create_task_group() as group:
        await group.start(ControlServer(task, answer).run)
        yield
        group.cancel_scope.cancel()


async def raw(line: bytes) -> bytes:
    """Send bytes as they are and return all that comes back."""
    stream = await anyio.connect_unix(socket_path("orders"))
    received = b""
    async with stream:
        await stream.send(line)
        await stream.send_eof()
        async for segment in stream:
            received += segment
    return received


async def test_a_request_gets_its_reply() -> None:
    async with serving():
        reply = await ask("orders", Request("hello", {"name": "Zoë\n", "n": 3}))
    assert reply == Reply(True, {"command": "hello", "name": "Zoë\n", "n": 3}, pid=os.getpid())


async def test_a_refusal_reaches_the_client() -> None:
    async def refuse(request: Request) -> Reply:
        return Reply(False, error=f"{request.command}: not now")

    async with serving(answer=refuse):
        reply = await ask("orders", Request("pause"))
    assert (reply.ok, reply.error) == (False, "pause: not now")


async def test_a_request_that_ends_the_server_gets_its_reply() -> None:
    async with anyio.create_task_group() as group:

        async def end(request: Request) -> Reply:
            group.cancel_scope.cancel()
            return await echo(request)

        await group.start(ControlServer("orders", end).run)
        replies = []

        async def client() -> None:
            with anyio.CancelScope(shield=True):
                replies.append(await ask("orders", Request("stop")))

        group.start_soon(client)
    assert [reply.ok for reply in replies] == [True]


async def test_a_slow_answer_does_not_hold_up_other_clients() -> None:
    first_asked, release = anyio.Event(), anyio.Event()
    replies: list[Reply] = []

    async def answer(request: Request) -> Reply:
        if request.command == "slow":
            first_asked.set()
            await release.wait()
        return await echo(request)

    async def ask_slowly() -> None:
        replies.append(await ask("orders", Request("slow")))

    async with serving(answer=answer), anyio.create_task_group() as group:
        group.start_soon(ask_slowly)
        await first_asked.wait()
        assert (await ask("orders", Request("quick"))).body["command"] == "quick"
        assert not replies
        release.set()
    assert replies[0].body["command"] == "slow"


async def test_only_the_user_can_reach_the_socket() -> None:
    async with serving():
        path = socket_path("orders")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_the_socket_goes_with_the_server() -> None:
    async with serving():
        path = socket_path("orders")
        assert path.exists()
    assert not path.exists()
    with pytest.raises(NotRunningError, match="orders"):
        await ask("orders", Request("status"))


async def test_a_socket_left_behind_means_not_running_and_is_replaced() -> None:
    path = socket_path("orders")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        dead.listen()
    assert path.exists()
    with pytest.raises(NotRunningError):
        await ask("orders", Request("status"))
    async with serving():
        assert (await ask("orders", Request("status"))).ok


async def test_a_second_task_of_the_name_is_refused_and_the_first_lives_on() -> None:
    async with serving():
        with pytest.raises(AlreadyRunningError, match=str(os.getpid())):
            await ControlServer("orders", echo).run()
        assert (await ask("orders", Request("status"))).ok
        async with serving("customers"):
            assert (await ask("customers", Request("status"))).ok


async def test_a_look_at_the_lock_file_does_not_keep_a_task_from_starting() -> None:
    """`replicator status` locks the file for a moment, shared, to know whether the task runs."""
    path = socket_path("orders").with_suffix(".lock")
    path.touch()
    with path.open("r+b") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ControlServer("orders", echo).run)
            await anyio.wait_all_tasks_blocked()
            fcntl.flock(looking, fcntl.LOCK_UN)
            with anyio.fail_after(PATIENCE):
                while not socket_path("orders").exists():
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()


async def test_a_live_socket_is_not_replaced_even_without_its_lock_file() -> None:
    async with serving():
        socket_path("orders").with_suffix(".lock").unlink()
        with pytest.raises(AlreadyRunningError):
            await ControlServer("orders", echo).run()
        assert (await ask("orders", Request("status"))).ok


async def test_what_the_answer_raises_ends_the_server() -> None:
    async def fail(request: Request) -> Reply:
        raise TimeoutError(f"broken: {request.command}")

    async def serve_one() -> None:
        async with serving(answer=fail):
            with pytest.raises(ControlError, match="without an answer"):
                await ask("orders", Request("status"))
            await anyio.sleep_forever()

    with pytest.raises(ExceptionGroup) as caught:
        await serve_one()
    assert caught.group_contains(TimeoutError, match="broken: status")


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        (b"\n", "JSON"),
        (b"\xff\xfe\n", "JSON"),
        (b"[" * 50_000 + b"\n", "JSON"),
        (b"[]\n", "object"),
        (b'{"version": 1}\n', "command"),
        (b'{"version": 1, "command": "a", "arguments": 3}\n', "arguments"),
        (b'{"version": 2, "command": "status"}\n', "version 2 where 1"),
    ],
)
async def test_bad_requests_get_an_error_and_disturb_nobody(line: bytes, finding: str) -> None:
    async with serving():
        reply = json.loads(await raw(line))
        assert reply["ok"] is False
        assert finding in reply["error"]
        assert (await ask("orders", Request("status"))).ok


async def test_half_a_request_is_hung_up_on() -> None:
    async with serving():
        assert await raw(b'{"version": 1, "comm') == b""
        assert (await ask("orders", Request("status"))).ok


async def test_a_request_without_an_end_is_hung_up_on() -> None:
    async with serving():
        with pytest.raises(anyio.BrokenResourceError):
            await raw(b"x" * (4 * REQUEST_LIMIT))
        assert (await ask("orders", Request("status"))).ok


async def test_a_client_that_says_nothing_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "TALK_SECONDS", 0.05)
    async with serving():
        stream = await anyio.connect_unix(socket_path("orders"))
        async with stream:
            with pytest.raises(anyio.EndOfStream):
                await stream.receive()


async def test_a_request_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(ControlError, match="at most"):
        await ask("orders", Request("status", {"filler": "x" * REQUEST_LIMIT}))


async def test_a_task_that_does_not_answer_in_time() -> None:
    async def never(request: Request) -> Reply:
        await anyio.sleep_forever()
        raise AssertionError(request)

    async with serving(answer=never):
        with pytest.raises(ControlError, match="did not answer 'pause' within"):
            await ask("orders", Request("pause"), timeout=0.05)


async def test_a_killed_process_is_replaced_and_its_end_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered = anyio.Event()
    hung_up = client._hung_up

    async def waits(stream: SocketStream) -> None:
        answered.set()
        await hung_up(stream)

    monkeypatch.setattr(client, "_hung_up", waits)
    program = (
        "import anyio; from actors.control.protocol import Reply\n"
        "from actors.control.server import ControlServer\n"
        "async def answer(request): return Reply(True)\n"
        "anyio.run(ControlServer('orders', answer).run)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program])  # noqa: ASYNC220
    try:
        with anyio.fail_after(20):
            while True:
                try:
                    reply = await ask("orders", Request("status"))
                    break
                except NotRunningError:
                    await anyio.sleep(0.05)
        assert reply.pid == process.pid
        with pytest.raises(AlreadyRunningError) as refused:
            await ControlServer("orders", echo).run()
        assert refused.value.pid == process.pid
        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(end, "orders")
                await answered.wait()
                process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    assert socket_path("orders").exists()
    async with serving():
        assert (await ask("orders", Request("status"))).pid == os.getpid()


ENDING = """
import anyio, sys, time
from pathlib import Path
from actors.control.protocol import Reply
from actors.control.server import ControlServer

async def main():
    async with anyio.create_task_group() as group:
        async def answer(request):
            if request.command == "stop":
                group.cancel_scope.cancel()
            return Reply(True)
        await group.start(ControlServer("orders", answer).run)
        print("runs", flush=True)

anyio.run(main)
# The server is gone, the process is not.
time.sleep(0.5)
Path(sys.argv[1]).touch()
"""

STOPPING = """
import anyio, sys
from pathlib import Path
from actors.control.requests import stop_task
anyio.run(stop_task, "orders")
print("ended" if Path(sys.argv[1]).exists() else "lives")
"""

ELSEWHERE = ("unshare", "--pid", "--fork", "--mount-proc")


@pytest.mark.parametrize(
    ("there", "here"), [((), ()), ((), ELSEWHERE), (ELSEWHERE, ()), (ELSEWHERE, ELSEWHERE)]
)
def test_the_end_of_a_process_is_seen_from_a_container(
    there: tuple[str, ...], here: tuple[str, ...], tmp_path: Path
) -> None:
    """Its number is no process there, or another one."""
    if (there or here) and subprocess.run([*ELSEWHERE, "true"], capture_output=True).returncode:
        pytest.skip("a PID namespace needs root")
    last = tmp_path / "last"
    with subprocess.Popen(
        [*there, sys.executable, "-c", ENDING, str(last)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"runs\n"
        stopped = subprocess.run(
            [*here, sys.executable, "-c", STOPPING, str(last)],
            capture_output=True,
            timeout=60,
            check=True,
        )
        assert stopped.stdout == b"ended\n"


def test_names_of_every_kind_get_a_socket_of_their_own(private_runtime: Path) -> None:
    names = ["a", "a b", "../a", "a/b", "..", "x" * 300, "x" * 301, "añ", "%"]
    paths = [socket_path(name) for name in names]
    assert len(set(paths)) == len(names)
    assert {path.parent for path in paths} == {private_runtime / "replicator"}


def test_a_runtime_folder_that_is_too_deep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    with pytest.raises(ControlError, match="shorter path"):
        socket_path("orders")


def test_a_runtime_folder_open_to_others_is_refused(private_runtime: Path) -> None:
    (private_runtime / "replicator").mkdir()
    (private_runtime / "replicator").chmod(0o755)
    with pytest.raises(ControlError, match="chmod 700"):
        runtime_dir()


def test_a_runtime_folder_that_is_a_link_is_refused(private_runtime: Path) -> None:
    (private_runtime / "elsewhere").mkdir(mode=0o700)
    (private_runtime / "replicator").symlink_to(private_runtime / "elsewhere")
    with pytest.raises(ControlError, match="not a folder of"):
        runtime_dir()


def test_a_runtime_folder_that_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "gone"))
    with pytest.raises(ControlError, match="XDG_RUNTIME_DIR"):
        runtime_dir()
