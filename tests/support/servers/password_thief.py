"""A server that plays MySQL's login to get at a password, and keeps whatever it is sent.

MySQL internals manual, "Connection Phase Packets".
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from pymysql.constants import CLIENT

SALT = b"abcdefghijklmnopqrst"

_CAPABILITIES = (
    CLIENT.LONG_PASSWORD
    | CLIENT.PROTOCOL_41
    | CLIENT.SECURE_CONNECTION
    | CLIENT.PLUGIN_AUTH
    | CLIENT.PLUGIN_AUTH_LENENC_CLIENT_DATA
)


class Line:
    """One connection, by packets."""

    def __init__(self, connected: socket.socket, heard: list[bytes]) -> None:
        self._connected = connected
        self._heard = heard
        self._number = 0

    def send(self, body: bytes) -> None:
        self._connected.sendall(len(body).to_bytes(3, "little") + bytes((self._number,)) + body)
        self._number += 1

    def receive(self) -> bytes:
        header = self._exactly(4)
        body = self._exactly(int.from_bytes(header[:3], "little"))
        self._number = header[3] + 1
        self._heard.append(body)
        return body

    def encrypt(self, context: ssl.SSLContext) -> None:
        self._connected = context.wrap_socket(self._connected, server_side=True)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connected.shutdown(socket.SHUT_RDWR)
        self._connected.close()

    def _exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            more = self._connected.recv(size - len(found))
            if not more:
                raise EOFError
            found += more
        return found


@dataclass
class HostileServer:
    """``offers`` is the plugin of its greeting, ``ask`` what it does once it has the answer."""

    offers: str
    ask: Callable[[HostileServer, Line], None]
    host: str = "127.0.0.1"
    context: ssl.SSLContext | None = None
    heard: list[bytes] = field(default_factory=list)
    logins: int = 0
    key: rsa.RSAPrivateKey = field(
        default_factory=cache(partial(rsa.generate_private_key, 65537, 2048))
    )

    _line: Line | None = None

    @property
    def public_key(self) -> bytes:
        return self.key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def reads(self, password: str) -> bool:
        """Whether it can read the password in anything that it was sent."""
        secret, size = password.encode(), self.key.key_size // 8
        return any(
            secret in packet or (len(packet) == size and self._decrypted(packet) == secret)
            for packet in self.heard
        )

    def _decrypted(self, text: bytes) -> bytes:
        oaep = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)
        try:
            found = self.key.decrypt(text, oaep)
        except ValueError:
            return b""
        return bytes(c ^ SALT[n % len(SALT)] for n, c in enumerate(found)).removesuffix(b"\0")

    @contextlib.contextmanager
    def listening(self) -> Iterator[int]:
        """Take connections, one after another, on this port."""
        listener = socket.create_server((self.host, 0))
        thread = threading.Thread(target=self._serve, args=(listener,), daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            if self._line is not None:
                self._line.close()
            thread.join()
            listener.close()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connected, _ = listener.accept()
            except OSError:
                return
            connected.settimeout(5)
            line = self._line = Line(connected, self.heard)
            with contextlib.suppress(OSError, EOFError):
                self._greet(line)
                self.logins += 1
                self.ask(self, line)
            line.close()

    def _greet(self, line: Line) -> None:
        flags = _CAPABILITIES | (CLIENT.SSL if self.context else 0)
        line.send(
            b"\x0a8.4.0\0" + struct.pack("<I", 1) + SALT[:8] + b"\0"
            + struct.pack("<HBHHB", flags & 0xFFFF, 45, 2, flags >> 16, 21)
            + b"\0" * 10 + SALT[8:] + b"\0" + self.offers.encode() + b"\0"
        )  # fmt: skip
        answer = line.receive()
        if self.context and len(answer) == 32:
            line.encrypt(self.context)
            line.receive()


def switches_to(plugin: str) -> Callable[[HostileServer, Line], None]:
    """Ask for the password by a plugin that is not the one of the greeting, and by its worst."""

    def ask(server: HostileServer, line: Line) -> None:
        line.send(b"\xfe" + plugin.encode() + b"\0" + SALT + b"\0")
        _insist(server, line, line.receive())

    return ask


def goes_on(server: HostileServer, line: Line) -> None:
    """Ask for more than the scramble that came with the answer to the greeting."""
    _insist(server, line, b"")


def sends_key_unasked(server: HostileServer, line: Line) -> None:
    """Send a key at once, as if it had been asked for."""
    line.send(b"\1" + server.public_key)
    line.receive()


def _insist(server: HostileServer, line: Line, said: bytes) -> None:
    if said not in (b"\1", b"\2"):
        line.send(b"\1\4")
        said = line.receive()
    if said in (b"\1", b"\2"):
        line.send(b"\1" + server.public_key)
        line.receive()
