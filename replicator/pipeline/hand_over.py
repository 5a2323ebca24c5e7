"""How the process that Spark starts for its Python workers hands them over to one that is there.

Loading what decodes rows takes Python a second, and Spark starts that process last, when all else
waits for it. So the driver has one ready (`replicator.pipeline.early_daemon`), and what Spark
starts only gives it its standard input and output, its environment and its arguments, over a Unix
socket in the private folder of the session. Then it waits until the other ends. Spark ends the
other like its own: by closing its standard input.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
from collections.abc import Mapping

from replicator.pipeline.private_socket import check_peer, connect_privately, listen_privately

VARIABLE = "REPLICATOR_EARLY_DAEMON"
"""The folder with the socket, in the environment of Java and so of what it starts."""

PATIENCE = 10.0
"""Seconds that are waited for a process that is there and does not answer; it may have none of what
it was to be given then."""

_NAME = "workers"
_HERE = b"+"


def listen(folder: str) -> socket.socket:
    """A socket that `hand_over` finds by the folder. Raises OSError."""
    return listen_privately(folder, _NAME)


def hand_over(environment: Mapping[str, str]) -> bool:
    """Give what this process has to the one that waits, and stay until that one ends.

    False where there is none: nothing has happened then.
    """
    folder = environment.get(VARIABLE)
    if not folder:
        return False
    try:
        other = connect_privately(folder, _NAME, PATIENCE)
    except OSError:
        return False
    with other:
        try:
            if other.recv(1) != _HERE:
                return False
        except OSError:
            return False
        other.settimeout(None)
        # From here on there is one that has it all, or Spark is told by the end of this process.
        given = json.dumps([dict(environment), sys.argv]).encode("utf-8", "surrogateescape")
        with contextlib.suppress(OSError):
            socket.send_fds(other, [_HERE], [0, 1, 2])
            other.sendall(given)
            other.shutdown(socket.SHUT_WR)
            other.recv(1)
    return True


def take_over(listening: socket.socket, lifeline: int) -> bool:
    """Wait for `hand_over`, and become what it was called in.

    False where nobody will come: the descriptor ``lifeline`` is at its end. Raises OSError.
    """
    with listening:
        ready, _, _ = select.select([listening.fileno(), lifeline], [], [])
        if listening.fileno() not in ready:
            return False
        # Left open: its end tells the other.
        given, _ = listening.accept()
    check_peer(given)
    given.sendall(_HERE)
    _, descriptors, _, _ = socket.recv_fds(given, 1, 3)
    with os.fdopen(os.dup(given.fileno()), "rb") as stream:
        told = stream.read()
    if len(descriptors) != 3 or not told:
        return False
    environment, arguments = json.loads(told.decode("utf-8", "surrogateescape"))
    for place, descriptor in enumerate(descriptors):
        os.dup2(descriptor, place)
        os.close(descriptor)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  (for good)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:] = arguments
    given.detach()
    return True
