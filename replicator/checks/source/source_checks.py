"""The checks of one source."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress

import pymysql.err

from replicator.checks.checked_task import SourceToCheck
from replicator.checks.connecting import account_of, check_login, ended_early
from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.routes import check_routes, check_source_names, listed, routed_tables
from replicator.checks.source.copying import check_engines
from replicator.checks.source.followed_shards import check_followed_shards
from replicator.checks.source.replication import (
    check_binlog_databases,
    check_replication,
    check_server_id_free,
    check_start,
)
from replicator.checks.source.source_cluster import check_source_cluster
from replicator.checks.supported_servers import check_version, global_variables
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.storage import merged_tables
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.errors import NO_SUCH_TABLE, error_code
from replicator.mysql.names import TableName
from replicator.mysql.server.identity import folds_names
from replicator.mysql.server.privileges import held_privileges
from replicator.pipeline.plans.row_filter import rules_for
from replicator.routing.expression.types import ExpressionError
from replicator.routing.routes import RouteError
from replicator.routing.wildcards import example_of, is_plain
from replicator.schema.structure.inspection import SYSTEM_SCHEMAS, list_tables, read_table


async def check_source(source: SourceToCheck) -> list[CheckResult]:
    """Run all checks of one source, in the order in which they depend on one another."""
    place = CheckedPart(source.source_id)
    with closing(Connection(source.address)) as connection:
        login = await check_login(place, connection)
        if login.state == "failed":
            return [login]
        results = [login]
        try:
            await _look(source, connection, results)
        except (DatabaseUnavailableError, pymysql.err.MySQLError) as error:
            results.append(ended_early(place, error))
        return results


async def _look(source: SourceToCheck, connection: Connection, results: list[CheckResult]) -> None:
    place = CheckedPart(source.source_id)
    version = str((await connection.fetch("SELECT VERSION()"))[0][0])
    results.append(check_version(place, version, as_source=True))
    tables = await list_tables(connection)
    results += check_routes(source, tables, await account_of(connection))
    results += await check_followed_shards(source.source_id, connection, source.members, tables)
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
    results += await check_source_cluster(place, connection)
    results += await check_replication(source, connection)
    results += await check_binlog_databases(source, connection, replicated)
    results += await check_server_id_free(source, connection, int(variables.get("server_id", 0)))
    results += await check_start(source, connection, version)


async def _reading(
    source: SourceToCheck, connection: Connection, names: Sequence[TableName]
) -> CheckResult:
    """Check that each replicated table and its structure can be read."""
    place = CheckedPart(source.source_id)
    refused: list[TableName] = []
    text = ""
    # The schemas in which SHOW GRANTS lets the account read all tables.
    open_schemas = {
        schema
        for schema in {name.schema for name in names}
        if "SELECT" in await held_privileges(connection, schema)
    }
    for name in names:
        qualified = name.quoted
        try:
            await connection.fetch(f"SHOW CREATE TABLE {qualified}")
            if name.schema not in open_schemas:
                # A filter that is never true: the privilege is checked, and no row is read.
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
        f"{listed(refused)} can't be read: {text}",
        " ".join(account.grant("SELECT", schema) for schema in schemas),
    )


_FILTERS_CHECK = "expression_filters"
_WAY_OUT = "Correct the expression in the task file, under 'expression-filter:'"


async def check_expression_filters(
    source: SourceToCheck, connection: Connection, replicated: Sequence[TableName]
) -> list[CheckResult]:
    """Check each rule against the present structure of its table.

    If the task starts at an earlier position, the table may have had another structure, so a rule
    that does not fit is only a warning. Unreadable tables are left to `dump_privilege`.
    """
    filters = source.expression_filters
    if not filters:
        return []
    place = CheckedPart(source.source_id)
    results: list[CheckResult] = []
    concerned = [name for name in replicated if filters.concern(name.schema, name.table)]
    for name in concerned:
        try:
            table = await read_table(connection, name)
            if table is not None:
                rules_for(filters, name, table)
        except pymysql.err.MySQLError:
            continue
        except ExpressionError as error:
            finding = f"{name}: {error}"
            if source.start is None:
                results.append(place.failed(_FILTERS_CHECK, finding, _WAY_OUT))
                continue
            results.append(
                place.warning("expression_filters", f"{finding} (as the table is now)", _WAY_OUT)
            )
    unused = filters.without_table((name.schema, name.table) for name in concerned)
    results += [
        place.warning(
            "expression_filters",
            f"the expression filter `{rule.name}` is for {rule.schema}.{rule.table}, and no table"
            " with this name is replicated",
            "Write schema and table exactly as at the source; patterns do not work here",
        )
        for rule in unused
    ]
    if not results:
        results.append(
            place.passed(_FILTERS_CHECK, f"tables with expression filters: {len(concerned)}")
        )
    return results


_MERGE_TABLES = """
SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES
WHERE ENGINE IN ('MRG_MyISAM', 'MRG_MYISAM') ORDER BY 1, 2
"""


async def check_merge_tables(
    source: SourceToCheck, connection: Connection, replicated: Sequence[TableName]
) -> list[CheckResult]:
    """Check that no MERGE table is replicated, or writes to replicated tables.

    Returns nothing if there is none. A row written through a MERGE table is logged under this
    table's name, not under the name of the table that stores the row (seen on MariaDB 10.11;
    MySQL's manual, "The MERGE Storage Engine"). Raises DatabaseUnavailableError or the server's
    error.
    """
    folds = await folds_names(connection)
    names = [TableName(*row) for row in await connection.fetch(_MERGE_TABLES)]
    known = [name.folded if folds else name for name in names]
    place = CheckedPart(source.source_id)
    results = []
    if doubled := sorted(set(known) & set(replicated)):
        results.append(
            place.failed(
                "merge_tables",
                f"{listed(doubled)} have the rows of other tables (engine MERGE): the target"
                " would have them twice",
                "Leave them out, by ignore-tables in the block-allow-list",
            )
        )
    for name, merge in zip(names, known, strict=True):
        if merge in doubled or not source.reads_binlog:
            continue
        under = sorted({*await _merged(connection, name, folds=folds)} & {*replicated})
        if under:
            results.append(
                place.failed(
                    "merge_tables",
                    f"{merge} is a MERGE table over {listed(under)}: the binlog shows rows that"
                    " arrive through it under its own name, and the target would lack them",
                    f"DROP TABLE {name.quoted}; or, if nothing writes through it,"
                    " ignore-checking-items: [merge_tables]",
                )
            )
    return results


async def _merged(connection: Connection, name: TableName, *, folds: bool) -> tuple[TableName, ...]:
    try:
        [(_, text)] = await connection.fetch(f"SHOW CREATE TABLE {name.quoted}")
    except pymysql.err.MySQLError:
        # A MERGE table whose tables don't fit, or are missing, accepts no rows either.
        return ()
    found = merged_tables(classify(str(text), default_schema=name.schema))
    return tuple(table.folded for table in found) if folds else found


SHORT_EXPIRY = 24 * 3600
"""Seconds; binlogs that expire sooner are gone after a weekend's pause, or a long full copy."""

