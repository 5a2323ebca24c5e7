"""Sends requests to a running task from another process of the same user."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import unquote

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from actors.control.protocol import (
    REPLY_LIMIT,
    STOP,
    ControlError,
    Reply,
    Request,
    decode_reply,
    encode_request,
    runtime_dir,
    socket_path,
)
from actors.control.task_records import find_record, records, was_killed

DEFAULT_TIMEOUT = 30.0
"""Seconds to wait for a reply."""

LIST_TIMEOUT = 5.0
"""Seconds for the reply of each task when all tasks are asked."""

LAST_STEP_SECONDS = 5.0
"""Maximum seconds between the closing of a process's files and its end."""


class NotRunningError(Exception):
    """No task of this name runs as this user on this host."""

    def __init__(self, task_name: str, more: str = "") -> None:
        super().__init__(
            f"no task {task_name!r} runs here. `replicator run TASK.yaml` starts it; the task of "
            f"another user or host can't be reached{more}"
        )


class RunsElsewhereError(NotRunningError):
    """A process that can't be reached from here runs the task; ``holder`` says which."""

    def __init__(self, task_name: str, holder: str) -> None:
        Exception.__init__(
            self,
            f"task {task_name!r} is run by {holder}. Ask there, as the user who runs it: only"
            " what the task has saved is visible from here, and that is older",
        )


async def ask(task_name: str, request: Request, *, timeout: float = DEFAULT_TIMEOUT) -> Reply:  # noqa: ASYNC109
    """Send a request to a running task and return its reply.

    ``timeout`` is in seconds. Raises NotRunningError, and ControlError if the task does not answer
    in time, closes the connection, or uses another version of the protocol.
    """
    return await _ask(socket_path(task_name), task_name, request, timeout)


async def ask_all(request: Request) -> dict[str, Reply | ControlError]:
    """Return, by name, the reply of each task of this user on this host, or why there is none.

    All tasks are asked at the same time, and each has `LIST_TIMEOUT` for its answer, so a task that
    hangs does not delay the others. Raises ControlError if the folder of the sockets can't be used.
    """
    found: dict[str, Reply | ControlError] = {}
    by_stem = {socket_path(record.task).stem: record for record in records()}

    async def ask_one(path: Path) -> None:
        record = by_stem.get(path.stem)
        name = record.task if record else unquote(path.stem)
        try:
            found[name] = await _ask(path, name, request, LIST_TIMEOUT)
        except ControlError as error:
            found[name] = error
        except NotRunningError:
            # A process that was killed leaves its socket.
            return

    async with anyio.create_task_group() as tasks:
        for path in runtime_dir().glob("*.sock"):
            tasks.start_soon(ask_one, path)
    return dict(sorted(found.items()))


async def end(task_name: str) -> Reply:
    """Ask a running task to end; if it agrees, return when its process has ended.

    The end is noticed because the process keeps the connection open until then. Its process id may
    belong to another process here, because containers have their own ids. Raises the same errors as
    `ask`.
    """
    path = socket_path(task_name)
    async with _conversation(path, task_name, Request(STOP), DEFAULT_TIMEOUT) as (stream, reply):
        if reply.ok:
            process = _peer(stream)
            await _hung_up(stream)
            await _gone(process)
        return reply


async def _ask(path: Path, task_name: str, request: Request, patience: float) -> Reply:
    async with _conversation(path, task_name, request, patience) as (_, reply):
        return reply


@asynccontextmanager
async def _conversation(
    path: Path, task_name: str, request: Request, patience: float
) -> AsyncIterator[tuple[SocketStream, Reply]]:
    """Yield the connection to a task, and its reply to a request."""
    line = encode_request(request)
    async with AsyncExitStack() as opened:
        try:
            with anyio.fail_after(patience):
                try:
                    stream = await anyio.connect_unix(path)
                except (FileNotFoundError, ConnectionRefusedError) as error:
                    raise NotRunningError(task_name, _how_it_ended(task_name)) from error
                await opened.enter_async_context(stream)
                await stream.send(line)
                received = await BufferedByteReceiveStream(stream).receive_until(b"\n", REPLY_LIMIT)
        except TimeoutError as error:
            raise ControlError(
                f"task {task_name!r} did not answer {request.command!r} within {patience:g} s; "
                "its log says what it is doing"
            ) from error
        except (anyio.IncompleteRead, anyio.DelimiterNotFound, anyio.BrokenResourceError) as error:
            raise ControlError(
                f"task {task_name!r} ended the conversation without an answer: it may have just"
                " ended"
            ) from error
        except OSError as error:
            raise ControlError(f"task {task_name!r} can't be asked: {error}") from error
        yield stream, decode_reply(received)


def _how_it_ended(task_name: str) -> str:
    """Return what is known about a task that does not run, to be appended to a message."""
    record = find_record(task_name)
    if record is None:
        return ""
    if was_killed(record):
        return f". Its process {record.pid}, begun at {record.began}, was killed or has crashed"
    return f". It has ended at {record.ended}" if record.ended else ""


async def _hung_up(stream: SocketStream) -> None:
    """Wait until the other side has closed a connection."""
    try:
        while True:
            await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return


def _peer(stream: SocketStream) -> int:
    """Return the local process id of the other side; 0 if it has none here."""
    if not hasattr(socket, "SO_PEERCRED"):
        return 0
    raw = stream.extra(SocketAttribute.raw_socket)
    # unix(7): the process id as the asking process sees it, then user and group.
    found = raw.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
    return int(struct.unpack("iII", found)[0])


async def _gone(process: int) -> None:
    """Wait for the end of a process that has already closed its files."""
    if process == 0 or not hasattr(os, "pidfd_open"):
        return
    # A process descriptor becomes readable when the process ends (Linux, pidfd_open(2)).
    try:
        descriptor = os.pidfd_open(process)
    except OSError:
        return
    try:
        # The id may belong to another process now.
        with anyio.move_on_after(LAST_STEP_SECONDS):
            # An event loop may use epoll, which accepts these descriptors as select does.
            await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)
