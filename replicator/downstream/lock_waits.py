"""How long a schema change waits for the sessions that use its table."""

from __future__ import annotations

from replicator.mysql.connection import Connection

LOCK_TIMEOUT = "lock_wait_timeout"
"""The variable that limits it (the servers' manuals). TiDB's schema changes don't heed it."""

WITHOUT_LIMIT = 7 * 24 * 3600


async def limit_lock_wait(session: Connection, seconds: int | None, *, again: bool) -> None:
    """Limit the wait of the session's next statement to ``seconds``; None: as the server has it.

    What the task file says goes before that. ``again``: an earlier process may have begun the
    statement, and what uses the table may be just that. It is waited for: given up, and its record
    taken back, the statement would look like a new one when its former run has come to its end.
    Raises DatabaseUnavailableError or the server's own error.
    """
    if again:
        seconds = WITHOUT_LIMIT
    elif LOCK_TIMEOUT in dict(session.address.session):
        return
    if seconds is not None:
        await session.execute(f"SET SESSION {LOCK_TIMEOUT} = {seconds:d}")
