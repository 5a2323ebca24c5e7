"""Schema changes of a Galera target reach all its nodes, whatever the node's default method is."""

from __future__ import annotations

from replicator.mysql.connection.asyncio_connection import Connection

_METHOD = "wsrep_OSU_method"

_ASKED = "reaches all nodes"
"""Recorded for a session that was set up."""


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
