"""QUERY_EVENT: a statement with the session settings of its execution.

Source of the format: MySQL internals manual, "QUERY_EVENT" (status variables), and the comments
on Query_event in MySQL's statement_events.h; MariaDB KB, "QUERY_EVENT" and
"QUERY_COMPRESSED_EVENT"; codes 130 and 131 from MariaDB's ``sql/log_event.h``.
"""

from __future__ import annotations

import codecs
import re
import struct
from dataclasses import dataclass
from enum import Enum, auto

from pymysql.charset import charset_by_id

from replicator.binlog.errors import BinlogError
from replicator.binlog.events.compression import expand_rows
from replicator.mysql.session_context.statement_context import StatementContext

_POST_HEADER = struct.Struct("<8xBHH")
"""Thread id 4, seconds 4, length of the schema 1, error code 2, length of the variables 2."""
_COLLATIONS = struct.Struct("<HHH")
_FLAGS = 0
_SQL_MODE = 1
_CHARSET = 4
_TIME_ZONE = 5
_TIME_NAMES = 7
_MICROSECONDS = 13
_EXPLICIT_TIMESTAMP_DEFAULTS = 16
_UTF8MB4_COLLATION = 18
_MARIADB_MICROSECONDS = 128
_MARIADB_GTID_FLAGS = 130
_MARIADB_CHARSET_COLLATIONS = 131
_ENDS_ALTER = 4 | 8
"""Of MariaDB's extra GTID flags: commits, or rolls back, an ALTER written in two halves."""
_NO_EFFECT = 2 | 8
"""Of these flags: only starts such an ALTER, or rolls it back."""
_EXPLICIT_TIMESTAMP_DEFAULTS_FLAG = 1 << 24
"""MariaDB's OPTION_EXPLICIT_DEF_TIMESTAMP; MySQL sets no such flag."""
_FIXED = {0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4, 13: 3, 16: 1, 17: 8, 18: 2, 19: 1} | {
    20: 1,
    128: 3,
    129: 8,
}
"""Lengths of the status variables of fixed length, by code (from 128 on MariaDB's)."""
_CATALOG = 2
_CATALOG_NZ = 6
_INVOKER = 11
_UPDATED_SCHEMAS = 12
_TOO_MANY_SCHEMAS = 254
_UNREAD = -1
"""Key, instead of a code, of the first unknown code."""


@dataclass(frozen=True, slots=True)
class QueryEvent:
    """The parsed event.

    Attributes:
        error: the statement's error code; 0 for none.
        has_no_effect_yet: whether it is the first half of an ALTER that MariaDB writes in two
            halves, or its roll-back.
    """

    schema: str
    sql: str
    context: StatementContext
    error: int = 0
    has_no_effect_yet: bool = False


class TransactionControl(Enum):
    """The effect of a statement that begins, divides or ends a transaction."""

    BEGIN = auto()
    COMMIT = auto()
    ROLLBACK = auto()
    ROLLBACK_TO = auto()
    SAVEPOINT = auto()
    XA_START = auto()
    """The rows of an XA transaction follow."""
    XA_END = auto()
    """The end of the rows; a later event decides whether they are committed."""
    XA_OUTCOME = auto()
    """XA PREPARE, XA COMMIT and XA ROLLBACK: the outcome for earlier rows."""


_CONTROL = re.compile(
    r"(?:\s+|/\*(?!!|M!).*?\*/|(?:#|--\s)[^\n]*\n)*"
    r"(?:(?P<BEGIN>BEGIN(?:\s+WORK)?\s*;?\s*\Z|START\s+TRANSACTION\b)"
    r"|(?P<COMMIT>COMMIT\b)"
    r"|(?P<ROLLBACK_TO>ROLLBACK\s+(?:WORK\s+)?TO\b)"
    r"|(?P<ROLLBACK>ROLLBACK\b)"
    r"|(?P<SAVEPOINT>(?:RELEASE\s+)?SAVEPOINT\b)"
    r"|(?P<XA_START>XA\s+(?:START|BEGIN)\b)"
    r"|(?P<XA_END>XA\s+END\b)"
    r"|(?P<XA_OUTCOME>XA\s+(?:PREPARE|COMMIT|ROLLBACK)\b))",
    re.IGNORECASE | re.DOTALL,
)


def transaction_control(sql: str) -> TransactionControl | None:
    """Return the effect of ``sql`` on its transaction; None for every other statement."""
    match = _CONTROL.match(sql)
    return TransactionControl[match.lastgroup] if match and match.lastgroup else None


