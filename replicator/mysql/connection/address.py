"""The address of a server, and the account for it.

Needs no more than PyMySQL: executors have no asyncio driver.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from replicator.mysql.connection.tls import Pem, Tls

CONNECT_TIMEOUT = 10
"""Seconds within which a server must answer the first packet."""


@dataclass(frozen=True, slots=True)
class ServerKey:
    """The RSA key by which a password may be encrypted if nothing else protects it.

    Attributes:
        pinned: the server's own key, known beforehand.
        any_key: whether the operator accepts the key that the server sends, and so any server
            (MySQL manual, "--get-server-public-key").
    """

    pinned: Pem = field(default_factory=Pem)
    any_key: bool = False


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """The address of a server and the login.

    Without ``tls``, TLS is used if the server offers it.
    """

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
        """Return the password in the bytes that servers hash.

        An environment may contain any bytes.
        """
        return self.password.encode("utf-8", "surrogateescape")

    def options(self) -> dict[str, Any]:
        """Return the arguments for connecting that PyMySQL and aiomysql have in common."""
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            # Both libraries encode it as Latin-1; servers have hashed UTF-8.
            "password": self.password_bytes.decode("latin-1"),
            "connect_timeout": CONNECT_TIMEOUT,
            "charset": "utf8mb4",
            "autocommit": True,
        }
