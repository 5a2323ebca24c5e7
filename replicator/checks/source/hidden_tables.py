"""Tables that the routes take and the account can't see: they would not be copied, untold.

A server lists only tables that the user has a privilege on. Whether it would list others is tried:
of a table that is not there it says so to somebody who may read all of its schema, and to anybody
else that access is denied. That holds for roles, patterns in grants and partial revokes alike.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress

import pymysql.err

from replicator.checks.checked_task import SourceToCheck
from replicator.checks.connecting import Account, account_of
from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.routes import listed
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import NO_SUCH_TABLE, error_code
from replicator.mysql.names import TableName, quote
from replicator.routing.routes import RouteError
from replicator.routing.wildcards import example_of, is_plain
from replicator.schema.structure.inspection import SYSTEM_SCHEMAS

_OTHERWISE = (
    "If its name is another one: correct it in the task file. If it is to come later: create it"
    " first, empty",
    "If the task is to start without it: ignore-checking-items: [hidden_tables]",
)
_REVOKED = re.compile(r"REVOKE .* ON `((?:[^`]|``)+)`\.\* FROM")
"""A partial revoke (MySQL manual, "Privilege Restriction Using Partial Revokes")."""


async def check_hidden_tables(
    source: SourceToCheck, connection: Connection, tables: Sequence[TableName]
) -> list[CheckResult]:
    """Compare what the account may see with what the routes and the allow list take.

    ``tables`` are those that it sees. Before a full copy these are failures, since rows would be
    left out of it: a schema of which it sees a part, one that is named and that it may not see, and
    one that the allow list names and that is not seen, whether it may not be or is not there.
    Raises DatabaseUnavailableError, the server's error.
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
                results.append(_absent(place, schema, account))
            continue
        part = [name for name in tables if name.schema == schema]
        finding, way_out = _finding(schema, wanted, part), account.grant("SELECT", schema)
        if (part or schema in plain) and _copies_anew(source):
            further = () if part else _OTHERWISE
            results.append(place.failed("hidden_tables", finding, way_out, *further))
        else:
            results.append(place.warning("hidden_tables", finding, way_out))
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
                    "If the schemas that it is to match are all seen (SHOW DATABASES), there is"
                    " nothing to do",
                )
            )
    return results or [
        place.passed("hidden_tables", "all tables that the routes may take can be seen")
    ]


def _absent(place: CheckedPart, schema: str, account: Account) -> CheckResult:
    return place.failed(
        "hidden_tables",
        f"{schema} is named in block-allow-list, and the server has no such schema that the user"
        " may see: a full copy would be done without it",
        "If its name is another one: correct do-dbs or do-tables. If it is to come:"
        f" CREATE DATABASE {quote(schema)};",
        account.grant("SELECT", schema),
        _OTHERWISE[-1],
    )


def _copies_anew(source: SourceToCheck) -> bool:
    return source.copies_rows and source.start is None


def _hidden(
    source: SourceToCheck,
    schema: str,
    patterns: Iterable[tuple[str, str]],
    tables: Collection[TableName],
) -> tuple[str, ...]:
    """Patterns by which further tables of a schema are replicated, besides those that are seen."""
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
        # A regular expression stands for names that can't be made up: any may match.
        example = example_of(pattern) or example_of("*")
        assert example is not None
        if is_plain(pattern) and (schema, pattern.lower()) in there:
            continue
        # Two routes that claim it: told by check_routes.
        with suppress(RouteError):
            if source.router.route(schema, example) is not None:
                yield pattern


async def _sees(connection: Connection, schema: str, wanted: Sequence[str]) -> bool:
    """Whether the user would see these tables of a schema, were they there."""
    names = wanted if all(map(is_plain, wanted)) else [example_of("*") or ""]
    for name in names:
        try:
            await connection.fetch(f"SELECT 1 FROM {TableName(schema, name).quoted} LIMIT 0")
        except pymysql.err.MySQLError as error:
            if error_code(error) not in NO_SUCH_TABLE:
                return False
    return True


async def _visible_schemas(connection: Connection) -> set[str]:
    """The schemas that the user sees, and those of which a right is taken away from it."""
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
