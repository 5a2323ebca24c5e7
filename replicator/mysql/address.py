"""Where a server is, and how to log in to it.

Needs no more than PyMySQL: executors have no asyncio driver.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field

CONNECT_TIMEOUT = 10.0
"""Seconds until a server must have answered the first packet."""

NO_SELECT_LIMIT = "18446744073709551615"
"""For ``sql_select_limit``: with a server's own, every query would be cut off without a word."""

TIDB_SETTINGS = (
    "/*T! ,SESSION tidb_txn_mode='pessimistic',SESSION allow_auto_random_explicit_insert=1 */"
)
"""What goes behind the other assignments of a SET: a comment but for TiDB (its page "Comment
Syntax"). Locks hold when they are taken, whatever the cluster's default, and an AUTO_RANDOM column
takes the values that the shards have."""


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

    def tls(self) -> ssl.SSLContext | None:
        """A context that verifies the server against ``ssl_ca``; None where no file is named."""
        if not (self.ssl_ca or self.ssl_cert):
            return None
        context = ssl.create_default_context(cafile=self.ssl_ca or None)
        context.check_hostname = False
        if self.ssl_cert:
            context.load_cert_chain(self.ssl_cert, self.ssl_key or None)
        return context
