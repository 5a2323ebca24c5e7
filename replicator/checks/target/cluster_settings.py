"""Checks whether a session's writes reach all servers of the target, and their size limits.

Nothing is written before these settings are read. A table made with ``wsrep_OSU_method=RSU`` exists
on only one node of a Galera cluster; because of the next row in it, the other nodes remove this
node from the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from replicator.checks.result import CheckedPart, CheckResult
from replicator.mysql.connection.asyncio_connection import Connection

_PLACE = CheckedPart("target")
_MIB = 1 << 20
SMALLEST_TRANSACTION = 128 * _MIB
"""Bytes; larger than a batch or a chunk of the largest default size."""

_NAMES = (
    "wsrep_on",
    "wsrep_provider",
    "wsrep_osu_method",
    "wsrep_node_name",
    "wsrep_max_ws_rows",
    "wsrep_max_ws_size",
    "wsrep_load_data_splitting",
    "log_bin",
    "sql_log_bin",
    "max_binlog_cache_size",
    "group_replication_group_name",
    "group_replication_transaction_size_limit",
)
_EVERY_NODE = "and set the same in the my.cnf of every node"
_FROM_TASK = "If the task file sets it under 'target-database: {session: …}', remove it there"
_CONNECTIONS = 3


async def check_cluster_settings(connection: Connection) -> list[CheckResult]:
    """Check the settings of the task's own session.

    Raises DatabaseUnavailableError, the server's error. A failed result means that nothing may be
    written as a trial.
    """
    values = await _session_variables(connection)
    galera = _is_galera(values)
    results = cluster_results(values)
    if galera:
        results += await _one_node(connection, values.get("wsrep_node_name", ""))
    return results + size_results(values)


async def unwritable_cluster(connection: Connection) -> list[CheckResult]:
    """Return why nothing may be written over this connection, whatever checks the task ignores.

    Raises DatabaseUnavailableError, the server's error.
    """
    found = cluster_results(await _session_variables(connection))
    return [result for result in found if result.state == "failed"]


async def _session_variables(connection: Connection) -> dict[str, str]:
    places = ", ".join(["%s"] * len(_NAMES))
    rows = await connection.fetch(
        f"SHOW SESSION VARIABLES WHERE Variable_name IN ({places})", _NAMES
    )
    return {str(name).lower(): str(value) for name, value in rows}


def _is_on(value: str) -> bool:
    return value.upper() in {"ON", "1"}


def _is_galera(values: Mapping[str, str]) -> bool:
    return values.get("wsrep_provider", "none").lower() not in {"", "none"}


def cluster_results(values: Mapping[str, str]) -> list[CheckResult]:
    """Return why other servers may not receive the task's writes, by the session's variables."""
    galera = _is_galera(values)
    grouped = bool(values.get("group_replication_group_name"))
    results = []
    method = values.get("wsrep_osu_method", "TOI").upper()
    if galera and method == "RSU":
        results.append(
            _PLACE.failed(
                "target_cluster",
                "wsrep_OSU_method is RSU: tables would be made and changed on one node of the"
                " Galera cluster only, and the cluster excludes this node at the next row. Nothing"
                " was tried",
                f"SET GLOBAL wsrep_OSU_method = 'TOI'; {_EVERY_NODE}",
                _FROM_TASK,
            )
        )
    if galera and not _is_on(values.get("wsrep_on", "ON")):
        results.append(
            _PLACE.failed(
                "target_cluster",
                "wsrep_on is OFF: what the task writes would stay on one node of the Galera"
                " cluster. Nothing was tried",
                f"SET GLOBAL wsrep_on = ON; {_EVERY_NODE}",
                _FROM_TASK,
            )
        )
    if _is_on(values.get("log_bin", "OFF")) and not _is_on(values.get("sql_log_bin", "ON")):
        what = "sql_log_bin is OFF: what the task writes would not be in the target's binlog, so"
        if galera or grouped:
            finding = f"{what} the other members of its cluster would refuse later changes"
            results.append(
                _PLACE.failed("target_cluster", f"{finding}. Nothing was tried", _FROM_TASK)
            )
        else:
            finding = f"{what} replicas and backups of the target would not get it"
            results.append(_PLACE.warning("target_cluster", finding, _FROM_TASK))
    if results or not (galera or grouped):
        return results
    kind = "a Galera cluster" if galera else "group replication"
    return [_PLACE.passed("target_cluster", f"{kind} gets what the task writes")]


async def _one_node(connection: Connection, first: str) -> list[CheckResult]:
    """Connect again.

    With an address of several nodes, the task sees older rows than it has written.
    """
    names = {first}
    for _ in range(_CONNECTIONS):
        with closing(Connection(connection.address)) as another:
            names.add((await _session_variables(another)).get("wsrep_node_name", ""))
    if len(names) == 1:
        return []
    return [
        _PLACE.warning(
            "target_cluster",
            f"connections to the target reach several nodes ({', '.join(sorted(names))}): a node"
            " that lags does not have yet what the task has written by another one, and writes to"
            " several nodes conflict",
            "Name one node under 'target-database:', or an address that leads to one at a time",
        )
    ]


def size_results(values: Mapping[str, str]) -> list[CheckResult]:
    """Return limits for the size of a transaction that may be too low."""
    results, found = [], []
    if _is_galera(values):
        rows, size = (int(values.get(f"wsrep_max_ws_{of}", 0)) for of in ("rows", "size"))
        found += [f"wsrep_max_ws_rows is {rows}", f"wsrep_max_ws_size is {size}"]
        if rows:
            results.append(_too_low("wsrep_max_ws_rows", f"{rows} rows", "0", galera=True))
        if size < SMALLEST_TRANSACTION:
            results.append(
                _too_low("wsrep_max_ws_size", f"{size} bytes", "2147483647", galera=True)
            )
        if _is_on(values.get("wsrep_load_data_splitting", "OFF")):
            results.append(
                _PLACE.failed(
                    "transaction_size",
                    "wsrep_load_data_splitting is ON: the server commits a load every 10,000 rows,"
                    " so a failed one would leave rows without their watermark. Nothing was tried",
                    f"SET GLOBAL wsrep_load_data_splitting = OFF; {_EVERY_NODE}",
                )
            )
    for name, usual in (
        ("max_binlog_cache_size", "4294967296"),
        ("group_replication_transaction_size_limit", "2147483647"),
    ):
        limit = int(values.get(name, 0))
        if 0 < limit < SMALLEST_TRANSACTION:
            results.append(_too_low(name, f"{limit} bytes", usual, galera=False))
    if found and not results:
        return [_PLACE.passed("transaction_size", "; ".join(found))]
    return results


def _too_low(name: str, value: str, usual: str, *, galera: bool) -> CheckResult:
    everywhere = f"; {_EVERY_NODE}" if galera else "; and the same in the target's my.cnf"
    return _PLACE.warning(
        "transaction_size",
        f"{name} is {value}: the target refuses larger transactions. The task then writes a batch"
        " in several ones, which takes longer; a chunk of a full copy that is larger is a fault",
        f"SET GLOBAL {name} = {usual}{everywhere}",
    )
