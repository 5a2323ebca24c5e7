"""The privileges of an account on a schema, including the ones granted by roles.

On MySQL and MariaDB, the tables of information_schema that list privileges leave out privileges by
roles. SHOW GRANTS has them for the session's account and active roles (their manuals, "SHOW
GRANTS").
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pymysql.err
from pymysql.constants import ER

from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import error_code

ANY_TABLE = "*"
"""Stands for any table of the schema, so that a privilege on any of its tables counts."""

_ALL = frozenset({"ALL", "ALL PRIVILEGES"})
_ASKED = frozenset({"EVENT", "EXECUTE", "SELECT", "TRIGGER"})
"""The privileges that callers ask for."""

_GRANT = re.compile(
    r"(GRANT|REVOKE) (.+?) ON (?:TABLE )?(\*|`(?:[^`]|``)*`)\.(\*|`(?:[^`]|``)*`) (?:TO|FROM) "
)
_COLUMNS = re.compile(r"\([^)]*\)")


async def held_privileges(connection: Connection, schema: str, table: str = "") -> frozenset[str]:
    """Return `privileges_on` for the account of a connection.

    Raises DatabaseUnavailableError and the server's error.
    """
    try:
        rows = await connection.fetch("SHOW GRANTS")
    except pymysql.err.MySQLError as error:
        if error_code(error) != ER.OPTION_PREVENTS_STATEMENT:
            raise
        # With --skip-grant-tables, everybody may do everything.
        return _ASKED
    return privileges_on(schema, [str(row[0]) for row in rows], table)


def privileges_on(schema: str, grants: Iterable[str], table: str = "") -> frozenset[str]:
    """Return the privileges that lines of SHOW GRANTS give on a schema, and on its ``table``.

    ``table``: the name, `ANY_TABLE`, or empty if only privileges on the whole schema count.
    """
    held: set[str] = set()
    taken: set[str] = set()
    for line in grants:
        found = _GRANT.match(line)
        if found is None or not _concerns(schema, table, _name(found[3]), _name(found[4])):
            continue
        words = {word.strip().upper() for word in _COLUMNS.sub("", found[2]).split(",")}
        if words & _ALL:
            words = words - _ALL | _ASKED
        (held if found[1] == "GRANT" else taken).update(words)
    return frozenset(held - taken)


def _name(quoted: str) -> str | None:
    return None if quoted == "*" else quoted[1:-1].replace("``", "`")


def _concerns(schema: str, table: str, of_schema: str | None, of_table: str | None) -> bool:
    if of_schema is None:
        return True
    if of_table is not None:
        # The schema of a single table is not a pattern.
        return of_schema == schema and table in (ANY_TABLE, of_table)
    wild = {"%": ".*", "_": "."}
    parts = re.findall(r"\\.|.", of_schema, re.DOTALL)
    pattern = "".join(wild.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(pattern, schema, re.DOTALL) is not None
