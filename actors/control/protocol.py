"""The protocol between the command line and a running task, and the place of its socket.

Each connection has one request and one reply. Each of them is one line of JSON (UTF-8, ended by a
newline). The Unix socket can be reached only by the user who runs the task. Both sides send
``version``, and a peer with another version is refused with a clear error. A task that has accepted
``stop`` keeps the connection open until its process ends.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

PROTOCOL_VERSION = 1
STOP = "stop"
"""The command to end."""
REQUEST_LIMIT = 8 * 1024 * 1024
"""Maximum bytes of a request line: the certificate of a switch names every shard."""
REPLY_LIMIT = 64 * 1024 * 1024
"""Maximum bytes of a reply line: a status with very many targets has some megabytes."""

_NAME_LIMIT = 40
_PATH_LIMIT = 103
"""Maximum bytes of a socket's path on every Unix (``sun_path``: 104 on BSD, 108 on Linux)."""


class ControlError(Exception):
    """The control socket can't be used, or the other side violated the protocol."""


class CommandRefusedError(ControlError):
    """The task refused a command.

    ``remedies`` are what the user can do instead, if the task said so.
    """

    def __init__(self, message: str, remedies: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.remedies = remedies


@dataclass(frozen=True, slots=True)
class Request:
    """A command for a running task, with its arguments (JSON values)."""

    command: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """The task's answer: ``body`` if it is ``ok``, otherwise ``error``, a sentence for the user.

    ``pid`` is the process that answered; the server sets it.
    """

    ok: bool
    body: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    pid: int = 0


def encode_request(request: Request) -> bytes:
    """Return the request as a line. Raises ControlError if it exceeds `REQUEST_LIMIT`."""
    line = _line({"command": request.command, "arguments": dict(request.arguments)})
    if len(line) > REQUEST_LIMIT:
        raise ControlError(f"the request takes {len(line)} bytes, at most {REQUEST_LIMIT} can be")
    return line


def decode_request(line: bytes) -> Request:
    """Return the request in a line. Raises ControlError."""
    values = _values(line)
    command, arguments = values.get("command"), values.get("arguments", {})
    if not isinstance(command, str) or not isinstance(arguments, dict):
        raise ControlError("a request needs a command (text) and arguments (an object)")
    return Request(command, arguments)


def encode_reply(reply: Reply) -> bytes:
    """Return the reply as a line, with the id of this process."""
    return _line(
        {"ok": reply.ok, "body": dict(reply.body), "error": reply.error, "pid": os.getpid()}
    )


def decode_reply(line: bytes) -> Reply:
    """Return the reply in a line. Raises ControlError."""
    values = _values(line)
    ok, body = values.get("ok"), values.get("body", {})
    error, pid = values.get("error", ""), values.get("pid", 0)
    if not (
        isinstance(ok, bool)
        and isinstance(body, dict)
        and isinstance(error, str)
        and isinstance(pid, int)
    ):
        raise ControlError("the task's reply is not understood: a field is missing or misshaped")
    return Reply(ok, body, error, pid)


def _line(values: dict[str, Any]) -> bytes:
    text = json.dumps({"version": PROTOCOL_VERSION, **values}, ensure_ascii=False)
    return text.encode() + b"\n"


def _values(line: bytes) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ControlError(f"not a line of JSON: {error}") from error
    if not isinstance(values, dict):
        raise ControlError("not a JSON object")
    if values.get("version") != PROTOCOL_VERSION:
        raise ControlError(
            f"protocol version {values.get('version')!r} where {PROTOCOL_VERSION} is spoken: "
            "use the same version of replicator for the task and for this command"
        )
    return values


def runtime_dir() -> Path:
    """Return the folder of the control sockets; create it with mode 0700 if it is missing.

    It is ``$XDG_RUNTIME_DIR/replicator``; without that variable ``/run/user/<uid>/replicator``, or
    ``<temporary folder>/replicator-<uid>`` if the system has no such folder. Raises ControlError if
    the folder can't be created, belongs to another user, or is accessible to others.
    """
    uid = os.geteuid()
    configured = os.environ.get("XDG_RUNTIME_DIR")
    per_user = Path(f"/run/user/{uid}")
    if configured:
        path = Path(configured) / "replicator"
    elif per_user.is_dir():
        path = per_user / "replicator"
    else:
        # Imported here, because the import takes a while and hardly any system needs it.
        import tempfile

        path = Path(tempfile.gettempdir()) / f"replicator-{uid}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise ControlError(
            f"the folder of the control sockets can't be used: {error}. "
            "Set XDG_RUNTIME_DIR to a folder of your own that exists"
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid:
        raise ControlError(
            f"{path} is not a folder of user {uid}: its owner could command your tasks. Remove"
            " it, or set XDG_RUNTIME_DIR to a folder of your own"
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise ControlError(f"{path} is open to other users; close it: chmod 700 {path}")
    return path


def socket_path(task_name: str) -> Path:
    """Return the path of the socket of a task.

    Characters that a file name can't have are percent-encoded; a long name is shortened to its
    beginning and a hash. Raises the same errors as `runtime_dir`, and ControlError if the path is
    too long for a Unix socket.
    """
    name = quote(task_name, safe=" ")
    if len(name) > _NAME_LIMIT:
        digest = hashlib.sha256(task_name.encode()).hexdigest()[:12]
        name = f"{name[: _NAME_LIMIT - 13]}~{digest}"
    path = runtime_dir() / f"{name}.sock"
    if len(os.fsencode(path)) > _PATH_LIMIT:
        raise ControlError(
            f"{path} is too long for a Unix socket (at most {_PATH_LIMIT} bytes): "
            "set XDG_RUNTIME_DIR to a folder with a shorter path"
        )
    return path
