"""Where a server is, and what an error of its driver says about the server being there.

Needs no more than PyMySQL: executors have no asyncio driver.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field

import pymysql.err

CONNECT_TIMEOUT = 10.0
"""Seconds until a server must have answered the first packet."""

LOST_CONNECTION = frozenset(
    {1040, 1053, 1077, 1079, 1129, 1152, 1158, 1159, 1160, 1161, 1203, 1927, 3169, 4031}
    | {2002, 2003, 2006, 2013, 2014, 2055}
    | {8002, 8005, 8022, 8027, 8028, 8113, 9001, 9002, 9003, 9004, 9005, 9007, 9010}
)
"""Error codes that say nothing about the statement: the server is away, full or shutting down, or
somebody has killed the connection (1927 at MariaDB, 3169 at MySQL). Those of TiDB: its store is
away or busy (9001 to 9005, 9010), or the transaction ended for the sake of another one or of a
schema change, and is to be tried again (TiDB's page "Error Codes and Troubleshooting")."""

NO_SELECT_LIMIT = "18446744073709551615"
"""For ``sql_select_limit``: with a server's own, every query would be cut off without a word."""

TIDB_SETTINGS = (
    "/*T! ,SESSION tidb_txn_mode='pessimistic',SESSION allow_auto_random_explicit_insert=1 */"
)
"""What goes behind the other assignments of a SET: a comment but for TiDB (its page "Comment
Syntax"). Locks hold when they are taken, whatever the cluster's default, and an AUTO_RANDOM column
takes the values that the shards have."""


class DatabaseUnavailableError(Exception):
    """The server cannot be reached just now; trying again later is safe."""


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


def is_unavailable(error: BaseException) -> bool:
    """Whether a driver's error means that the server is away rather than that it refuses."""
    if isinstance(error, DatabaseUnavailableError | TimeoutError | ConnectionError):
        return True
    if isinstance(error, pymysql.err.OperationalError | pymysql.err.InterfaceError):
        return not error.args or error.args[0] in LOST_CONNECTION or error.args[0] == 0
    return isinstance(error, OSError)
