"""The address of a server, and the account for it.

Needs no more than PyMySQL: executors have no asyncio driver.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from replicator.mysql.connection.tls import Pem, Tls

CONNECT_TIMEOUT = 10
"""Seconds until a server must have answered the first packet."""


@dataclass(frozen=True, slots=True)
class ServerKey:
    """The RSA key that a password may be encrypted with if nothing else protects it.

    Attributes:
        pinned: the server's own key, known beforehand.
        any_key: the operator accepts the key that the server sends, and so any server (MySQL
            manual, "--get-server-public-key").
    """

    pinned: Pem = field(default_factory=Pem)
    any_key: bool = False


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """The address of a server and how to log in. Without ``tls``, TLS is used if offered."""

    host: str
    port: int
    user: str
    password: str = field(default="", repr=False)
    tls: Tls | None = None
    session: tuple[tuple[str, str], ...] = ()
    server_key: ServerKey = field(default_factory=ServerKey)

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"

    @property
    def password_bytes(self) -> bytes:
        """Return the password as servers have hashed it. An environment may hold any bytes."""
        return self.password.encode("utf-8", "surrogateescape")

    def options(self) -> dict[str, Any]:
        """Return the arguments for connecting that PyMySQL and aiomysql have in common."""
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            # Both send Latin-1; servers have hashed UTF-8.
            "password": self.password_bytes.decode("latin-1"),
            "connect_timeout": CONNECT_TIMEOUT,
            "charset": "utf8mb4",
            "autocommit": True,
        }