def sql_offset(body: bytes) -> int:
    """Return the offset of the statement in the body of a query event."""
    schema, _, variables = _POST_HEADER.unpack_from(body)
    return int(_POST_HEADER.size + variables + schema + 1)


def parse_query_event(body: bytes, *, compressed: bool = False) -> QueryEvent:
    """Parse the body of a query event, without its 19-byte header and its checksum.

    ``compressed``: for MariaDB's QUERY_COMPRESSED. The text is decoded with the session's client
    charset, or UTF-8 if that is not known. Other bytes become surrogates (``surrogateescape``), so
    that none is lost. Raises BinlogError if the event is damaged.
    """
    try:
        schema_length, error_code, variables_length = _POST_HEADER.unpack_from(body)
        start = _POST_HEADER.size
        variables = _read_variables(body[start : start + variables_length])
        start += variables_length
        schema = body[start : start + schema_length].decode("utf-8", "surrogateescape")
        text = body[start + schema_length + 1 :]
        if compressed:
            text = expand_rows(text)
    except (IndexError, struct.error, ValueError) as error:
        raise BinlogError(f"A query event can't be read: {error}.") from error
    return QueryEvent(
        schema,
        text.decode(_codec(variables.get(_CHARSET)), "surrogateescape"),
        _context(variables),
        error_code,
        bool(variables.get(_MARIADB_GTID_FLAGS, b"\0")[0] & _NO_EFFECT),
    )


def _context(variables: dict[int, bytes]) -> StatementContext:
    def number(code: int) -> int | None:
        return int.from_bytes(variables[code], "little") if code in variables else None

    explicit = number(_EXPLICIT_TIMESTAMP_DEFAULTS)
    if explicit is None:
        # Without the flag it is off, or the server has no such flag and its defaults decide.
        explicit = (number(_FLAGS) or 0) & _EXPLICIT_TIMESTAMP_DEFAULTS_FLAG or None
    charset = variables.get(_CHARSET)
    utf8mb4 = number(_UTF8MB4_COLLATION)
    pairs = variables.get(_MARIADB_CHARSET_COLLATIONS, b"\0")[1:]
    return StatementContext(
        sql_mode=number(_SQL_MODE),
        time_zone=variables[_TIME_ZONE].decode("utf-8", "replace")
        if _TIME_ZONE in variables
        else None,
        microseconds=number(_MICROSECONDS) or number(_MARIADB_MICROSECONDS) or 0,
        collation_ids=_COLLATIONS.unpack(charset) if charset is not None else None,
        explicit_timestamp_defaults=None if explicit is None else bool(explicit),
        charset_collation_ids=(
            *(() if utf8mb4 is None else (utf8mb4,)),
            *(collation for _, collation in struct.iter_unpack("<HH", pairs)),
        ),
        time_names=number(_TIME_NAMES) or 0,
        unread_code=number(_UNREAD),
    )


def _read_variables(data: bytes) -> dict[int, bytes]:
    """Return status variables by code, up to the first unknown code, whose length is unknown.

    The unknown code is then the value of `_UNREAD`.
    """
    found: dict[int, bytes] = {}
    at = 0
    while at < len(data):
        code = data[at]
        at += 1
        if code in _FIXED:
            length = _FIXED[code]
        elif code in (_TIME_ZONE, _CATALOG_NZ):
            length = data[at]
            at += 1
        elif code == _CATALOG:
            length = data[at] + 2
        elif code == _INVOKER:
            user = data[at] + 1
            length = user + data[at + user] + 1
        elif code == _UPDATED_SCHEMAS:
            length = _updated_schemas_length(data, at)
        elif code == _MARIADB_GTID_FLAGS:
            # The second half of an ALTER has the GTID of the first one.
            length = 9 if data[at] & _ENDS_ALTER else 1
        elif code == _MARIADB_CHARSET_COLLATIONS:
            length = 1 + 4 * data[at]
        else:
            found[_UNREAD] = bytes([code])
            break
        found[code] = data[at : at + length]
        at += length
    return found


def _updated_schemas_length(data: bytes, at: int) -> int:
    """Return the length of a count and that many names, each ended by a zero byte."""
    count = data[at]
    end = at + 1
    if count < _TOO_MANY_SCHEMAS:
        for _ in range(count):
            end = data.index(0, end) + 1
    return end - at


def _codec(charset: bytes | None) -> str:
    """Return the Python codec of the client charset, the first of three collation ids."""
    if charset is None:
        return "utf-8"
    try:
        return codecs.lookup(charset_by_id(int.from_bytes(charset[:2], "little")).encoding).name
    except (KeyError, LookupError):
        return "utf-8"
