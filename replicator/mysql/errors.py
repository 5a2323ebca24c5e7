"""What the errors of servers and of the client library mean to us.

Needs no more than PyMySQL: executors have no asyncio driver.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pymysql.err

from replicator.mysql.error_codes import ErrorCode as ErrorCode

LOST = frozenset(
    {
        ErrorCode.ER_CON_COUNT_ERROR,
        ErrorCode.ER_SERVER_SHUTDOWN,
        ErrorCode.ER_NORMAL_SHUTDOWN,
        ErrorCode.ER_SHUTDOWN_COMPLETE,
        ErrorCode.ER_ABORTING_CONNECTION,
        ErrorCode.ER_NET_READ_ERROR,
        ErrorCode.ER_NET_READ_INTERRUPTED,
        ErrorCode.ER_NET_ERROR_ON_WRITE,
        ErrorCode.ER_NET_WRITE_INTERRUPTED,
        ErrorCode.ER_TOO_MANY_USER_CONNECTIONS,
        ErrorCode.ER_USER_LIMIT_REACHED,
        ErrorCode.ER_CONNECTION_KILLED,
        ErrorCode.ER_SESSION_WAS_KILLED,
        ErrorCode.ER_CLIENT_INTERACTION_TIMEOUT,
        ErrorCode.CR_CONNECTION_ERROR,
        ErrorCode.CR_CONN_HOST_ERROR,
        ErrorCode.CR_SERVER_GONE_ERROR,
        ErrorCode.CR_SERVER_LOST,
        ErrorCode.CR_SERVER_LOST_EXTENDED,
    }
)
"""Codes by which a server is away, full or shutting down, or by which this connection has ended."""

UNAVAILABLE = LOST | {
    ErrorCode.ER_FORCING_CLOSE,
    ErrorCode.ER_SERVER_OFFLINE_MODE,
    ErrorCode.ER_HOST_IS_BLOCKED,
    ErrorCode.CR_COMMANDS_OUT_OF_SYNC,
    ErrorCode.CR_NET_PACKET_TOO_LARGE,
    ErrorCode.TIDB_FOR_UPDATE_CANT_RETRY,
    ErrorCode.TIDB_WRITE_CONFLICT_IN_TIDB,
    ErrorCode.TIDB_TXN_RETRYABLE,
    ErrorCode.TIDB_INFO_SCHEMA_EXPIRED,
    ErrorCode.TIDB_INFO_SCHEMA_CHANGED,
    ErrorCode.TIDB_SCHEMA_CHANGED,
    ErrorCode.TIDB_PD_SERVER_TIMEOUT,
    ErrorCode.TIDB_TIKV_SERVER_TIMEOUT,
    ErrorCode.TIDB_TIKV_SERVER_BUSY,
    ErrorCode.TIDB_RESOLVE_LOCK_TIMEOUT,
    ErrorCode.TIDB_REGION_UNAVAILABLE,
    ErrorCode.TIDB_WRITE_CONFLICT,
    ErrorCode.TIDB_TIKV_STALE_COMMAND,
}
"""Codes that say nothing about the statement: the server is away, full or shutting down, somebody
has killed the connection, the account has used up what it may, or the answer is too large to be
taken. Those of TiDB: its store is away
or busy, or the transaction ended for the sake of another one or of a schema change, and is to be
tried again."""

CONTENTION = frozenset(
    {
        ErrorCode.ER_LOCK_WAIT_TIMEOUT,
        ErrorCode.ER_LOCK_DEADLOCK,
        ErrorCode.ER_QUERY_INTERRUPTED,
    }
)
"""The transaction was broken off for another one's sake, or by somebody."""

NOT_UNDERSTOOD = frozenset(
    {
        ErrorCode.ER_PARSE_ERROR,
        ErrorCode.ER_NOT_SUPPORTED_YET,
        ErrorCode.ER_UNKNOWN_CHARACTER_SET,
        ErrorCode.ER_UNKNOWN_COLLATION,
        ErrorCode.ER_BAD_FIELD_ERROR,
        ErrorCode.ER_DUP_FIELDNAME,
        ErrorCode.ER_DUP_KEYNAME,
        ErrorCode.ER_KEY_COLUMN_DOES_NOT_EXITS,
        ErrorCode.ER_CANT_DROP_FIELD_OR_KEY,
        ErrorCode.TIDB_UNSUPPORTED_DDL,
    }
)
"""A schema change that the server would refuse at any moment, for a table of this structure."""

