"""The checks of one source."""

from __future__ import annotations

from collections.abc import Sequence

import pymysql.err

from replicator.checks.account import account_of
from replicator.checks.checked_task import SourceToCheck
from replicator.checks.connecting import check_login
from replicator.checks.name_case import check_source_names
from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.routes import check_routes, listed, routed_tables
from replicator.checks.server_versions import check_version
from replicator.checks.source.binlog_settings import VARIABLES, check_binlog_settings
from replicator.checks.source.copying import check_engines
from replicator.checks.source.expression_filters import check_expression_filters
from replicator.checks.source.hidden_tables import check_hidden_tables
from replicator.checks.source.merge_tables import check_merge_tables
from replicator.checks.source.replication import (
    check_binlog_databases,
    check_replication,
    check_server_id_free,
    check_start,
)
from replicator.checks.variables import global_variables
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.names import TableName
from replicator.mysql.server.name_case import folds_names
from replicator.routing.routes import RouteError
from replicator.schema.structure.inspection import list_tables


async def check_source(source: SourceToCheck) -> list[CheckResult]:
    """All checks of one source, in the order in which they build on one another."""
    place = CheckedPart(source.source_id)
    connection = Connection(source.address)
    try:
        login = await check_login(place, connection)
        if login.state == "failed":
            return [login]
        results = [login]
        try:
            await _look(source, connection, results)
        except (DatabaseUnavailableError, pymysql.err.MySQLError) as error:
            results.append(
                place.failed(
                    "connection",
                    f"checking ended early, on an error of the server: {error}",
                    "Look at the server's error log, then run the check again",
                )
            )
        return results
    finally:
        connection.close()


async def _look(source: SourceToCheck, connection: Connection, results: list[CheckResult]) -> None:
    place = CheckedPart(source.source_id)
    version = str((await connection.fetch("SELECT VERSION()"))[0][0])
    results.append(check_version(place, version, as_source=True))
    tables = await list_tables(connection)
    results += check_routes(source, tables, await account_of(connection))
    results += check_source_names(source, folds=await folds_names(connection))
    try:
        replicated = [name for name, _ in routed_tables(source, tables)]
    except RouteError:
        replicated = []
    if replicated:
        reading = await _reading(source, connection, replicated)
        results.append(reading)
        if reading.state == "passed":
            results += await check_hidden_tables(source, connection, tables)
        results += await check_merge_tables(source, connection, replicated)
        if source.copies_rows:
            results += await check_engines(source, connection, replicated)
        results += await check_expression_filters(source, connection, replicated)
    else:
        results += await check_hidden_tables(source, connection, tables)
    if not source.reads_binlog:
        return
    variables = await global_variables(connection, VARIABLES)
    settings = check_binlog_settings(place, variables)
    results += settings
    if settings[0].state == "failed":
        return
    results += await check_replication(source, connection)
    results += await check_binlog_databases(source, connection, replicated)
    results += await check_server_id_free(source, connection, int(variables.get("server_id", 0)))
    results += await check_start(source, connection, version)


async def _reading(
    source: SourceToCheck, connection: Connection, names: Sequence[TableName]
) -> CheckResult:
    """Read from each replicated table, and its structure."""
    place = CheckedPart(source.source_id)
    refused: list[TableName] = []
    text = ""
    for name in names:
        qualified = name.quoted
        try:
            await connection.fetch(f"SHOW CREATE TABLE {qualified}")
            # A filter that is never true: the privilege is asked for, no row is read.
            await connection.fetch("SELECT * FROM " + qualified + " LIMIT 0")
        except pymysql.err.MySQLError as error:
            refused.append(name)
            text = text or str(error.args[-1])
    if not refused:
        return place.passed("dump_privilege", f"all {len(names)} replicated tables can be read")
    schemas = sorted({name.schema for name in refused})
    account = await account_of(connection)
    return place.failed(
        "dump_privilege",
        f"{listed(refused)} cannot be read: {text}",
        " ".join(account.grant("SELECT", schema) for schema in schemas),
    )
