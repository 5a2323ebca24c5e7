"""A gate between a client and a server, to look at tables before they are destroyed.

Test files drop what they made, again and again, from procedures, loops and includes of theirs. So
they are not rewritten: the gate stands on the way to the server, reads the commands of the
protocol, and calls back before each one that would take rows away from view.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

COM_QUERY = 3
HEADER = 4
BLOCK = 1 << 16

_SPACE = rb"(?:\s|/\*(?!M?!).*?\*/|/\*M?!\d*|--\s[^\n]*\n|#[^\n]*\n)*"
_DESTROYS = re.compile(
    _SPACE
    + rb"(?:SET\s+STATEMENT\s.*?\sFOR\s+)?"
    + rb"(?:DROP\s+(?:TABLES?|DATABASE|SCHEMA|SEQUENCE)\b"
    + rb"|CREATE\s+OR\s+REPLACE\s+(?:TABLE|SEQUENCE|DATABASE)\b|TRUNCATE\b)",
    re.IGNORECASE | re.DOTALL,
)
_CREATES = re.compile(_SPACE + rb"CREATE\s+(?:TABLE|DATABASE|SCHEMA|SEQUENCE)\b", re.IGNORECASE)


def destroys(statement: bytes) -> bool:
    """Whether a statement takes whole tables away."""
    return _DESTROYS.match(statement) is not None


def creates(statement: bytes) -> bool:
    """Whether a statement makes a new table or schema."""
    return _CREATES.match(statement) is not None


class Gate:
    """Listens on a Unix socket and hands all on to the one of a server.

    `before` is called ahead of each statement that destroys or creates, with that, one at a time;
    when it returns False the gate closes, and with it every connection. `seen` gets each statement,
    with the number of its connection.
    """

    def __init__(
        self,
        path: Path,
        server: Path,
        before: Callable[[bytes], bool],
        seen: Callable[[int, bytes], None],
    ) -> None:
        self._server = server
        self._before = before
        self._seen = seen
        self._lock = threading.Lock()
        self._closed = False
        self._connections: list[socket.socket] = []
        self._count = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        for connection in (self._listener, *self._connections):
            _end(connection)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server))
            except OSError:
                return
            self._connections += [client, server]
            self._count += 1
            for work in (
                lambda c=client, s=server, n=self._count: self._commands(n, c, s),
                lambda c=client, s=server: _pump(s, c),
            ):
                threading.Thread(target=work, daemon=True).start()

    def _commands(self, number: int, client: socket.socket, server: socket.socket) -> None:
        """Hand packets on to the server, and look at each command before."""
        stream = client.makefile("rb")
        with contextlib.suppress(OSError, ValueError):
            while len(header := stream.read(HEADER)) == HEADER:
                body = stream.read(int.from_bytes(header[:3], "little"))
                if header[3] == 0 and body[:1] == bytes([COM_QUERY]):
                    self._seen(number, body[1:])
                    if not self._pass(body[1:]):
                        break
                server.sendall(header + body)
        _end(client)
        _end(server)

    def _pass(self, statement: bytes) -> bool:
        if not (destroys(statement) or creates(statement)):
            return True
        with self._lock:
            if not self._closed and not self._before(statement):
                self._closed = True
            return not self._closed


def _pump(origin: socket.socket, destination: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := origin.recv(BLOCK):
            destination.sendall(data)
    _end(destination)


def _end(connection: socket.socket) -> None:
    """Shut down, which wakes whoever reads from it, and close."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
