"""The error numbers of servers and of the client library, by name, and what they mean to us.

The names are the servers' own: MySQL manual, "Server Error Message Reference" and "Client Error
Message Reference"; MariaDB KB, "MariaDB Error Code Reference"; for TiDB its page "Error Codes and
Troubleshooting" and its ``pkg/errno/errcode.go``, where TIDB_TXN_TOO_LARGE is ErrTxnTooLarge and
TIDB_UNSUPPORTED_DDL ErrUnsupportedDDLOperation.
Needs no more than PyMySQL: executors have no asyncio driver.
"""

from __future__ import annotations

from enum import IntEnum

import pymysql.err


class ErrorCode(IntEnum):
    """Numbers of errors and warnings."""

    ER_DB_CREATE_EXISTS = 1007
    ER_DB_DROP_EXISTS = 1008
    ER_CON_COUNT_ERROR = 1040
    ER_DBACCESS_DENIED_ERROR = 1044
    ER_ACCESS_DENIED_ERROR = 1045
    ER_BAD_NULL_ERROR = 1048
    ER_BAD_DB_ERROR = 1049
    ER_TABLE_EXISTS_ERROR = 1050
    ER_BAD_TABLE_ERROR = 1051
    ER_SERVER_SHUTDOWN = 1053
    ER_BAD_FIELD_ERROR = 1054
    ER_DUP_FIELDNAME = 1060
    ER_DUP_KEYNAME = 1061
    ER_DUP_ENTRY = 1062
    ER_PARSE_ERROR = 1064
    ER_NONUNIQ_TABLE = 1066
    ER_KEY_COLUMN_DOES_NOT_EXITS = 1072
    ER_NORMAL_SHUTDOWN = 1077
    ER_SHUTDOWN_COMPLETE = 1079
    ER_CANT_DROP_FIELD_OR_KEY = 1091
    ER_UNKNOWN_ERROR = 1105
    ER_UNKNOWN_TABLE = 1109
    ER_UNKNOWN_CHARACTER_SET = 1115
    ER_HOST_IS_BLOCKED = 1129
    ER_HOST_NOT_PRIVILEGED = 1130
    ER_TABLEACCESS_DENIED_ERROR = 1142
    ER_COLUMNACCESS_DENIED_ERROR = 1143
    ER_NO_SUCH_TABLE = 1146
    ER_ABORTING_CONNECTION = 1152
    ER_NET_PACKET_TOO_LARGE = 1153
    ER_NET_READ_ERROR = 1158
    ER_NET_READ_INTERRUPTED = 1159
    ER_NET_ERROR_ON_WRITE = 1160
    ER_NET_WRITE_INTERRUPTED = 1161
    ER_KEY_DOES_NOT_EXITS = 1176
    ER_UNKNOWN_SYSTEM_VARIABLE = 1193
    ER_TOO_MANY_USER_CONNECTIONS = 1203
    ER_LOCK_WAIT_TIMEOUT = 1205
    ER_LOCK_DEADLOCK = 1213
    ER_ERROR_WHEN_EXECUTING_COMMAND = 1220
    ER_USER_LIMIT_REACHED = 1226
    ER_SPECIFIC_ACCESS_DENIED_ERROR = 1227
    ER_WRONG_VALUE_FOR_VAR = 1231
    ER_WRONG_TYPE_FOR_VAR = 1232
    ER_NOT_SUPPORTED_YET = 1235
    ER_MASTER_FATAL_ERROR_READING_BINLOG = 1236
    ER_INCORRECT_GLOBAL_LOCAL_VAR = 1238
    ER_WARN_NULL_TO_NOTNULL = 1263
    ER_WARN_DATA_OUT_OF_RANGE = 1264
    WARN_DATA_TRUNCATED = 1265
    ER_UNKNOWN_COLLATION = 1273
    ER_WARN_DEPRECATED_SYNTAX = 1287
    ER_OPTION_PREVENTS_STATEMENT = 1290
    ER_TRUNCATED_WRONG_VALUE = 1292
    ER_UNSUPPORTED_PS = 1295
    ER_UNKNOWN_TIME_ZONE = 1298
    ER_INVALID_CHARACTER_STRING = 1300
    ER_QUERY_INTERRUPTED = 1317
    ER_DIVISION_BY_ZERO = 1365
    ER_TRUNCATED_WRONG_VALUE_FOR_FIELD = 1366
    ER_PROCACCESS_DENIED_ERROR = 1370
    ER_NO_BINARY_LOGGING = 1381
    ER_XAER_RMERR = 1401
    ER_DATA_TOO_LONG = 1406
    ER_TABLE_DEF_CHANGED = 1412
    ER_MAX_PREPARED_STMT_COUNT_REACHED = 1461
    ER_DUP_ENTRY_WITH_KEY_NAME = 1586
    ER_BINLOG_UNSAFE_STATEMENT = 1592
    ER_NEED_REPREPARE = 1615
    ER_DATA_OUT_OF_RANGE = 1690
    ER_ACCESS_DENIED_NO_PASSWORD_ERROR = 1698
    ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION = 1792
    ER_MUST_CHANGE_PASSWORD = 1820
    ER_READ_ONLY_MODE = 1836
    ER_MUST_CHANGE_PASSWORD_LOGIN = 1862

    ER_CONNECTION_KILLED = 1927
    """MariaDB only."""
    ER_USER_IS_BLOCKED = 4150
    """MariaDB only: after too many wrong passwords (max_password_errors)."""
    ER_ACCOUNT_HAS_BEEN_LOCKED_MARIADB = 4151
    """MariaDB's number of what MySQL numbers 3118."""
    ER_SLAVE_SAME_ID = 4052
    """MariaDB only."""

    ER_ACCOUNT_HAS_BEEN_LOCKED = 3118
    """MySQL and TiDB."""
    ER_USER_ACCESS_DENIED_FOR_USER_ACCOUNT_BLOCKED_BY_PASSWORD_LOCK = 3955
    """MySQL and TiDB: after too many wrong passwords (FAILED_LOGIN_ATTEMPTS)."""
    ER_RUN_HOOK_ERROR = 3100
    """MySQL only: a plug-in, such as group replication, has refused the transaction."""
    ER_SESSION_WAS_KILLED = 3169
    """MySQL only."""
    ER_CHECK_CONSTRAINT_VIOLATED = 3819
    """MySQL and TiDB."""
    ER_CLIENT_INTERACTION_TIMEOUT = 4031
    """MySQL only."""

    CR_CONNECTION_ERROR = 2002
    CR_CONN_HOST_ERROR = 2003
    CR_SERVER_GONE_ERROR = 2006
    CR_SERVER_LOST = 2013
    CR_COMMANDS_OUT_OF_SYNC = 2014
    CR_NET_PACKET_TOO_LARGE = 2020
    CR_SSL_CONNECTION_ERROR = 2026
    CR_MALFORMED_PACKET = 2027
    CR_SERVER_LOST_EXTENDED = 2055
    CR_AUTH_PLUGIN_CANNOT_LOAD = 2059
    CR_AUTH_PLUGIN_ERR = 2061

    TIDB_FOR_UPDATE_CANT_RETRY = 8002
    TIDB_TXN_TOO_LARGE = 8004
    TIDB_WRITE_CONFLICT_IN_TIDB = 8005
    TIDB_TXN_RETRYABLE = 8022
    TIDB_ENTRY_TOO_LARGE = 8025
    TIDB_INFO_SCHEMA_EXPIRED = 8027
    TIDB_INFO_SCHEMA_CHANGED = 8028
    TIDB_SCHEMA_CHANGED = 8113
    TIDB_MEMORY_EXCEED_FOR_QUERY = 8175
    TIDB_UNSUPPORTED_DDL = 8200
    TIDB_PD_SERVER_TIMEOUT = 9001
    TIDB_TIKV_SERVER_TIMEOUT = 9002
    TIDB_TIKV_SERVER_BUSY = 9003
    TIDB_RESOLVE_LOCK_TIMEOUT = 9004
    TIDB_REGION_UNAVAILABLE = 9005
    TIDB_WRITE_CONFLICT = 9007
    TIDB_TIKV_STALE_COMMAND = 9010