VARIABLES = (
    "log_bin",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_metadata",
    "binlog_row_value_options",
    "binlog_checksum",
    "server_id",
    "binlog_expire_logs_seconds",
    "expire_logs_days",
)
"""Global variables that `check_binlog_settings` reads; servers do not know all of them."""

_RECONNECT = "sessions that are open keep the old value until they reconnect"


def check_binlog_settings(place: CheckedPart, variables: Mapping[str, str]) -> list[CheckResult]:
    """Check the global variables, names in lower case, of a source."""
    if not _on(variables.get("log_bin", "")):
        return [
            place.failed(
                "binlog_enable",
                "the server writes no binlog (log_bin is OFF)",
                "Add to the server's my.cnf under [mysqld] and restart it: "
                "log_bin=mysql-bin, binlog_format=ROW, binlog_row_image=FULL, "
                "server_id=<a number that no other server has>",
            )
        ]
    return [
        place.passed("binlog_enable", "the server writes a binlog"),
        _format(place, variables),
        _image(place, variables),
        _metadata(place, variables),
        _checksum(place, variables),
        _server_id(place, variables),
        _expiry(place, variables),
    ]


def _on(value: str) -> bool:
    return value.upper() in {"ON", "1"}


def _format(place: CheckedPart, variables: Mapping[str, str]) -> CheckResult:
    found = variables.get("binlog_format", "").upper()
    if found == "ROW":
        return place.passed("binlog_format", "binlog_format is ROW")
    return place.failed(
        "binlog_format",
        f"binlog_format is {found or 'not known'}: the binlog holds statements, whose rows "
        "cannot be known",
        "SET GLOBAL binlog_format = 'ROW'; and the same in my.cnf; " + _RECONNECT,
    )


def _image(place: CheckedPart, variables: Mapping[str, str]) -> CheckResult:
    # A server that lacks the variable (MariaDB before 10.1.6) writes full images.
    found = variables.get("binlog_row_image", "FULL").upper()
    if found != "FULL":
        return place.failed(
            "binlog_row_image",
            f"binlog_row_image is {found}: row events lack columns",
            "SET GLOBAL binlog_row_image = 'FULL'; and the same in my.cnf; " + _RECONNECT,
        )
    if "PARTIAL_JSON" in variables.get("binlog_row_value_options", "").upper():
        return place.failed(
            "binlog_row_image",
            "binlog_row_value_options is PARTIAL_JSON: row events hold only parts of JSON values",
            "SET GLOBAL binlog_row_value_options = ''; and the same in my.cnf; " + _RECONNECT,
        )
    return place.passed("binlog_row_image", "binlog_row_image is FULL")


