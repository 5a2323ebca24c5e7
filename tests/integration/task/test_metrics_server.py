"""The metrics of a task over HTTP, and the page in a real browser."""

from __future__ import annotations

import http.client
import shutil
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from actors.control import metrics_server
from actors.control.metrics_server import CLIENTS, MetricsAddressError, MetricsServer
from replicator.monitoring.meters import TaskMeters
from replicator.status import TaskStatus, now
from tests.unit.replicator.monitoring.test_web_page import STATUS

RUNNING = replace(STATUS, state="running")


@asynccontextmanager
async def serving(status: Callable[[], TaskStatus] = lambda: RUNNING) -> AsyncIterator[int]:
    """A server; its port."""
    async with anyio.create_task_group() as tasks:
        port = await tasks.start(MetricsServer(("127.0.0.1", 0), status, TaskMeters()).run)
        yield port
        tasks.cancel_scope.cancel()


async def answer(port: int, path: str, method: str = "GET") -> tuple[int, dict[str, str], str]:
    def ask() -> tuple[int, dict[str, str], str]:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            connection.request(method, path)
            found = connection.getresponse()
            return found.status, dict(found.getheaders()), found.read().decode()

    return await anyio.to_thread.run_sync(ask)


async def test_each_path_has_its_answer() -> None:
    async with serving() as port:
        code, headers, text = await answer(port, "/metrics?x=1")
        assert (code, headers["Content-Type"].split(";")[0]) == (200, "text/plain")
        assert 'replicator_source_lag_seconds{source="a",task="orders"} 1.5' in text
        code, headers, text = await answer(port, "/")
        assert (code, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "two shards carry the key [7]" in text
        assert (await answer(port, "/healthz"))[::2] == (200, "blocked (3 parts)\n")
        assert (await answer(port, "/readyz"))[::2] == (200, "blocked (3 parts)\n")
        assert (await answer(port, "/", "HEAD"))[::2] == (200, "")
        assert (await answer(port, "/etc/passwd"))[0] == 404
        assert (await answer(port, "/", "POST"))[0] == 501


@pytest.mark.parametrize("state", ["starting", "paused", "stopping"])
async def test_only_a_task_that_works_is_ready(state: str) -> None:
    status = TaskStatus("orders", state, now(), 1)  # type: ignore[arg-type]
    async with serving(lambda: status) as port:
        assert (await answer(port, "/readyz"))[0] == 503
        assert (await answer(port, "/healthz"))[0] == 200


async def test_an_event_loop_that_hangs_is_not_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "ANSWER_SECONDS", 0.2)
    asked, release = threading.Event(), threading.Event()

    def hangs() -> TaskStatus:
        asked.set()
        release.wait(30)
        return RUNNING

    async with serving(hangs) as port, anyio.create_task_group() as tasks:
        found: list[int] = []

        def ask() -> None:
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
                connection.request("GET", "/healthz")
                found.append(connection.getresponse().status)
                release.set()

        # The loop itself hangs, so that a thread has to ask.
        thread = threading.Thread(target=ask)
        thread.start()
        await anyio.to_thread.run_sync(thread.join)
        assert asked.is_set()
        assert found == [503]
        tasks.cancel_scope.cancel()


async def test_silent_clients_keep_out_others_no_longer_than_their_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics_server._Handler, "timeout", 0.5)
    async with serving() as port:
        connect = partial(socket.create_connection, ("127.0.0.1", port), 30)
        silent = [await anyio.to_thread.run_sync(connect) for _ in range(CLIENTS)]
        try:
            with anyio.fail_after(30):
                while True:
                    try:
                        code, *_ = await answer(port, "/healthz")
                    except (http.client.RemoteDisconnected, ConnectionResetError):
                        # There is no room yet.
                        continue
                    break
            assert code == 200
        finally:
            for connection in silent:
                connection.close()


async def test_an_address_that_is_taken_is_an_error_that_says_what_to_do() -> None:
    async with serving() as port:
        server = MetricsServer(("127.0.0.1", port), lambda: RUNNING, TaskMeters())
        told = f"another program has port {port} of 127.0.0.1.*metrics.listen.*sport = :{port}"
        with pytest.raises(MetricsAddressError, match=told):
            await server.run()


async def test_an_address_of_another_host_is_an_error_that_says_what_to_do() -> None:
    server = MetricsServer(("192.0.2.1", 9216), lambda: RUNNING, TaskMeters())
    told = "192.0.2.1:9216 can't be listened at: .*metrics.listen"
    with pytest.raises(MetricsAddressError, match=told):
        await server.run()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_page_in_a_browser(tmp_path: Path, scheme: str) -> None:
    """What a browser makes of it: all parts, within its width, in the colours that it asks for."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    async with serving() as port:
        picture = tmp_path / f"{scheme}.png"
        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path}/d",
        ]
        dark = ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"]
        wanted = dark if scheme == "dark" else []
        command = [browser, *options, *wanted, "--window-size=1200,1400"]
        shot = [*command, f"--screenshot={picture}", f"http://127.0.0.1:{port}/"]
        await anyio.run_process(shot, check=True)
        seen = await anyio.run_process([*command, "--dump-dom", f"http://127.0.0.1:{port}/"])
    assert picture.stat().st_size > 10_000
    assert b"two shards carry the key [7]" in seen.stdout
