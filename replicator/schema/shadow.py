"""Learning what a DDL does to a structure by doing it to an empty shadow table on a real server.

No parser outside a server understands every DDL statement of MySQL and MariaDB, so none is
interpreted here: the shadow is created with the structure before, the statement is run against
it, and the structure after is read back.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pymysql.err

from replicator.ddl.retarget import retarget
from replicator.ddl.statement import Recognised, StatementKind
from replicator.schema.connection import Connection, quote
from replicator.schema.inspection import read_table
from replicator.schema.names import TableName
from replicator.schema.structure import Table

_CREATE_NAME = re.compile(r"^(CREATE (?:TEMPORARY )?TABLE) (?:`(?:[^`]|``)*`\.)?`(?:[^`]|``)*`")


class ShadowError(Exception):
    """The server refused the structure or the statement on the shadow table."""


async def structure_after(
    connection: Connection, shadow: TableName, before: Table | None, statement: Recognised
) -> Table:
    """The structure of a table after ``statement``, which alters or creates it.

    ``before`` is its structure before, None for CREATE TABLE. ``shadow`` is created and dropped.
    Raises ShadowError with the server's error.
    """
    qualified = f"{quote(shadow.schema)}.{quote(shadow.table)}"
    await connection.execute(f"DROP TABLE IF EXISTS {qualified}")
    try:
        if before is not None:
            create = _CREATE_NAME.sub(rf"\1 {qualified}", before.create_sql, count=1)
            await connection.execute(create)
        await connection.execute(
            retarget(statement, lambda _schema, _table: (shadow.schema, shadow.table))
        )
        after = await read_table(connection, shadow)
    except pymysql.err.MySQLError as error:
        raise ShadowError(f"{error.args[-1]} ({error.args[0]})") from error
    finally:
        await connection.execute(f"DROP TABLE IF EXISTS {qualified}")
    if after is None:
        raise ShadowError(f"no table after {statement.kind.value}")
    if before is None:
        subject = statement.tables[0]
        name = TableName(subject.schema, subject.table)
    else:
        name = TableName(before.schema, before.name)
    return named(after, name)


def named(table: Table, name: TableName) -> Table:
    """The same structure under another name."""
    create = _CREATE_NAME.sub(rf"\1 {quote(name.table)}", table.create_sql, count=1)
    return replace(table, schema=name.schema, name=name.table, create_sql=create)


def is_like(statement: Recognised) -> bool:
    """Whether a CREATE TABLE takes its structure from another table that exists already."""
    return statement.kind is StatementKind.CREATE_TABLE and len(statement.tables) > 1