def _metadata(place: CheckedPart, variables: Mapping[str, str]) -> CheckResult:
    found = variables.get("binlog_row_metadata", "").upper()
    if found == "FULL":
        return place.passed(
            "binlog_row_metadata", "binlog_row_metadata is FULL: rows name their columns"
        )
    return place.passed(
        "binlog_row_metadata",
        f"binlog_row_metadata is {found or 'not known to this server'}: structures are taken "
        "from the server and followed through its DDL; FULL would allow to verify them",
    )


def _checksum(place: CheckedPart, variables: Mapping[str, str]) -> CheckResult:
    found = variables.get("binlog_checksum", "").upper() or "not known to this server"
    if found == "CRC32":
        return place.passed("binlog_checksum", "binlog_checksum is CRC32: damaged events show")
    return place.warning(
        "binlog_checksum",
        f"binlog_checksum is {found}: an event that is damaged on the source's disk or on its way "
        "can look like a sound one with other values",
        "SET GLOBAL binlog_checksum = 'CRC32'; and the same in my.cnf; the server begins a new "
        "binlog file for it, and the task reads on across the change",
    )


def _server_id(place: CheckedPart, variables: Mapping[str, str]) -> CheckResult:
    found = variables.get("server_id", "0")
    if found == "0":
        return place.failed(
            "server_id",
            "the source's server_id is 0: it refuses replicas",
            "SET GLOBAL server_id = <a number that no other server has>; and the same in my.cnf",
        )
    return place.passed("server_id", f"the source's server_id is {found}")


def _expiry(place: CheckedPart, variables: Mapping[str, str]) -> CheckResult:
    seconds = float(variables.get("binlog_expire_logs_seconds") or 0)
    # MySQL 8 has both and uses the one that is not zero; MariaDB 10.6 keeps both equal.
    seconds = seconds or float(variables.get("expire_logs_days") or 0) * 86400
    if not seconds:
        return place.passed("binlog_expire", "binlogs are never purged by age")
    if seconds >= SHORT_EXPIRY:
        return place.passed("binlog_expire", f"binlogs are kept for {seconds / 3600:.0f} hours")
    return place.warning(
        "binlog_expire",
        f"binlogs are kept for {seconds / 3600:.1f} hours only: after a pause or a full copy "
        "longer than that, the task cannot go on",
        "SET GLOBAL binlog_expire_logs_seconds = 604800; and the same in my.cnf",
    )


_OTHERWISE = (
    "If its name is another one: correct it in the task file. If it is to come later: create it"
    " first, empty",
    "If the task is to start without it: ignore-checking-items: [hidden_tables]",
)
_OF_MANAGED = "rdsadmin, tmp, innodb"
_REVOKED = re.compile(r"REVOKE .* ON `((?:[^`]|``)+)`\.\* FROM")
"""A partial revoke (MySQL manual, "Privilege Restriction Using Partial Revokes")."""


