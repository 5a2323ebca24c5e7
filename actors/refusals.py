"""What a server's refusal means to a task: a fault, unless the server is only away."""

from __future__ import annotations

import pymysql.err

from actors.faults import FatalError
from replicator.checks.connecting import explain
from replicator.mysql.connection import DatabaseAddress
from replicator.mysql.errors import (
    ACCESS_DENIED,
    HOST_REFUSED,
    MISSING_PRIVILEGE,
    DatabaseUnavailableError,
    error_code,
    is_unavailable,
)


def refusal(
    who: str, address: DatabaseAddress, error: pymysql.err.MySQLError
) -> FatalError | DatabaseUnavailableError:
    """The error to raise for a server's own; ``who`` names the server to the operator."""
    if is_unavailable(error):
        return DatabaseUnavailableError(f"{address}: {error}")
    code = error_code(error)
    finding = f"{address} refused a statement: {error.args[-1] if error.args else error} ({code})"
    if code in ACCESS_DENIED | HOST_REFUSED:
        finding, way = explain(address, error)
    elif code in MISSING_PRIVILEGE:
        way = f"grant {address.user} what the error names (`replicator check` tells all it needs)"
    else:
        way = "mend at the server what the error names"
    return FatalError(
        "server.refused", finding, where=who, ways_out=(f"{way}; then `replicator resume`",)
    )