KEY_IS_SO = frozenset(
    {
        ErrorCode.ER_DUP_KEYNAME,
        ErrorCode.ER_MULTIPLE_PRI_KEY,
        ErrorCode.ER_CANT_DROP_FIELD_OR_KEY,
        ErrorCode.ER_KEY_DOES_NOT_EXITS,
        ErrorCode.ER_PARTITION_MGMT_ON_NONPARTITIONED,
        ErrorCode.ER_DROP_PARTITION_NON_EXISTENT,
        ErrorCode.ER_SAME_NAME_PARTITION,
        ErrorCode.ER_DUP_CONSTRAINT_NAME,
        ErrorCode.ER_FK_DUP_NAME,
    }
)
"""A key, constraint or partition is there already, or one that is to go is not."""

ACCESS_DENIED = frozenset(
    {ErrorCode.ER_ACCESS_DENIED_ERROR, ErrorCode.ER_ACCESS_DENIED_NO_PASSWORD_ERROR}
)
"""The login is refused."""

PASSWORD_EXPIRED = frozenset(
    {ErrorCode.ER_MUST_CHANGE_PASSWORD, ErrorCode.ER_MUST_CHANGE_PASSWORD_LOGIN}
)
"""The password is right, and too old."""

ACCOUNT_LOCKED = frozenset(
    {
        ErrorCode.ER_ACCOUNT_HAS_BEEN_LOCKED,
        ErrorCode.ER_ACCOUNT_HAS_BEEN_LOCKED_MARIADB,
        ErrorCode.ER_USER_ACCESS_DENIED_FOR_USER_ACCOUNT_BLOCKED_BY_PASSWORD_LOCK,
        ErrorCode.ER_USER_IS_BLOCKED,
    }
)
"""Nobody gets in under this account, by whoever's will."""

HOST_REFUSED = frozenset({ErrorCode.ER_HOST_IS_BLOCKED, ErrorCode.ER_HOST_NOT_PRIVILEGED})
"""The server does not let this host in."""

LOGIN_REFUSED = (
    ACCESS_DENIED
    | PASSWORD_EXPIRED
    | ACCOUNT_LOCKED
    | HOST_REFUSED
    | {
        ErrorCode.CR_SSL_CONNECTION_ERROR,
        ErrorCode.CR_AUTH_PLUGIN_CANNOT_LOAD,
        ErrorCode.CR_AUTH_PLUGIN_ERR,
    }
)
"""There is no way to log in, whatever is then asked for."""

MISSING_PRIVILEGE = frozenset(
    {
        ErrorCode.ER_DBACCESS_DENIED_ERROR,
        ErrorCode.ER_TABLEACCESS_DENIED_ERROR,
        ErrorCode.ER_COLUMNACCESS_DENIED_ERROR,
        ErrorCode.ER_SPECIFIC_ACCESS_DENIED_ERROR,
        ErrorCode.ER_PROCACCESS_DENIED_ERROR,
    }
)
"""This user may not do that."""

OF_ONE_TABLE = frozenset(
    {
        ErrorCode.ER_TABLEACCESS_DENIED_ERROR,
        ErrorCode.ER_COLUMNACCESS_DENIED_ERROR,
        ErrorCode.ER_GET_ERRNO,
        ErrorCode.ER_NOT_KEYFILE,
        ErrorCode.ER_CRASHED_ON_USAGE,
        ErrorCode.ER_CRASHED_ON_REPAIR,
        ErrorCode.ER_VIEW_INVALID,
        ErrorCode.ER_NO_SUCH_TABLE_IN_ENGINE,
        ErrorCode.ER_TABLE_DEF_CHANGED,
        ErrorCode.ER_TABLESPACE_MISSING,
        ErrorCode.ER_TABLESPACE_DISCARDED,
        ErrorCode.ER_TABLE_CORRUPT,
    }
)
"""What is wrong with the table that a statement names, not with others: a right, or its files."""

READ_ONLY = frozenset(
    {
        ErrorCode.ER_OPTION_PREVENTS_STATEMENT,
        ErrorCode.ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION,
        ErrorCode.ER_READ_ONLY_MODE,
        ErrorCode.ER_RUN_HOOK_ERROR,
    }
)
"""The server takes no writes."""

RESOURCES = frozenset(
    {
        ErrorCode.EE_OUTOFMEMORY,
        ErrorCode.EE_DISK_FULL,
        ErrorCode.EE_GLOBAL_TMP_SPACE_FULL,
        ErrorCode.ER_DISK_FULL,
        ErrorCode.ER_DISK_FULL_NOWAIT,
        ErrorCode.ER_OUTOFMEMORY,
        ErrorCode.ER_OUT_OF_RESOURCES,
        ErrorCode.ER_RECORD_FILE_FULL,
        ErrorCode.ER_CANT_CREATE_THREAD,
        ErrorCode.ER_LOCK_TABLE_FULL,
    }
)
"""The server has no disk, memory or locks left just now."""

