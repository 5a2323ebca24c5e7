"""The time for which a schema change waits for the sessions that use its table."""

from __future__ import annotations

from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.context.statement_session import LOCK_TIMEOUT

WITHOUT_LIMIT = 7 * 24 * 3600


def lock_limit(session: Connection, seconds: int | None, *, again: bool) -> int | None:
    """Return the seconds for which the session's next statement waits for sessions using its table.

    None is the server's own limit. A limit in the task file overrides ``seconds``.

    Args:
        again: an earlier process may have begun the statement, and the table may be in use by just
            that run. The statement then waits for it without a limit: if it gave up and its record
            were removed, it would count as a new statement when its former run has ended.
    """
    if again:
        return WITHOUT_LIMIT
    return None if LOCK_TIMEOUT in dict(session.address.session) else seconds
