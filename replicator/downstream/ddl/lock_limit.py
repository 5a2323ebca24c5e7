"""How long a schema change waits for the sessions that use its table."""

from __future__ import annotations

from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.context.statement_session import LOCK_TIMEOUT

WITHOUT_LIMIT = 7 * 24 * 3600


def lock_limit(session: Connection, seconds: int | None, *, again: bool) -> int | None:
    """How long the session's next statement waits for sessions that use its table, in seconds;
    None: as the server has it.

    What the task file says goes before ``seconds``. ``again``: an earlier process may have begun
    the statement, and what uses the table may be just that. It is waited for: given up, and its
    record taken back, the statement would look like a new one when its former run has come to its
    end.
    """
    if again:
        return WITHOUT_LIMIT
    return None if LOCK_TIMEOUT in dict(session.address.session) else seconds