async def check_hidden_tables(
    source: SourceToCheck, connection: Connection, tables: Sequence[TableName]
) -> list[CheckResult]:
    """Compare the tables that the account may see with the names in the routes and the allow list.

    A server lists only tables that the user has a privilege on; other tables would be left out
    silently. To find out whether it would list them, a table that does not exist is read: the
    server reports that it is missing to an account that may read all of its schema, and denies
    access to any other. This works with roles, patterns in grants and partial revokes.

    ``tables``: the visible tables. Before a full copy, which would leave rows out, these are
    failures: a schema that the account sees in part, and a named schema that may exist, but that
    the account can't see. A schema of the allow list that certainly does not exist is a warning,
    since several sources may share the list. Raises DatabaseUnavailableError, the server's error.
    """
    place = CheckedPart(source.source_id)
    account = await account_of(connection)
    patterns = [(r.schema_pattern, r.table_pattern or "*") for r in source.routes.rules]
    patterns += source.allowed
    if not patterns:
        patterns = [("*", "*")]
    visible = await _visible_schemas(connection)
    seen = {name.schema for name in tables} | visible
    known = {schema.lower() for schema in seen}
    plain = {s for s, _ in patterns if is_plain(s) and s.lower() not in known}
    named = {schema for schema, _ in source.allowed if schema in plain}
    results = []
    for schema in sorted(seen | plain):
        wanted = _hidden(source, schema, patterns, tables)
        if not wanted:
            continue
        if await _sees(connection, schema, wanted):
            if schema in named - seen and _copies_anew(source):
                results.append(_absent(place, schema))
            continue
        part = [name for name in tables if name.schema == schema]
        finding, way_out = _finding(schema, wanted, part), account.grant("SELECT", schema)
        left_out = () if part else (_left_out(schema),)
        if (part or schema in plain) and _copies_anew(source):
            further = () if part else _OTHERWISE
            results.append(place.failed("hidden_tables", finding, way_out, *left_out, *further))
        else:
            results.append(place.warning("hidden_tables", finding, way_out, *left_out))
    for pattern in sorted({schema for schema, _ in patterns if not is_plain(schema)}):
        example = example_of(pattern)
        if example is None or example in seen:
            continue
        wanted = _hidden(source, example, patterns, tables)
        if wanted and not await _sees(connection, example, wanted):
            results.append(
                place.warning(
                    "hidden_tables",
                    f"the pattern {pattern!r} of routes or block-allow-list may match schemas that"
                    " the user can't see: those would be left out, rows and all",
                    account.grant_pattern(pattern),
                    "Or name the schemas to replicate under `do-dbs:` of the source's"
                    " block-allow-list: this leaves out the schemas of the server itself"
                    f" ({_OF_MANAGED} of managed servers)",
                    "If the schemas that it is to match are all seen (SHOW DATABASES), there is"
                    " nothing to do",
                )
            )
    return results or [
        place.passed("hidden_tables", "all tables that the routes may take can be seen")
    ]


def _left_out(schema: str) -> str:
    return (
        f"Or leave it out, as a schema of the server itself ({_OF_MANAGED} of managed servers):"
        f" add {schema} to `ignore-dbs:` in the source's block-allow-list"
    )


def _absent(place: CheckedPart, schema: str) -> CheckResult:
    return place.warning(
        "hidden_tables",
        f"{schema} is named in block-allow-list, and this server has no such schema (the user could"
        " see it): nothing of it is copied from here",
        "If its name is another one: correct do-dbs or do-tables. If only other sources have it, or"
        " it is to come, there is nothing to do",
    )


def _copies_anew(source: SourceToCheck) -> bool:
    return source.copies_rows and source.start is None


def _hidden(
    source: SourceToCheck,
    schema: str,
    patterns: Iterable[tuple[str, str]],
    tables: Collection[TableName],
) -> tuple[str, ...]:
    """Return the patterns that match further tables of a schema, besides the visible ones."""
    return tuple(sorted(set(_further(source, schema, patterns, tables))))


def _further(
    source: SourceToCheck,
    schema: str,
    patterns: Iterable[tuple[str, str]],
    tables: Collection[TableName],
) -> Iterator[str]:
    # A pattern may be written in another case.
    there = {(name.schema, name.table.lower()) for name in tables}
    for _, pattern in patterns:
        # Names for a regular expression can't be made up, so any name may match.
        example = example_of(pattern) or example_of("*")
        assert example is not None
        if is_plain(pattern) and (schema, pattern.lower()) in there:
            continue
        # Two routes that claim it are reported by check_routes.
        with suppress(RouteError):
            if source.router.route(schema, example) is not None:
                yield pattern


async def _sees(connection: Connection, schema: str, wanted: Sequence[str]) -> bool:
    """Return whether the user would see these tables of a schema if they existed."""
    names = wanted if all(map(is_plain, wanted)) else [example_of("*") or ""]
    for name in names:
        try:
            await connection.fetch(f"SELECT 1 FROM {TableName(schema, name).quoted} LIMIT 0")
        except pymysql.err.MySQLError as error:
            if error_code(error) not in NO_SUCH_TABLE:
                return False
    return True


async def _visible_schemas(connection: Connection) -> set[str]:
    """Return the schemas that the user sees, and the ones in which a right was revoked."""
    rows = await connection.fetch("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")
    grants = [str(row[0]) for row in await connection.fetch("SHOW GRANTS")]
    revoked = {m[1].replace("``", "`") for grant in grants if (m := _REVOKED.match(grant))}
    return ({str(row[0]) for row in rows} | revoked) - set(SYSTEM_SCHEMAS)


def _finding(schema: str, wanted: Sequence[str], part: Sequence[TableName]) -> str:
    names = ", ".join(repr(pattern) for pattern in wanted)
    if part:
        return (
            f"the user sees only some tables of {schema} ({listed(part)}): others that match"
            f" {names} would be left out, rows and all"
        )
    return (
        f"{schema} is named in routes or block-allow-list and the user can't see it: should it be"
        f" there, its tables ({names}) would be left out, rows and all"
    )
