"""Settings of a session that executes schema changes: its wait for locks, and Galera's method.

Schema changes of a Galera target reach all its nodes, whatever the node's default method is.
"""

from __future__ import annotations

from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.session_context.statement_session import LOCK_TIMEOUT

_METHOD = "wsrep_OSU_method"

_ASKED = "reaches all nodes"
"""Recorded for a session that was set up."""

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


async def reach_all_nodes(session: Connection) -> None:
    """Let the session's schema changes reach all nodes of a Galera cluster.

    An operator may set the node's default to RSU while the task runs, for a manual change. If a
    table is changed on one node only, the next row takes this node out of the cluster. Does nothing
    on other servers. Raises DatabaseUnavailableError or the server's error.
    """
    if _ASKED in session.notes:
        return
    for _, method in await session.fetch("SHOW SESSION VARIABLES LIKE %s", (_METHOD,)):
        if str(method).upper() == "RSU":
            await session.execute(f"SET SESSION {_METHOD} = 'TOI'")
    session.notes.add(_ASKED)
