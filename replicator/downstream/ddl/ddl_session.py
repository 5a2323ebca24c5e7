"""Settings of a session that executes schema changes: its lock timeout, and Galera's method.

Schema changes of a Galera target are executed on all its nodes, whatever the node's default method
is.
"""

from __future__ import annotations

from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.session_context.statement_session import LOCK_TIMEOUT

_METHOD = "wsrep_OSU_method"

_ASKED = "reaches all nodes"
"""A note on a session that was set up."""

WITHOUT_LIMIT = 7 * 24 * 3600


def lock_limit(session: Connection, seconds: int | None, *, again: bool) -> int | None:
    """Return the lock timeout, in seconds, of the session's next statement; None for the server's.

    A limit in the task file overrides ``seconds``.

    Args:
        again: whether an earlier process may have begun the statement, so that this run may be
            using the table. Then there is no limit: if the statement timed out and its record were
            removed, it would count as a new statement when its former run has ended.
    """
    if again:
        return WITHOUT_LIMIT
    return None if LOCK_TIMEOUT in dict(session.address.session) else seconds


async def reach_all_nodes(session: Connection) -> None:
    """Let the session's schema changes be executed on all nodes of a Galera cluster.

    An operator may set the node's default to RSU while the task runs, for a manual change. If a
    table is changed on one node only, the next row removes this node from the cluster. Does nothing
    on other servers. Raises DatabaseUnavailableError or the server's error.
    """
    if _ASKED in session.notes:
        return
    for _, method in await session.fetch("SHOW SESSION VARIABLES LIKE %s", (_METHOD,)):
        if str(method).upper() == "RSU":
            await session.execute(f"SET SESSION {_METHOD} = 'TOI'")
    session.notes.add(_ASKED)
