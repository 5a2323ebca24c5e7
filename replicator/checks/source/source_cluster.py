"""Checks of a source that is a node of a Galera cluster (docs/how-to/galera.md)."""

from __future__ import annotations

from collections.abc import Mapping

from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.supported_servers import global_variables
from replicator.mysql.connection.asyncio_connection import Connection

_NAMES = (
    "wsrep_provider",
    "log_slave_updates",
    "log_replica_updates",
    "wsrep_gtid_mode",
    "wsrep_gtid_domain_id",
    "gtid_mode",
    "server_id",
)


async def check_source_cluster(place: CheckedPart, connection: Connection) -> list[CheckResult]:
    """Check a source that is a node of a Galera cluster; no result for other servers.

    Raises DatabaseUnavailableError, the server's error.
    """
    return source_cluster(place, await global_variables(connection, _NAMES))


def source_cluster(place: CheckedPart, values: Mapping[str, str]) -> list[CheckResult]:
    """Return the results for the global variables, names in lower case, of a source."""
    if values.get("wsrep_provider", "none").lower() in {"", "none"}:
        return []
    if not _is_on(values, "log_slave_updates") and not _is_on(values, "log_replica_updates"):
        return [
            place.failed(
                "source_cluster",
                "log_slave_updates is OFF on this node of a Galera cluster: its binlog has only the"
                " rows written through it, and the rows written through other nodes are missing",
                "Add log_slave_updates=ON to the my.cnf of every node under [mysqld], and restart"
                " the nodes one by one",
            )
        ]
    number = f"server_id is {values.get('server_id', '0')}"
    if _is_on(values, "gtid_mode"):
        finding = f"this node logs the rows of all nodes, with GTIDs; {number}"
        return [place.passed("source_cluster", finding)]
    if _is_on(values, "wsrep_gtid_mode"):
        domain = values.get("wsrep_gtid_domain_id", "0")
        return [
            place.passed(
                "source_cluster",
                f"this node logs the rows of all nodes; {number} and wsrep_gtid_domain_id is"
                f" {domain}, and both must be the same on all nodes",
            )
        ]
    return [
        place.warning(
            "source_cluster",
            "the nodes of this Galera cluster number their transactions on their own: the task"
            " can't continue with another node if this one is lost",
            "MariaDB: set on every node wsrep_gtid_mode=ON, with the same wsrep_gtid_domain_id and"
            " the same server_id, and gtid_domain_id to a number of its own; Percona XtraDB"
            " Cluster: gtid_mode=ON. Then set enable-gtid: true in the task file",
            "If the task is never to continue with another node, there is nothing to do",
        )
    ]


def _is_on(values: Mapping[str, str], name: str) -> bool:
    return values.get(name, "OFF").upper() in {"ON", "1"}
