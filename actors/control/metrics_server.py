"""The web server of a task: its metrics, its health, and its status as a page. Read only.

Requests are handled in separate threads, so that they do not slow down the actors. Only the status
is collected on the actors' event loop; it is formatted in the thread. The number of simultaneous
clients is limited, and each has a timeout.
"""

from __future__ import annotations

import asyncio
import errno
import http.server
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import structlog
from attrs import define
from prometheus_client.exposition import choose_encoder

from replicator.monitoring.meters import TaskMeters
from replicator.monitoring.metrics import registry_of
from replicator.monitoring.web_page import status_page
from replicator.status import TaskStatus, condition

ANSWER_SECONDS = 5.0
"""Maximum seconds to wait for the status; after that, the actors' event loop counts as stuck."""

CLIENT_SECONDS = 10.0
"""Maximum seconds that a client may be silent."""

CLIENTS = 16
"""Maximum number of clients that are answered at the same time; others are disconnected."""

POLL_SECONDS = 0.1
"""Maximum seconds between the end of the task and the end of the server."""

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_TEXT, _HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"

log = structlog.get_logger()

StatusOf = Callable[[], TaskStatus]
Answer = tuple[int, str, bytes]
"""The code, the content type and the body of an answer."""


class MetricsAddressError(Exception):
    """The server can't listen at the address of the metrics."""


@define(eq=False)
class MetricsServer:
    """Answers GET at ``address``: ``/metrics``, ``/healthz``, ``/readyz`` and ``/``.

    ``status`` is called on the event loop of `run`.
    """

    _address: tuple[str, int]
    _status: StatusOf
    _meters: TaskMeters

    async def run(
        self, *, task_status: anyio.abc.TaskStatus[int] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve until cancelled. `TaskGroup.start` returns the port.

        Raises MetricsAddressError.
        """
        host, port = self._address
        loop = asyncio.get_running_loop()

        def status() -> TaskStatus:
            # anyio's function for this would wait forever if the loop is stuck.
            answer: Future[TaskStatus] = Future()
            loop.call_soon_threadsafe(_tell, answer, self._status)
            return answer.result(ANSWER_SECONDS)

        try:
            server = _Server(host, port, _answers(status, self._meters))
        except OSError as error:
            raise MetricsAddressError(_refused(host, port, error)) from error
        port = server.server_address[1]
        # Start before the first await: shutdown() waits forever if serve_forever() never ran.
        threading.Thread(
            target=server.serve_forever, args=(POLL_SECONDS,), name="metrics", daemon=True
        ).start()
        try:
            log.info("metrics.listening", address=f"{host}:{port}")
            task_status.started(port)
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(server.shutdown)
            server.server_close()


def _tell(answer: Future[TaskStatus], status: StatusOf) -> None:
    try:
        answer.set_result(status())
    except BaseException as error:  # noqa: BLE001  (it is raised where the status was asked for)
        answer.set_exception(error)


def _answers(status: StatusOf, meters: TaskMeters) -> Mapping[str, Callable[[str], Answer]]:
    """Return, by path, a function that takes the client's Accept header and returns the answer."""

    def metrics(takes: str) -> Answer:
        encode, kind = choose_encoder(takes)
        return 200, kind, encode(registry_of(status, meters))

    def page(_: str) -> Answer:
        return 200, _HTML, status_page(status()).encode()

    def health(_: str) -> Answer:
        # A process is healthy if its actors answer. Restarting a task that waits for its operator
        # would not help.
        return 200, _TEXT, f"{condition(status())}\n".encode()

    def readiness(_: str) -> Answer:
        found = status()
        return 200 if found.state == "running" else 503, _TEXT, f"{condition(found)}\n".encode()

    return {"/metrics": metrics, "/": page, "/healthz": health, "/readyz": readiness}


class _Handler(http.server.BaseHTTPRequestHandler):
    """One connection with one request, which is not logged."""

    server: _Server
    timeout = CLIENT_SECONDS
    server_version = "replicator"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer a request. Called by `http.server`."""
        self._send(with_body=True)

    def do_HEAD(self) -> None:
        """Answer without the body."""
        self._send(with_body=False)

    def _send(self, *, with_body: bool) -> None:
        code, kind, body = self._answer(self.path.partition("?")[0])
        self.send_response(code)
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), **_HEADERS}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def _answer(self, path: str) -> Answer:
        answer = self.server.answers.get(path)
        if answer is None:
            return 404, _TEXT, f"there are {', '.join(self.server.answers)}\n".encode()
        try:
            return answer(self.headers.get("Accept", ""))
        except (TimeoutError, RuntimeError):
            # RuntimeError: the event loop is closed, because the task is ending.
            late = f"the task has not reported its status within {ANSWER_SECONDS:g} s\n"
            return 503, _TEXT, late.encode()

    def log_message(self, format: str, *args: Any) -> None:
        """Do nothing: requests are not logged."""


def _refused(host: str, port: int, error: OSError) -> str:
    another = "another address with metrics.listen in the task file, or with --metrics"
    if error.errno == errno.EADDRINUSE:
        return (
            f"metrics: another program has port {port} of {host}, for example another task: each"
            f" needs its own. Name {another}; or end the program that `ss -ltnp sport = :{port}`"
            " shows"
        )
    return f"metrics: {host}:{port} can't be listened at: {error.strerror or error}. Name {another}"


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """The server. Its threads do not prevent the process from ending."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(
        self, host: str, port: int, answers: Mapping[str, Callable[[str], Answer]]
    ) -> None:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family = found[0][0]
        self.answers = answers
        self._room = threading.BoundedSemaphore(CLIENTS)
        super().__init__((host, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a client in a thread, unless there are too many clients."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a client."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of clients that disconnect or send invalid requests."""
        log.debug("metrics.hung-up", reason=str(sys.exc_info()[1]))
