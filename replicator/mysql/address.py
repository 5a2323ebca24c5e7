"""Where a server is, and how to log in to it.

Needs no more than PyMySQL: executors have no asyncio driver.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from replicator.mysql.tls import Tls

CONNECT_TIMEOUT = 10
"""Seconds until a server must have answered the first packet."""


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """Where a server is and how to log in. Without ``tls``, TLS is used where there is any."""

    host: str
    port: int
    user: str
    password: str = field(default="", repr=False)
    tls: Tls | None = None
    session: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"

    def options(self) -> dict[str, Any]:
        """The arguments for connecting that PyMySQL and aiomysql have in common."""
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            # Both send Latin-1; servers have hashed UTF-8. An environment may hold other bytes.
            "password": self.password.encode("utf-8", "surrogateescape").decode("latin-1"),
            "connect_timeout": CONNECT_TIMEOUT,
            "charset": "utf8mb4",
            "autocommit": True,
        }