UNAVAILABLE = frozenset(
    {
        ErrorCode.ER_CON_COUNT_ERROR,
        ErrorCode.ER_SERVER_SHUTDOWN,
        ErrorCode.ER_NORMAL_SHUTDOWN,
        ErrorCode.ER_SHUTDOWN_COMPLETE,
        ErrorCode.ER_HOST_IS_BLOCKED,
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
        ErrorCode.CR_COMMANDS_OUT_OF_SYNC,
        ErrorCode.CR_NET_PACKET_TOO_LARGE,
        ErrorCode.CR_SERVER_LOST_EXTENDED,
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
)
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

READ_ONLY = frozenset(
    {
        ErrorCode.ER_OPTION_PREVENTS_STATEMENT,
        ErrorCode.ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION,
        ErrorCode.ER_READ_ONLY_MODE,
        ErrorCode.ER_RUN_HOOK_ERROR,
    }
)
"""The server takes no writes."""

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
    """The server's error number; 0 where there is none."""
    args = error.args if isinstance(error, pymysql.err.MySQLError) else ()
    return args[0] if args and isinstance(args[0], int) else 0


def error_text(error: BaseException) -> str:
    """The server's words."""
    return str(error.args[1]) if len(error.args) > 1 else str(error) or type(error).__name__


def is_unavailable(error: BaseException) -> bool:
    """Whether a driver's error means that the server is away rather than that it refuses.

    The connection is then gone or unusable, so that the end of a transaction is unknown.
    """
    if isinstance(
        error, DatabaseUnavailableError | OddAnswerError | TimeoutError | ConnectionError
    ):
        return True
    if isinstance(error, pymysql.err.OperationalError | pymysql.err.InterfaceError):
        return not error.args or error.args[0] in UNAVAILABLE or error.args[0] == 0
    return isinstance(error, OSError)


def is_contention(error: BaseException) -> bool:
    """Whether the transaction was broken off for another one's sake: just try again."""
    return error_code(error) in CONTENTION
