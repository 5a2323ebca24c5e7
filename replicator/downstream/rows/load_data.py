"""LOAD DATA LOCAL from memory: the fast way to write rows, and a check that it was exact.

With ``LOCAL``, the server continues after errors: it skips duplicate rows and changes values that
do not fit, each with a warning (MySQL manual, "LOAD DATA Statement"). So a load only succeeds if no
row was skipped and there was no warning.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pymysql.constants import ER
from pymysql.err import MySQLError

from replicator.downstream.rows.literals import needs_introducer
from replicator.downstream.rows.target_columns import TargetColumn, TargetTable
from replicator.downstream.rows.write_session import Buffer, Session
from replicator.mysql.column_types import Literal
from replicator.mysql.errors import ErrorCode, is_contention, is_unavailable
from replicator.mysql.names import TableName, quote
from replicator.mysql.size_limits import is_too_large
from replicator.rows.decoder.lines import block_of

HARMLESS_WARNINGS = frozenset({ER.WARN_DEPRECATED_SYNTAX, ErrorCode.ER_BINLOG_UNSAFE_STATEMENT})
"""Warnings about the statement, not about a value: deprecated syntax, unsafe for statement
logging."""


class InexactLoadError(Exception):
    """The server skipped rows or changed values: roll back, and write the rows by statements."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The server's counts of a load.

    Servers differ in whether ``records`` includes replaced rows.
    """

    records: int
    deleted: int
    skipped: int


def load_rows(
    session: Session,
    target: TargetTable,
    columns: Sequence[TargetColumn],
    lines: Sequence[bytes],
    *,
    replace: bool,
) -> int:
    """Load row lines; return the number of existing rows that they replaced.

    Raises InexactLoadError if the rows on the target are not exactly these, or the driver's error.
    """
    data = [block_of(lines)]
    loaded = load_blocks(session, target, columns, data, b"REPLACE" if replace else b"")
    if loaded.records not in (len(lines), len(lines) + loaded.deleted) or loaded.skipped:
        raise InexactLoadError(f"{len(lines)} rows sent, answer {loaded}")
    return loaded.deleted


def load_blocks(
    session: Session,
    target: TargetTable,
    columns: Sequence[TargetColumn],
    blocks: Iterable[Buffer],
    on_duplicate: bytes,
) -> Loaded:
    """Load blocks of row lines. ``on_duplicate``: as for `load_statement`.

    The caller decides about skipped rows. Raises InexactLoadError if a value was changed, the
    driver's error, or errors of ``blocks``: the session must then be closed.
    """
    try:
        answer = session.load(load_statement(target, columns, on_duplicate), blocks)
    except MySQLError as error:
        if is_unavailable(error) or is_contention(error) or is_too_large(error):
            raise
        raise InexactLoadError(str(error)) from error
    records, deleted, skipped, _ = map(int, re.findall(rb"\d+", answer.message)[-4:])
    # Each skipped row has a warning; the server keeps only the first ones.
    if answer.warnings and answer.warnings != skipped:
        worst = [text for code, text in session.warnings() if code not in HARMLESS_WARNINGS]
        if worst:
            raise InexactLoadError(worst[0])
    return Loaded(records, deleted, skipped)


def probe_load_data(session: Session, schema: str) -> bool:
    """Return whether LOAD DATA LOCAL is allowed, and is part of the surrounding transaction.

    Creates and drops a small table in ``schema``. Raises the driver's error if this fails.
    """
    name = f"replicator_probe_{os.getpid()}"
    qualified = TableName(schema, name).quoted.encode()
    target = TargetTable(0, schema, name, 1, replace=True)
    session.run(b"DROP TABLE IF EXISTS " + qualified)
    session.run(b"CREATE TABLE " + qualified + b" (a INT PRIMARY KEY)")
    try:
        session.run(b"BEGIN")
        sql_columns = [TargetColumn("a", Literal.NUMBER)]
        try:
            load_rows(session, target, sql_columns, [b"1"], replace=False)
        except InexactLoadError:
            session.run(b"ROLLBACK")
            return False
        session.run(b"ROLLBACK")
        return int(session.rows(b"SELECT COUNT(*) FROM " + qualified)[0][0]) == 0
    finally:
        session.run(b"DROP TABLE IF EXISTS " + qualified)


def load_statement(
    target: TargetTable, columns: Sequence[TargetColumn], on_duplicate: bytes
) -> bytes:
    """Return the statement that loads row lines.

    ``on_duplicate``: ``REPLACE``, ``IGNORE`` or nothing (the same as IGNORE here) for rows with an
    existing key.
    """
    names, assignments = [], []
    for index, column in enumerate(columns):
        if needs_introducer(column):
            names.append(f"@v{index}")
            assignments.append(f"{quote(column.name)}=CONVERT(@v{index} USING utf8mb4)")
        else:
            names.append(quote(column.name))
    assignments += [f"{quote(name)}={literal}" for name, literal in target.filled]
    return (
        f"LOAD DATA LOCAL INFILE 'rows' {on_duplicate.decode()}"
        f" INTO TABLE {target.quoted} CHARACTER SET binary"
        r" FIELDS TERMINATED BY '\t' ESCAPED BY '\\' LINES TERMINATED BY '\n'"
        f" ({','.join(names)})" + (f" SET {','.join(assignments)}" if assignments else "")
    ).encode()
