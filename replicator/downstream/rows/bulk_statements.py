"""Writes rows by statements with many rows each, with values that never were text.

MariaDB stores such rows with less CPU than `LOAD DATA` does (docs/inside/performance.md). As with
INSERT and REPLACE, a duplicate key, or a value that does not fit, is an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from pymysql.constants import ER
from pymysql.err import MySQLError

from replicator.downstream.rows.load_data import HARMLESS_WARNINGS, InexactLoadError
from replicator.downstream.rows.target_columns import TargetColumn, TargetTable
from replicator.downstream.rows.write_session import Session
from replicator.mysql.connection.prepared_statements import WireType, bulk_head
from replicator.mysql.errors import (
    ErrorCode,
    error_code,
    is_contention,
    is_unavailable,
)
from replicator.mysql.names import quote
from replicator.mysql.size_limits import is_too_large
from replicator.rows.decoder.parameter_rows import blocks_of, longest_row

NOT_PREPARED = frozenset(
    {
        ER.UNSUPPORTED_PS,
        ER.MAX_PREPARED_STMT_COUNT_REACHED,
        ErrorCode.ER_NEED_REPREPARE,
    }
)
"""Errors of a server that can't prepare the statement.

The server does not support this statement, or it has too many prepared statements, or its table
cache is so small that the statement is invalid before each execution.
"""


class NotTypedError(Exception):
    """The rows can't be written by a typed statement: roll back, and write them as text."""


class TypedStatement:
    """A session's statement that writes rows of parameters."""

    def __init__(
        self,
        session: Session,
        target: TargetTable,
        columns: Sequence[TargetColumn],
        types: Sequence[WireType],
        verb: bytes,
    ) -> None:
        """Prepare an INSERT or REPLACE (`verb`). Raises the errors of `write`, or NotTypedError."""
        self._session = session
        filled = [quote(name) for name, _ in target.filled]
        names = ",".join([*(quote(column.name) for column in columns), *filled])
        places = ",".join(["?"] * len(columns) + [literal for _, literal in target.filled])
        sql = f"{verb.decode()} INTO {target.quoted} ({names}) VALUES ({places})"
        with _told():
            self._number = session.prepare(sql.encode())
        self._head = bulk_head(self._number, types)
        self.room = session.packet_room - len(self._head)
        """The limit of bytes of the rows written at once."""

    def write(self, blocks: Iterable[memoryview]) -> int:
        """Write blocks of rows; return the number of affected rows.

        While the server writes a block, the next one is requested. Raises InexactLoadError if the
        server does not accept the rows as they are, the driver's error, or errors of ``blocks``.
        """
        affected, sent = 0, False
        try:
            for block in blocks:
                if sent:
                    sent = False
                    affected += self._answered()
                self._session.send_rows(self._head, block)
                sent = True
            if sent:
                sent = False
                affected += self._answered()
        finally:
            # The session may be used again, so no answer may be left unread, and no statement
            # prepared.
            with contextlib.suppress(MySQLError, InexactLoadError):
                if sent:
                    self._session.answer()
                self.forget()
        return affected

    def forget(self) -> None:
        """Close the statement, if it is not executed. Raises the driver's error."""
        self._session.forget(self._number)

    def _answered(self) -> int:
        with _told():
            answer = self._session.answer()
            if answer.warnings:
                warnings = self._session.warnings()
                worst = [text for code, text in warnings if code not in HARMLESS_WARNINGS]
                if worst:
                    raise InexactLoadError(worst[0])
        return answer.affected


BLOCK_BYTES = 1 << 20
"""The bytes of one execution: the server reads one while the next is prepared."""


def store_rows(
    session: Session,
    target: TargetTable,
    columns: Sequence[TargetColumn],
    types: Sequence[WireType],
    rows: Sequence[bytes],
    *,
    replace: bool,
) -> int:
    """Write rows of parameters; return the number of existing rows that they replaced.

    ``types``: the types of the parameters. Raises NotTypedError, InexactLoadError if the rows on
    the target are not exactly these, or the driver's error.
    """
    verb = b"REPLACE" if replace else b"INSERT"
    statement = TypedStatement(session, target, columns, types, verb)
    if longest_row(rows) > statement.room:
        statement.forget()
        raise NotTypedError(f"a row of {longest_row(rows)} bytes")
    affected = statement.write(blocks_of(rows, min(statement.room, BLOCK_BYTES)))
    replaced = affected - len(rows)
    if replaced < 0 or (replaced and not replace):
        raise InexactLoadError(f"{len(rows)} rows sent, {affected} affected")
    return replaced


@contextlib.contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except MySQLError as error:
        if is_unavailable(error) or is_contention(error) or is_too_large(error):
            raise
        if error_code(error) in NOT_PREPARED:
            raise NotTypedError(str(error)) from error
        raise InexactLoadError(str(error)) from error
