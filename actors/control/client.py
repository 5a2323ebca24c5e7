"""Asking a running task something, from another process of the same user."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

import anyio
import anyio.to_thread
from anyio.streams.buffered import BufferedByteReceiveStream

from actors.control.protocol import (
    REPLY_LIMIT,
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
"""Seconds that each has where all tasks are asked."""


class NotRunningError(Exception):
    """No task of this name runs as this user on this host."""

    def __init__(self, task_name: str, more: str = "") -> None:
        super().__init__(
            f"no task {task_name!r} runs here. `replicator run TASK.yaml` starts it; the task of "
            f"another user or host can't be reached{more}"
        )


class RunsElsewhereError(NotRunningError):
    """Another process than can be reached here runs the task; ``holder`` says which."""

    def __init__(self, task_name: str, holder: str) -> None:
        Exception.__init__(
            self,
            f"task {task_name!r} is run by {holder}. Ask there, as the user who runs it: only what"
            " the task has saved can be told from here, and that is older",
        )


async def ask(task_name: str, request: Request, *, timeout: float = DEFAULT_TIMEOUT) -> Reply:  # noqa: ASYNC109
    """Send a request to a running task and return its reply.

    ``timeout`` in seconds. Raises NotRunningError, and ControlError when the task does not answer
    in time, hangs up, or speaks another version of the protocol.
    """
    return await _ask(socket_path(task_name), task_name, request, timeout)


async def ask_all(request: Request) -> dict[str, Reply | ControlError]:
    """The replies of all tasks that run as this user on this host, or why there is none, by name.

    All are asked at the same time, and each has `LIST_TIMEOUT` for its answer: one that hangs
    keeps nobody from the others. Raises ControlError where the folder of the sockets can't be
    used.
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
            # A process that was killed leaves its socket behind.
            return

    async with anyio.create_task_group() as tasks:
        for path in runtime_dir().glob("*.sock"):
            tasks.start_soon(ask_one, path)
    return dict(sorted(found.items()))


async def _ask(path: Path, task_name: str, request: Request, patience: float) -> Reply:
    line = encode_request(request)
    try:
        with anyio.fail_after(patience):
            try:
                stream = await anyio.connect_unix(path)
            except (FileNotFoundError, ConnectionRefusedError) as error:
                raise NotRunningError(task_name, _how_it_ended(task_name)) from error
            async with stream:
                await stream.send(line)
                received = await BufferedByteReceiveStream(stream).receive_until(b"\n", REPLY_LIMIT)
    except TimeoutError as error:
        raise ControlError(
            f"task {task_name!r} did not answer {request.command!r} within {patience:g} s; "
            "its log says what it is doing"
        ) from error
    except (anyio.IncompleteRead, anyio.DelimiterNotFound, anyio.BrokenResourceError) as error:
        raise ControlError(
            f"task {task_name!r} ended the conversation without an answer: it may have just ended"
        ) from error
    except OSError as error:
        raise ControlError(f"task {task_name!r} can't be asked: {error}") from error
    return decode_reply(received)


def _how_it_ended(task_name: str) -> str:
    """What is known of a task that does not run, to be appended to that."""
    record = find_record(task_name)
    if record is None:
        return ""
    if was_killed(record):
        return f". Its process {record.pid}, begun at {record.began}, was killed or has crashed"
    return f". It has ended at {record.ended}" if record.ended else ""


async def wait_ended(pid: int, *, timeout: float | None = None) -> bool:  # noqa: ASYNC109
    """Wait until a process has ended; False when it lives on after ``timeout`` seconds."""
    with anyio.move_on_after(timeout):
        if hasattr(os, "pidfd_open"):
            await _wait_by_descriptor(pid)
        else:
            while _alive(pid):  # noqa: ASYNC110  (no event tells this elsewhere than on Linux)
                await anyio.sleep(0.1)
        return True
    return False


async def _wait_by_descriptor(pid: int) -> None:
    # A process descriptor becomes readable when the process ends (Linux, pidfd_open(2)).
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        # An event loop can be built on epoll, which takes these descriptors as select does.
        await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