_OF_THE_SYSTEM = frozenset(
    {
        ErrorCode.EE_CANTCREATEFILE,
        ErrorCode.EE_WRITE,
        ErrorCode.ER_CANT_CREATE_FILE,
        ErrorCode.ER_CANT_CREATE_TABLE,
        ErrorCode.ER_CANT_CREATE_DB,
        ErrorCode.ER_CANT_OPEN_FILE,
        ErrorCode.ER_ERROR_ON_CLOSE,
        ErrorCode.ER_ERROR_ON_RENAME,
        ErrorCode.ER_ERROR_ON_WRITE,
        ErrorCode.ER_GET_ERRNO,
        ErrorCode.ER_ERROR_DURING_COMMIT,
    }
)
"""The operating system, or the storage engine, has refused something: the text says what."""

_NOTHING_LEFT = re.compile(
    r"\b(?:errno|errcode|error):? (?:11|12|23|24|28|122|128|135)\b"
    r"|no space left|disk full|out of memory",
    re.IGNORECASE,
)
"""No more processes, memory, open files, space or quota; the last two are the storage engines' for
memory and for a file that can't grow."""

_READ_ONLY = re.compile(r"read[-_ ]only", re.IGNORECASE)

_TEXTS: Mapping[int, re.Pattern[str]] = {
    **dict.fromkeys(_OF_THE_SYSTEM, _NOTHING_LEFT),
    # Other options, such as secure_file_priv, prevent a statement for as long as they are set.
    ErrorCode.ER_OPTION_PREVENTS_STATEMENT: _READ_ONLY,
    # A node of a Galera cluster that has lost the others, or is given their data.
    ErrorCode.ER_UNKNOWN_COM_ERROR: re.compile("WSREP"),
}
"""Codes that stand for several errors, with the texts of those that pass by themselves."""

NO_SUCH_TABLE = frozenset(
    {ErrorCode.ER_NO_SUCH_TABLE, ErrorCode.ER_BAD_DB_ERROR, ErrorCode.ER_UNKNOWN_TABLE}
)
"""There is no such table or database."""

DUPLICATE_KEY = frozenset({ErrorCode.ER_DUP_ENTRY, ErrorCode.ER_DUP_ENTRY_WITH_KEY_NAME})
"""A row has a key that is there already."""


class DatabaseUnavailableError(Exception):
    """The server cannot be reached just now, or gives odd answers; trying again later is safe.

    ``server`` is its address where that is known, in the form that errors show.
    """

    def __init__(self, message: str, *, server: str = "") -> None:
        super().__init__(message)
        self.server = server


class OddAnswerError(pymysql.err.OperationalError):
    """What came as the answer of a server can't be understood.

    The connection is of no use any more. Trying again later is safe: a proxy may have damaged it.
    """

    @classmethod
    def of(cls, finding: str) -> OddAnswerError:
        """The error with the code that the servers' own clients give it."""
        return cls(ErrorCode.CR_MALFORMED_PACKET.value, finding)


def error_code(error: BaseException) -> int:
    """The server's error number, also of a server that is unavailable; 0 where there is none."""
    if isinstance(error, DatabaseUnavailableError) and error.__cause__ is not None:
        error = error.__cause__
    args = error.args if isinstance(error, pymysql.err.MySQLError) else ()
    return args[0] if args and isinstance(args[0], int) else 0


def error_text(error: BaseException) -> str:
    """The server's words."""
    return str(error.args[1]) if len(error.args) > 1 else str(error) or type(error).__name__


def is_unavailable(error: BaseException) -> bool:
    """Whether a driver's error means that the server is away rather than that it refuses.

    So is one that takes no writes just now, or has no disk or memory left. The connection is then
    gone or to be given up, so that the end of a transaction is unknown.
    """
    if _passes(error):
        return True
    if isinstance(
        error, DatabaseUnavailableError | OddAnswerError | TimeoutError | ConnectionError
    ):
        return True
    if isinstance(error, pymysql.err.OperationalError | pymysql.err.InterfaceError):
        return not error.args or error.args[0] in UNAVAILABLE or error.args[0] == 0
    return isinstance(error, OSError)


def _passes(error: BaseException) -> bool:
    """Whether the server refuses what it would take at another moment."""
    code = error_code(error)
    if code in _TEXTS:
        return _TEXTS[code].search(error_text(error)) is not None
    return code in RESOURCES or code in READ_ONLY


def is_contention(error: BaseException) -> bool:
    """Whether the transaction was broken off for another one's sake: just try again."""
    return error_code(error) in CONTENTION
