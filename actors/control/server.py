"""The control socket of a running task.

A lock file beside the socket shows whether a task of this name runs: its lock belongs to the
process and ends with it, however the process ends. So the socket of a killed process is replaced,
and a second process of the same task is refused.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio
import structlog
from anyio.abc import SocketAttribute, SocketStream, TaskStatus
from anyio.streams.buffered import BufferedByteReceiveStream

from actors.control.lock_file import LockFile
from actors.control.protocol import (
    REQUEST_LIMIT,
    STOP,
    ControlError,
    Reply,
    Request,
    decode_request,
    encode_reply,
    socket_path,
)
from actors.control.task_records import note_begun, note_ended

_kept_open: list[int] = []
"""Connections that are closed only when the process ends."""

TALK_SECONDS = 10.0
"""Maximum seconds for a client to send its request, and to read the reply."""
BACKLOG = 64
ATTEMPTS = 10
"""Number of attempts to lock the lock file before a starting task reports that the task runs."""
LOOK_SECONDS = 0.05

log = structlog.get_logger()


class AlreadyRunningError(Exception):
    """Another process runs this task as this user on this host; ``pid`` is 0 if unknown."""

    def __init__(self, task_name: str, pid: int) -> None:
        super().__init__(
            f"task {task_name!r} already runs (process {pid or 'unknown'}). "
            f"`replicator stop {task_name}` ends it"
        )
        self.pid = pid


class ControlServer:
    """Answers the requests of the command line, one per connection.

    ``answer`` is called in the event loop of `run`, for several clients at a time. Its exceptions
    end the server, so that its supervisor gets them. A client that does not send a valid request
    gets an error, and a client that sends nothing or no complete line is disconnected; neither
    disturbs other clients.
    """

    def __init__(self, task_name: str, answer: Callable[[Request], Awaitable[Reply]]) -> None:
        self._task_name = task_name
        self._answer = answer

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled, then remove the socket.

        `TaskGroup.start` returns once clients can connect. Raises AlreadyRunningError, and
        ControlError if the socket can't be made.
        """
        path = socket_path(self._task_name)
        async with self._lock(path.with_suffix(".lock")):
            await self._refuse_second(path)
            try:
                listener = await anyio.create_unix_listener(path, mode=0o600, backlog=BACKLOG)
            except OSError as error:
                raise ControlError(f"the control socket {path} can't be made: {error}") from error
            try:
                self._note(note_begun)
                async with listener:
                    task_status.started()
                    await listener.serve(self._talk)
            finally:
                self._note(note_ended)
                path.unlink(missing_ok=True)

    def _note(self, note: Callable[[str], None]) -> None:
        """Record for `replicator status` that the task runs, or has ended; only log a failure."""
        try:
            note(self._task_name)
        except OSError as error:
            log.warning("control.not-noted", error=str(error))

    @asynccontextmanager
    async def _lock(self, path: Path) -> AsyncIterator[None]:
        try:
            lock = LockFile(path)
        except OSError as error:
            raise ControlError(f"the lock file {path} can't be made: {error}") from error
        with closing(lock):
            # `replicator status` locks the file for a moment to check whether the task runs.
            for _ in range(ATTEMPTS):
                if acquired := lock.acquire():
                    break
                await anyio.sleep(LOOK_SECONDS)
            if not acquired:
                pid = lock.holder()
                raise AlreadyRunningError(self._task_name, int(pid) if pid.isdecimal() else 0)
            yield

    async def _refuse_second(self, path: Path) -> None:
        # The lock file of a running process may have been removed, so also ask its socket.
        try:
            stream = await anyio.connect_unix(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return
        except OSError as error:
            raise ControlError(f"the control socket {path} can't be used: {error}") from error
        await stream.aclose()
        raise AlreadyRunningError(self._task_name, 0)

    async def _talk(self, stream: SocketStream) -> None:
        async with stream:
            try:
                with anyio.fail_after(TALK_SECONDS):
                    line = await BufferedByteReceiveStream(stream).receive_until(
                        b"\n", REQUEST_LIMIT
                    )
                request = decode_request(line)
            except ControlError as error:
                await self._send(stream, Reply(False, error=str(error)))
            except (
                TimeoutError,
                anyio.DelimiterNotFound,
                anyio.IncompleteRead,
                anyio.BrokenResourceError,
            ) as error:
                log.debug("control.hung-up", reason=type(error).__name__)
            else:
                reply = await self._answer(request)
                if request.command == STOP and reply.ok:
                    _keep_open(stream)
                await self._send(stream, reply)

    async def _send(self, stream: SocketStream, reply: Reply) -> None:
        try:
            # Shielded, because a request to stop may end the server before its reply is sent.
            with anyio.fail_after(TALK_SECONDS, shield=True):
                await stream.send(encode_reply(reply))
        except (TimeoutError, anyio.BrokenResourceError) as error:
            log.debug("control.hung-up", reason=type(error).__name__)


def _keep_open(stream: SocketStream) -> None:
    """Keep a connection open until the process ends, so that its client notices the end."""
    _kept_open.append(os.dup(stream.extra(SocketAttribute.raw_socket).fileno()))
