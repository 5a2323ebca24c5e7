"""Where a server is, and how to log in to it.

Needs no more than PyMySQL: executors have no asyncio driver.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any

CONNECT_TIMEOUT = 10
"""Seconds until a server must have answered the first packet."""


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """Where a server is and how to log in. ``ssl_*`` are file names, empty when unused."""

    host: str
    port: int
    user: str
    password: str = field(default="", repr=False)
    ssl_ca: str = ""
    ssl_cert: str = ""
    ssl_key: str = ""
    session: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"

    def options(self) -> dict[str, Any]:
        """The arguments for connecting that PyMySQL and aiomysql have in common."""
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "ssl": self._tls(),
            "connect_timeout": CONNECT_TIMEOUT,
            "charset": "utf8mb4",
            "autocommit": True,
        }

    def _tls(self) -> ssl.SSLContext | None:
        """A context that verifies the server against ``ssl_ca``; None where no file is named."""
        if not (self.ssl_ca or self.ssl_cert):
            return None
        context = ssl.create_default_context(cafile=self.ssl_ca or None)
        context.check_hostname = False
        if self.ssl_cert:
            context.load_cert_chain(self.ssl_cert, self.ssl_key or None)
        return context
