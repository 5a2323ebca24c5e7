"""MERGE tables of a source, whose rows are those of other tables.

What is written through one is logged under its own name, not under that of the table that gets the
row (seen on MariaDB 10.11; MySQL's manual, "The MERGE Storage Engine").
"""

from __future__ import annotations

from collections.abc import Sequence

import pymysql.err

from replicator.checks.checked_task import SourceToCheck
from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.routes import listed
from replicator.ddl.parser.classify import classify
from replicator.ddl.rewrite.engines import merged_tables
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.mysql.server.name_case import folds_names

_MERGE_TABLES = """
SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES
WHERE ENGINE IN ('MRG_MyISAM', 'MRG_MYISAM') ORDER BY 1, 2
"""


async def check_merge_tables(
    source: SourceToCheck, connection: Connection, replicated: Sequence[TableName]
) -> list[CheckResult]:
    """Whether no MERGE table is replicated, or writes to tables that are; nothing if there is none.

    Raises DatabaseUnavailableError or the server's error.
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
                f"{listed(doubled)} have no rows of their own, but those of other tables (engine"
                " MERGE): they would be there twice",
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
                    f"{merge} is a MERGE table over {listed(under)}: what is written through it is"
                    " not logged as theirs, and would be missing",
                    f"DROP TABLE {name.quoted}; or, where nobody writes through it,"
                    " ignore-checking-items: [merge_tables]",
                )
            )
    return results


async def _merged(connection: Connection, name: TableName, *, folds: bool) -> tuple[TableName, ...]:
    try:
        [(_, text)] = await connection.fetch(f"SHOW CREATE TABLE {name.quoted}")
    except pymysql.err.MySQLError:
        # One whose tables don't fit, or are gone, takes no rows either.
        return ()
    found = merged_tables(classify(str(text), default_schema=name.schema))
    return tuple(table.folded for table in found) if folds else found
