"""A proxy that damages one packet of a server's answers, on each connection or on chosen ones.

Packets are those of MySQL's protocol without TLS: three bytes for the size, one for the number.
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Damage = Callable[[bytes], bytes]
"""What becomes of the body of a packet."""

_SILENCE = 0.05
"""Seconds: after a damaged packet a connection ends as soon as the server says nothing more."""

_RANDOM = random.Random(23)

DAMAGES: dict[str, Damage] = {
    "ff": lambda body: b"\xff",
    "ff-and-more": lambda body: b"\xff" + body[1:],
    "empty": lambda body: b"",
    "cut": lambda body: body[: len(body) // 2],
    "one-byte-less": lambda body: body[:-1],
    "one-byte": lambda body: body[:1],
    "random": lambda body: _RANDOM.randbytes(len(body)),
    "high-bits": lambda body: bytes(byte | 0x80 for byte in body),
    "more-columns": lambda body: b"\x09" + body[1:],
    "huge-number": lambda body: b"\xfe" + b"\xff" * 8 + body,
    "null": lambda body: b"\xfb" + body[1:],
    "nonsense": lambda body: b"".join(
        b"x" if chr(byte).isalnum() else bytes((byte,)) for byte in body
    ),
    "ok": lambda body: b"\0\0\0\2\0\0\0",
    "end": lambda body: b"\xfe\0\0\2\0",
}


@dataclass
class OddServer:
    """Passes connections on to the server at ``backend``, and damages packet ``number`` of each.

    The greeting is number 0. ``times``: on so many connections, on all where it is negative.
    """

    backend: int
    damage: Damage = DAMAGES["ff"]
    number: int = -1
    times: int = -1
    seen: int = 0
    """The packets of the longest connection."""
    damaged: int = 0
    port: int = 0
    _ends: list[socket.socket] = field(default_factory=list)

    @contextlib.contextmanager
    def listening(self) -> Iterator[OddServer]:
        """Take connections until the end of the block."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        threads = [threading.Thread(target=self._accept, args=(listener,), daemon=True)]
        threads[0].start()
        try:
            yield self
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            self.end_all()
            threads[0].join()
            listener.close()

    def end_all(self) -> None:
        """End all connections."""
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self.backend))
            except OSError:
                return
            self._ends += [client, server]
            threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        with client, server:
            back = threading.Thread(target=self._to_client, args=(client, server), daemon=True)
            back.start()
            self._to_server(client, server)
            back.join()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                server.sendall(data)
        self._close(client, server)

    def _to_client(self, client: socket.socket, server: socket.socket) -> None:
        number = 0
        with contextlib.suppress(OSError), server.makefile("rb") as packets:
            while len(header := packets.read(4)) == 4:
                body = packets.read(int.from_bytes(header[:3], "little"))
                if number == self.number and self.times:
                    self.times -= 1
                    self.damaged += 1
                    body = self.damage(body)
                    # Who waits for more is not to wait for long.
                    server.settimeout(_SILENCE)
                number += 1
                self.seen = max(self.seen, number)
                client.sendall(len(body).to_bytes(3, "little") + header[3:] + body)
        self._close(client, server)

    def _close(self, *ends: socket.socket) -> None:
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
