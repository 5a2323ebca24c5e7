"""The checks of the target: what the task will do there is tried."""

from __future__ import annotations

import os

import pymysql.err

from replicator.checks.connecting import check_login
from replicator.checks.result import CheckResult, Place
from replicator.checks.task import TargetToCheck
from replicator.checks.variables import global_variables
from replicator.checks.versions import check_version
from replicator.mysql.connection import Connection, DatabaseUnavailableError
from replicator.mysql.errors import READ_ONLY
from replicator.mysql.names import quote
from replicator.schema.inspection import database_collation

SMALLEST_PACKET = 4 << 20
"""Bytes; the default of MySQL 5.6, and about what batches and long values need."""

_VARIABLES = ("local_infile", "max_allowed_packet", "read_only", "super_read_only")
_MAX_NAME = 64
_PLACE = Place("target")


async def check_target(target: TargetToCheck) -> list[CheckResult]:
    """All checks of the target server."""
    connection = Connection(target.address)
    try:
        login = await check_login(_PLACE, connection)
        if login.state == "failed":
            return [login]
        results = [login]
        try:
            version = str((await connection.fetch("SELECT VERSION()"))[0][0])
            results.append(check_version(_PLACE, version, as_source=False))
            results += await _settings(connection)
            results += await _privileges(target, connection)
        except (DatabaseUnavailableError, pymysql.err.MySQLError) as error:
            results.append(
                _PLACE.failed(
                    "connection",
                    f"checking ended early, on an error of the server: {error}",
                    "Look at the server's error log, then run the check again",
                )
            )
        return results
    finally:
        connection.close()


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
    except pymysql.err.MySQLError as error:
        return _PLACE.failed(
            "sql_mode",
            f"the settings of a session cannot be changed: {error.args[-1]}",
            "Use a user for whom this works at the target: SET SESSION sql_mode = ''; "
            "SET SESSION foreign_key_checks = 0;",
        )
    return _PLACE.passed("sql_mode", "the settings of a session can be changed")


async def _privileges(target: TargetToCheck, connection: Connection) -> list[CheckResult]:
    """Do in the meta schema what the task does, and clean up."""
    schema = quote(target.meta_schema)
    suffix = f"_check_{os.getpid():x}"
    table = f"{schema}.{quote(target.task_name[: _MAX_NAME - len(suffix)] + suffix)}"
    existed = await database_collation(connection, target.meta_schema) is not None
    statements = [
        f"CREATE TABLE {table} (id INT NOT NULL PRIMARY KEY, v INT)",
        f"INSERT INTO {table} VALUES (1, 1)",
        f"REPLACE INTO {table} VALUES (1, 2)",
        f"UPDATE {table} SET v = 3 WHERE id = 1",
        f"ALTER TABLE {table} ADD COLUMN w INT, ADD INDEX v (v)",
        f"SELECT COUNT(*) FROM {table}",
        f"DELETE FROM {table} WHERE id = 1",
        f"DROP TABLE {table}",
    ]
    if not existed:
        statements.insert(0, f"CREATE DATABASE {schema}")
        statements.append(f"DROP DATABASE {schema}")
    done = 0
    try:
        for statement in statements:
            await connection.execute(statement)
            done += 1
    except pymysql.err.MySQLError as error:
        leftover = await _clean(connection, schema, table, done=done, existed=existed)
        return [_refused(target, connection, statements[done], error, leftover)]
    return [
        _PLACE.passed(
            "target_privilege", f"tables can be made, changed and written in {target.meta_schema}"
        )
    ]


async def _clean(
    connection: Connection, schema: str, table: str, *, done: int, existed: bool
) -> str:
    """Remove what the attempt made; what could not be removed, in words."""
    created_schema = not existed and done > 0
    created_table = done > (0 if existed else 1)
    try:
        if created_table:
            await connection.execute(f"DROP TABLE IF EXISTS {table}")
        if created_schema:
            await connection.execute(f"DROP DATABASE {schema}")
    except pymysql.err.MySQLError as error:
        return f"; {table} was left behind: {error.args[-1]}"
    return ""


def _refused(
    target: TargetToCheck,
    connection: Connection,
    statement: str,
    error: pymysql.err.MySQLError,
    leftover: str,
) -> CheckResult:
    code, text = error.args[0], error.args[-1]
    verb = statement.split()[0]
    if code in READ_ONLY:
        return _PLACE.failed(
            "read_only",
            f"the target takes no writes: {text} ({code}){leftover}",
            "Name the writable server under 'target-database:', or there: SET GLOBAL read_only = "
            "OFF;",
        )
    user = connection.address.user
    return _PLACE.failed(
        "target_privilege",
        f"{verb} in {target.meta_schema} is refused: {text} ({code}){leftover}",
        "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX ON "
        f"{quote(target.meta_schema)}.* TO '{user}'@'%'; and the same on the schemas of the "
        "target tables",
    )
