"""Unix sockets in a private folder, between processes of one user.

Only the owner of the folder can reach them, and each side asks the kernel whose process the other
one is (``SO_PEERCRED``; Linux manual, unix(7)).
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

_CREDENTIALS = struct.Struct("3i")


class OtherUserError(OSError):
    """The process at the other end belongs to another user."""


def listen_privately(folder: str, name: str, backlog: int) -> socket.socket:
    """Return a socket that `connect_privately` finds by folder and name. Raises OSError."""
    listening = socket.socket(socket.AF_UNIX)
    try:
        with _short(folder, name) as place:
            listening.bind(place)
        listening.listen(backlog)
    except OSError:
        listening.close()
        raise
    return listening


def connect_privately(folder: str, name: str, timeout: float) -> socket.socket:
    """Return a connection to this listener, with a timeout in seconds for each call.

    Raises OSError, or OtherUserError if the listener is another user's.
    """
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(timeout)
        with _short(folder, name) as place:
            connection.connect(place)
        check_peer(connection)
    except OSError:
        connection.close()
        raise
    return connection


def check_peer(connection: socket.socket) -> None:
    """Raise OtherUserError unless the process at the other end runs as our user."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(credentials)
    if user != os.geteuid():
        raise OtherUserError(f"process {process} at the other end belongs to user {user}")


@contextlib.contextmanager
def _short(folder: str, name: str) -> Iterator[str]:
    """Yield a path of the socket that is short enough, whatever the folder's name is."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield str(Path("/proc/self/fd", str(descriptor), name))
    finally:
        os.close(descriptor)
