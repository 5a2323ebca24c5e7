"""Compares the transactions that a server has executed with those read from another server.

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
"""For MariaDB, MySQL before 8.4, and MySQL since 8.4."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The transactions that a server lacks; texts are empty if there are none.

    Attributes:
        lacking: GTIDs that its binlog never had.
        purged: GTIDs after the saved position that its binlog no longer has.
        applied: whether it has applied the lacking GTIDs without logging them.
        replicating: whether it is a replica that is applying transactions.
        logged: MariaDB: the last GTID of each server in each domain that its binlog has had.
        unlogged: MySQL: executed GTIDs that are in no binlog file, in the form of ``gtid_purged``.
    """

    lacking: str = ""
    purged: str = ""
    applied: bool = False
    replicating: bool = False
    logged: str = ""
    unlogged: str = ""

    @property
    def coming(self) -> bool:
        """Whether the lacking transactions are yet to be applied, so that waiting helps."""
        return bool(self.lacking) and self.replicating and not self.applied


async def shortfall(
    connection: Connection, executed: str, later: Iterable[str], *, mariadb: bool
) -> Shortfall:
    """Compare a server with the GTID set ``executed`` at the saved position, and ``later`` GTIDs.

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
    if not logged or gtid.sequence == logged + 1:
        return str(gtid)
    first = MariaDBGtid(gtid.domain, gtid.server, logged + 1)
    return f"{first} to {gtid}"


async def _replicates(connection: Connection) -> bool:
    """Return whether the thread that applies a primary's transactions runs; False if unknown."""
    try:
        rows = await fetch_understood(connection, _REPLICA_STATUS)
    except MySQLError:
        return False
    # Two adjacent columns: receiving runs, applying runs. SHOW ALL has two more columns before
    # them.
    return any("Yes" in (row[11], row[13]) for row in rows)
