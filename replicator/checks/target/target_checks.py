"""The checks of the target: they execute the task's operations on it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

import pymysql.err

from replicator.checks.check_items import TARGET_CLUSTER, TRANSACTION_SIZE
from replicator.checks.checked_task import TargetToCheck
from replicator.checks.connecting import check_login, ended_early
from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.supported_servers import check_version, global_variables
from replicator.checks.target.cluster_settings import check_cluster_settings
from replicator.checks.target.target_rights import try_schema
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.connection.session_settings import WARNINGS_KEPT, keep_warnings

SMALLEST_PACKET = 4 << 20
"""Bytes; the default of MySQL 5.6, and about what batches and long values need."""

_VARIABLES = ("local_infile", "max_allowed_packet", "read_only", "super_read_only")
_PLACE = CheckedPart("target")


_UNTRIED = _PLACE.warning(
    "target_privilege",
    "whether the task may write to the target was not tried, since nothing is to be written",
    "`replicator check` tries it, with tables that it drops again",
)


def may_not_write(results: Iterable[CheckResult]) -> bool:
    """Return whether the settings of the target forbid writing anything, even as a trial."""
    forbidding = {TARGET_CLUSTER, TRANSACTION_SIZE}
    return any(result.name in forbidding and result.state == "failed" for result in results)


async def check_target(target: TargetToCheck) -> list[CheckResult]:
    """Run all checks of the target server."""
    with closing(Connection(target.address)) as connection:
        login = await check_login(_PLACE, connection)
        if login.state == "failed":
            return [login]
        results = [login]
        try:
            version = str((await connection.fetch("SELECT VERSION()"))[0][0])
            results.append(check_version(_PLACE, version, as_source=False))
            results += await _settings(connection)
            cluster = await check_cluster_settings(connection)
            results += cluster
            if target.writes_nothing:
                results.append(_UNTRIED)
            elif may_not_write(cluster):
                return results
            else:
                results += await try_schema(connection, target.meta_schema, target.task_name)
        except (DatabaseUnavailableError, pymysql.err.MySQLError) as error:
            results.append(ended_early(_PLACE, error))
        return results


async def _settings(connection: Connection) -> list[CheckResult]:
    values = await global_variables(connection, _VARIABLES)
    results = [await _sql_mode(connection)]
    if values.get("local_infile", "OFF").upper() in {"ON", "1"}:
        results.append(_PLACE.passed("local_infile", "LOAD DATA LOCAL is allowed"))
    else:
        results.append(
            _PLACE.warning(
                "local_infile",
                "local_infile is OFF: rows are written with statements, which is slower",
                "SET GLOBAL local_infile = 1; and the same in the target's my.cnf",
            )
        )
    packet = int(values.get("max_allowed_packet", SMALLEST_PACKET))
    if packet < SMALLEST_PACKET:
        results.append(
            _PLACE.warning(
                "max_allowed_packet",
                f"max_allowed_packet is {packet} bytes: rows longer than that are refused, and "
                "statements must be short",
                "SET GLOBAL max_allowed_packet = 67108864; and the same in the target's my.cnf",
            )
        )
    else:
        results.append(_PLACE.passed("max_allowed_packet", f"max_allowed_packet is {packet}"))
    results += [
        _PLACE.warning(
            "read_only",
            f"{name} is {values[name]}: only this user's privileges let it write there",
            f"Make sure that it is no replica of another server, then: SET GLOBAL {name} = OFF;",
        )
        for name in ("read_only", "super_read_only")
        if values.get(name, "OFF").upper() not in {"OFF", "0"}
    ]
    return results


async def _sql_mode(connection: Connection) -> CheckResult:
    try:
        await connection.execute("SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
        await connection.execute("SET SESSION foreign_key_checks = 0")
        kept = int((await connection.fetch("SELECT @@max_error_count"))[0][0])
        if more := keep_warnings(kept, WARNINGS_KEPT):
            await connection.execute(more)
    except pymysql.err.MySQLError as error:
        return _PLACE.failed(
            "sql_mode",
            f"the settings of a session cannot be changed: {error.args[-1]}",
            "Use a user for whom this works at the target: SET SESSION sql_mode = ''; "
            "SET SESSION foreign_key_checks = 0; where max_error_count is what is refused: "
            f"SET GLOBAL max_error_count = {WARNINGS_KEPT};",
        )
    return _PLACE.passed("sql_mode", "the settings of a session can be changed")
