"""What a server has executed, compared with what was read of another one.

Sources: MySQL manual, "Functions Used with Global Transaction Identifiers", "SHOW REPLICA STATUS
Statement"; MariaDB KB, "Global Transaction ID" (gtid_binlog_state, gtid_slave_pos), "SHOW REPLICA
STATUS".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from pymysql.err import MySQLError

from replicator.binlog.positions.gtid import MariaDBGtid, mariadb_gtids
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.server.statement_aliases import fetch_understood

_REPLICA_STATUS: Final = ("SHOW ALL SLAVES STATUS", "SHOW SLAVE STATUS", "SHOW REPLICA STATUS")
"""What MariaDB knows, and MySQL before and since 8.4."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What a server lacks of some transactions; empty texts where that is nothing.

    ``lacking``: GTIDs that its binlog never had. ``purged``: GTIDs behind the saved position that
    its binlog has no more. ``applied``: it has applied what it lacks, and not logged it.
    ``replicating``: it is a replica that is applying transactions. ``logged``: of a MariaDB, the
    last GTID of each server in each domain that its binlog has had. ``unlogged``: of a MySQL, what
    it has executed and has in no binlog file, in the form of ``gtid_purged``.
    """

    lacking: str = ""
    purged: str = ""
    applied: bool = False
    replicating: bool = False
    logged: str = ""
    unlogged: str = ""

    @property
    def coming(self) -> bool:
        """Whether what is lacking is still to be applied, and is waited for."""
        return bool(self.lacking) and self.replicating and not self.applied


async def shortfall(
    connection: Connection, executed: str, later: Iterable[str], *, mariadb: bool
) -> Shortfall:
    """Compare a server with the GTID set ``executed`` at the saved position, and ``later`` ones.

    Raises DatabaseUnavailableError or the server's own error.
    """
    wanted = [executed, *later]
    found = await (_mariadb if mariadb else _mysql)(connection, executed, wanted)
    if not found.lacking:
        return found
    return replace(found, replicating=await _replicates(connection))


async def _mysql(connection: Connection, executed: str, wanted: list[str]) -> Shortfall:
    rows = await connection.fetch(
        "SELECT GTID_SUBTRACT(%s, @@GLOBAL.gtid_executed), GTID_SUBTRACT(@@GLOBAL.gtid_purged, %s),"
        " @@GLOBAL.gtid_purged",
        (",".join(wanted), executed),
    )
    lacking, purged, unlogged = (str(value).replace("\n", "") for value in rows[0])
    return Shortfall(lacking, purged, unlogged=unlogged)


async def _mariadb(connection: Connection, executed: str, wanted: list[str]) -> Shortfall:
    rows = await connection.fetch("SELECT @@GLOBAL.gtid_binlog_state, @@GLOBAL.gtid_slave_pos")
    state, applied = (str(value or "") for value in rows[0])
    logged: dict[tuple[int, int], int] = {}
    for gtid in mariadb_gtids(state):
        logged[gtid.domain, gtid.server] = gtid.sequence
    newest: dict[tuple[int, int], MariaDBGtid] = {}
    for gtid in sorted(
        (g for text in wanted for g in mariadb_gtids(text)), key=lambda g: g.sequence
    ):
        newest[gtid.domain, gtid.server] = gtid
    lacking = [g for key, g in newest.items() if logged.get(key, 0) < g.sequence]
    reached = {gtid.domain: gtid.sequence for gtid in mariadb_gtids(applied)}
    return Shortfall(
        ", ".join(_span(gtid, logged.get((gtid.domain, gtid.server), 0)) for gtid in lacking),
        applied=all(reached.get(gtid.domain, 0) >= gtid.sequence for gtid in lacking),
        logged=state,
    )


def _span(gtid: MariaDBGtid, logged: int) -> str:
    """What of a server's transactions is missing, of which the number ``logged`` is there."""
    if not logged or gtid.sequence == logged + 1:
        return str(gtid)
    first = MariaDBGtid(gtid.domain, gtid.server, logged + 1)
    return f"{first} to {gtid}"


async def _replicates(connection: Connection) -> bool:
    """Whether the thread runs that applies a primary's transactions; not if that can't be seen."""
    try:
        rows = await fetch_understood(connection, _REPLICA_STATUS)
    except MySQLError:
        return False
    # Whether receiving and applying run stand side by side; the list for all has two columns more.
    return any("Yes" in (row[11], row[13]) for row in rows)
