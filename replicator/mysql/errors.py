"""The meaning of the errors of servers and of the client library.

Needs no more than PyMySQL: executors have no asyncio driver.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum

import pymysql.err
from pymysql.constants import CR, ER


class ErrorCode(IntEnum):
    """Numbers of errors and warnings that `pymysql.constants` lacks, by the servers' own names.

    Sources: MySQL manual, "Server Error Message Reference" and "Global Error Message Reference";
    MariaDB KB, "MariaDB Error Code Reference"; for TiDB "Error Codes and Troubleshooting" and its
    ``pkg/errno/errcode.go`` (ErrTxnTooLarge, ErrUnsupportedDDLOperation).
    """

    EE_CANTCREATEFILE = 1
    EE_WRITE = 3
    EE_OUTOFMEMORY = 5
    EE_DISK_FULL = 20
    EE_GLOBAL_TMP_SPACE_FULL = 42
    """MariaDB only."""

    WARN_DATA_TRUNCATED = 1265
    ER_PARTITION_MGMT_ON_NONPARTITIONED = 1505
    ER_DROP_PARTITION_NON_EXISTENT = 1507
    ER_SAME_NAME_PARTITION = 1517
    ER_NO_PARTITION_FOR_GIVEN_VALUE = 1526
    ER_DROP_INDEX_FK = 1553
    ER_DUP_ENTRY_WITH_KEY_NAME = 1586
    ER_BINLOG_UNSAFE_STATEMENT = 1592
    ER_NEED_REPREPARE = 1615
    ER_SIGNAL_WARN = 1642
    ER_SIGNAL_NOT_FOUND = 1643
    ER_SIGNAL_EXCEPTION = 1644
    ER_DATA_OUT_OF_RANGE = 1690
    ER_ACCESS_DENIED_NO_PASSWORD_ERROR = 1698
    ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION = 1792
    ER_TABLESPACE_MISSING = 1812
    ER_TABLESPACE_DISCARDED = 1814
    ER_FK_NO_INDEX_PARENT = 1822
    ER_FK_FAIL_ADD_SYSTEM = 1823
    ER_FK_CANNOT_OPEN_PARENT = 1824
    ER_FK_DUP_NAME = 1826
    """The name of a foreign key, in MariaDB of any constraint."""
    ER_FK_COLUMN_CANNOT_DROP = 1828
    ER_FK_COLUMN_CANNOT_DROP_CHILD = 1829
    ER_FK_COLUMN_CANNOT_CHANGE = 1832
    ER_FK_COLUMN_CANNOT_CHANGE_CHILD = 1833
    ER_UNSUPPORTED_ACTION_ON_GENERATED_COLUMN = 3106
    ER_FK_NO_COLUMN_PARENT = 3734
    ER_FK_INCOMPATIBLE_COLUMNS = 3780
    ER_FK_NO_UNIQUE_INDEX_PARENT = 6125
    """MySQL 8.4 and newer."""
    ER_MUST_CHANGE_PASSWORD = 1820
    ER_READ_ONLY_MODE = 1836
    ER_MUST_CHANGE_PASSWORD_LOGIN = 1862
    ER_TABLE_CORRUPT = 1877

    ER_CONNECTION_KILLED = 1927
    """MariaDB only."""
    ER_NO_SUCH_TABLE_IN_ENGINE = 1932
    """MariaDB only."""
    ER_USER_IS_BLOCKED = 4150
    """MariaDB only: after too many wrong passwords (max_password_errors)."""
    ER_ACCOUNT_HAS_BEEN_LOCKED_MARIADB = 4151
    """MariaDB's number for MySQL's 3118."""
    ER_SLAVE_SAME_ID = 4052
    """MariaDB only."""

    ER_ACCOUNT_HAS_BEEN_LOCKED = 3118
    """MySQL and TiDB."""
    ER_USER_ACCESS_DENIED_FOR_USER_ACCOUNT_BLOCKED_BY_PASSWORD_LOCK = 3955
    """MySQL and TiDB: after too many wrong passwords (FAILED_LOGIN_ATTEMPTS)."""
    ER_SERVER_OFFLINE_MODE = 3032
    """MySQL only."""
    ER_DISK_FULL_NOWAIT = 3675
    """MySQL only."""
    ER_RUN_HOOK_ERROR = 3100
    """MySQL only: a plug-in, such as group replication, has refused the transaction."""
    ER_TRANSACTION_ROLLBACK_DURING_COMMIT = 3101
    """MySQL only: group replication has refused the transaction for another member's sake."""
    ER_SESSION_WAS_KILLED = 3169
    """MySQL only."""
    ER_DUP_CONSTRAINT_NAME = 3822
    """MySQL only: the name of a check."""
    ER_CHECK_CONSTRAINT_VIOLATED = 3819
    """MySQL and TiDB."""
    ER_CONSTRAINT_FAILED = 4025
    """MariaDB only: a check is violated."""
    ER_INVALID_JSON_TEXT = 3140
    """MySQL and TiDB."""
    ER_WRONG_SRID_FOR_COLUMN = 3643
    """MySQL only."""
    ER_FUNCTIONAL_INDEX_DATA_IS_TOO_LONG = 3751
    """MySQL only."""
    ER_CLIENT_INTERACTION_TIMEOUT = 4031
    """MySQL only."""

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


LOST = frozenset(
    {
        ER.CON_COUNT_ERROR,
        ER.SERVER_SHUTDOWN,
        ER.NORMAL_SHUTDOWN,
        ER.SHUTDOWN_COMPLETE,
        ER.ABORTING_CONNECTION,
        ER.NET_READ_ERROR,
        ER.NET_READ_INTERRUPTED,
        ER.NET_ERROR_ON_WRITE,
        ER.NET_WRITE_INTERRUPTED,
        ER.TOO_MANY_USER_CONNECTIONS,
        ER.USER_LIMIT_REACHED,
        ErrorCode.ER_CONNECTION_KILLED,
        ErrorCode.ER_SESSION_WAS_KILLED,
        ErrorCode.ER_CLIENT_INTERACTION_TIMEOUT,
        CR.CR_CONNECTION_ERROR,
        CR.CR_CONN_HOST_ERROR,
        CR.CR_SERVER_GONE_ERROR,
        CR.CR_SERVER_LOST,
        CR.CR_SERVER_LOST_EXTENDED,
    }
)
"""Codes of a server that is unavailable, full or shutting down, or of a connection that has
ended."""

UNAVAILABLE = LOST | {
    ER.FORCING_CLOSE,
    ErrorCode.ER_SERVER_OFFLINE_MODE,
    ER.HOST_IS_BLOCKED,
    CR.CR_COMMANDS_OUT_OF_SYNC,
    CR.CR_NET_PACKET_TOO_LARGE,
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
"""Codes that do not concern the statement: the server is unavailable, full or shutting down, the
connection was killed, the account has used up its limits, or the answer is too large. For TiDB: its
storage is unavailable or busy, or the transaction ended because of another one or of a schema
change, and must be retried."""

CONTENTION = frozenset(
    {
        ER.LOCK_WAIT_TIMEOUT,
        ER.LOCK_DEADLOCK,
        ER.QUERY_INTERRUPTED,
        # MariaDB with innodb_snapshot_isolation.
        ER.CHECKREAD,
        ErrorCode.ER_TRANSACTION_ROLLBACK_DURING_COMMIT,
    }
)
"""Codes of a transaction that was ended because of another one, or by somebody."""

REFUSED_BY_TIDB = frozenset(
    {ErrorCode.TIDB_UNSUPPORTED_DDL, ErrorCode.ER_UNSUPPORTED_ACTION_ON_GENERATED_COLUMN}
)
"""Codes of a schema change that TiDB can't make in place, although it may store the changed
table."""

NOT_UNDERSTOOD = frozenset(
    {
        ER.PARSE_ERROR,
        ER.NOT_SUPPORTED_YET,
        ER.UNKNOWN_CHARACTER_SET,
        ER.UNKNOWN_COLLATION,
        ER.BAD_FIELD_ERROR,
        ER.DUP_FIELDNAME,
        ER.DUP_KEYNAME,
        ER.KEY_COLUMN_DOES_NOT_EXITS,
        ER.CANT_DROP_FIELD_OR_KEY,
        ErrorCode.TIDB_UNSUPPORTED_DDL,
    }
)
"""Codes of a schema change that the server would always refuse for a table of this structure."""

KEY_IS_SO = frozenset(
    {
        ER.DUP_KEYNAME,
        ER.MULTIPLE_PRI_KEY,
        ER.CANT_DROP_FIELD_OR_KEY,
        ER.KEY_DOES_NOT_EXITS,
        ErrorCode.ER_PARTITION_MGMT_ON_NONPARTITIONED,
        ErrorCode.ER_DROP_PARTITION_NON_EXISTENT,
        ErrorCode.ER_SAME_NAME_PARTITION,
        ErrorCode.ER_DUP_CONSTRAINT_NAME,
        ErrorCode.ER_FK_DUP_NAME,
    }
)
"""A key, constraint or partition exists already, or one to drop does not exist."""

ACCESS_DENIED = frozenset({ER.ACCESS_DENIED_ERROR, ErrorCode.ER_ACCESS_DENIED_NO_PASSWORD_ERROR})
"""Codes of a refused login."""

PASSWORD_EXPIRED = frozenset(
    {ErrorCode.ER_MUST_CHANGE_PASSWORD, ErrorCode.ER_MUST_CHANGE_PASSWORD_LOGIN}
)
"""Codes of an expired password, which was right."""

ACCOUNT_LOCKED = frozenset(
    {
        ErrorCode.ER_ACCOUNT_HAS_BEEN_LOCKED,
        ErrorCode.ER_ACCOUNT_HAS_BEEN_LOCKED_MARIADB,
        ErrorCode.ER_USER_ACCESS_DENIED_FOR_USER_ACCOUNT_BLOCKED_BY_PASSWORD_LOCK,
        ErrorCode.ER_USER_IS_BLOCKED,
    }
)
"""Codes of an account with which nobody can log in, for whatever reason."""

HOST_REFUSED = frozenset({ER.HOST_IS_BLOCKED, ER.HOST_NOT_PRIVILEGED})
"""Codes of a server that accepts no connections of this host."""

LOGIN_REFUSED = (
    ACCESS_DENIED
    | PASSWORD_EXPIRED
    | ACCOUNT_LOCKED
    | HOST_REFUSED
    | {
        CR.CR_SSL_CONNECTION_ERROR,
        CR.CR_AUTH_PLUGIN_CANNOT_LOAD,
        CR.CR_AUTH_PLUGIN_ERR,
    }
)
"""All codes of a login that will also be refused later."""

MISSING_PRIVILEGE = frozenset(
    {
        ER.DBACCESS_DENIED_ERROR,
        ER.TABLEACCESS_DENIED_ERROR,
        ER.COLUMNACCESS_DENIED_ERROR,
        ER.SPECIFIC_ACCESS_DENIED_ERROR,
        ER.PROCACCESS_DENIED_ERROR,
    }
)
"""Codes of an action that this user may not execute."""

OF_ONE_TABLE = frozenset(
    {
        ER.TABLEACCESS_DENIED_ERROR,
        ER.COLUMNACCESS_DENIED_ERROR,
        ER.GET_ERRNO,
        ER.NOT_KEYFILE,
        ER.CRASHED_ON_USAGE,
        ER.CRASHED_ON_REPAIR,
        ER.VIEW_INVALID,
        ErrorCode.ER_NO_SUCH_TABLE_IN_ENGINE,
        ER.TABLE_DEF_CHANGED,
        ErrorCode.ER_TABLESPACE_MISSING,
        ErrorCode.ER_TABLESPACE_DISCARDED,
        ErrorCode.ER_TABLE_CORRUPT,
    }
)
"""Codes that concern only the table of a statement: a right, or its files."""

READ_ONLY = frozenset(
    {
        ER.OPTION_PREVENTS_STATEMENT,
        ErrorCode.ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION,
        ErrorCode.ER_READ_ONLY_MODE,
    }
)
"""Codes of a server that accepts no writes."""

RESOURCES = frozenset(
    {
        ErrorCode.EE_OUTOFMEMORY,
        ErrorCode.EE_DISK_FULL,
        ErrorCode.EE_GLOBAL_TMP_SPACE_FULL,
        ER.DISK_FULL,
        ErrorCode.ER_DISK_FULL_NOWAIT,
        ER.OUTOFMEMORY,
        ER.OUT_OF_RESOURCES,
        ER.RECORD_FILE_FULL,
        ER.CANT_CREATE_THREAD,
        ER.LOCK_TABLE_FULL,
    }
)
"""Codes of a server that has no disk, memory or locks left now."""

_OF_THE_SYSTEM = frozenset(
    {
        ErrorCode.EE_CANTCREATEFILE,
        ErrorCode.EE_WRITE,
        ER.CANT_CREATE_FILE,
        ER.CANT_CREATE_TABLE,
        ER.CANT_CREATE_DB,
        ER.CANT_OPEN_FILE,
        ER.ERROR_ON_CLOSE,
        ER.ERROR_ON_RENAME,
        ER.ERROR_ON_WRITE,
        ER.GET_ERRNO,
        ER.ERROR_DURING_COMMIT,
    }
)
"""Codes by which the operating system, or the storage engine, has refused something, as the text
says."""

_NOTHING_LEFT = re.compile(
    r"\b(?:errno|errcode|error):? (?:11|12|23|24|28|122|128|135)\b"
    r"|no space left|disk full|out of memory",
    re.IGNORECASE,
)
"""Texts about missing processes, memory, open files, space or quota. The last two are the storage
engines' texts about memory and about a file that can't grow."""

_READ_ONLY = re.compile(r"read[-_ ]only", re.IGNORECASE)

_TEXTS: Mapping[int, re.Pattern[str]] = {
    **dict.fromkeys(_OF_THE_SYSTEM, _NOTHING_LEFT),
    # Other options, such as secure_file_priv, prevent a statement for as long as they are set.
    ER.OPTION_PREVENTS_STATEMENT: _READ_ONLY,
    # A node of a Galera cluster that has lost the others, or is receiving their data.
    ER.UNKNOWN_COM_ERROR: re.compile("WSREP"),
    # Before a commit, it means that the transaction is too large (`replicator.mysql.size_limits`).
    ErrorCode.ER_RUN_HOOK_ERROR: re.compile(r"^(?!.*before_commit)", re.DOTALL),
}
"""Codes of several errors, with the texts of the errors that are temporary."""

NO_SUCH_TABLE = frozenset({ER.NO_SUCH_TABLE, ER.BAD_DB_ERROR, ER.UNKNOWN_TABLE})
"""There is no such table or database."""

DUPLICATE_KEY = frozenset({ER.DUP_ENTRY, ErrorCode.ER_DUP_ENTRY_WITH_KEY_NAME})
"""A row has a key that exists already."""


DOES_NOT_FIT = frozenset(
    {
        ER.INVALID_USE_OF_NULL,
        ER.BAD_NULL_ERROR,
        ER.DATA_TOO_LONG,
        ER.WARN_DATA_OUT_OF_RANGE,
        ErrorCode.WARN_DATA_TRUNCATED,
        ER.TRUNCATED_WRONG_VALUE,
        ER.TRUNCATED_WRONG_VALUE_FOR_FIELD,
    }
)
"""Codes of a value that does not fit the new definition of its column, in strict mode."""


class DatabaseUnavailableError(Exception):
    """The server cannot be reached now, or returns odd answers; a later retry is safe.

    ``server``: its address if it is known, in the form for errors.
    """

    def __init__(self, message: str, *, server: str = "") -> None:
        super().__init__(message)
        self.server = server


class OddAnswerError(pymysql.err.OperationalError):
    """The answer of a server can't be parsed.

    The connection can't be used any more. A later retry is safe: a proxy may have damaged it.
    """

    @classmethod
    def of(cls, finding: str) -> OddAnswerError:
        """Return the error with the code of the servers' own clients."""
        return cls(CR.CR_MALFORMED_PACKET, finding)


def error_code(error: BaseException) -> int:
    """Return the server's error number, also for an unavailable server; 0 if there is none."""
    if isinstance(error, DatabaseUnavailableError) and error.__cause__ is not None:
        error = error.__cause__
    args = error.args if isinstance(error, pymysql.err.MySQLError) else ()
    return args[0] if args and isinstance(args[0], int) else 0


def error_text(error: BaseException) -> str:
    """Return the server's message."""
    return str(error.args[1]) if len(error.args) > 1 else str(error) or type(error).__name__


def is_unavailable(error: BaseException) -> bool:
    """Return whether a driver's error means that the server is unavailable rather than a refusal.

    A server that accepts no writes now, or has no disk or memory left, counts as unavailable. The
    connection is then gone or must be given up, so the end of a transaction is unknown.
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
    code = error_code(error)
    if code in _TEXTS:
        return _TEXTS[code].search(error_text(error)) is not None
    return code in RESOURCES or code in READ_ONLY


def is_contention(error: BaseException) -> bool:
    """Return whether the transaction was ended because of another one, so that a retry may help."""
    return error_code(error) in CONTENTION


def is_about_statement(error: BaseException) -> bool:
    """Return whether the same statement would fail again, in any session that can log in."""
    return not is_contention(error) and error_code(error) not in LOGIN_REFUSED


FOREIGN_KEY = frozenset(
    {
        ER.CANT_CREATE_TABLE,
        ER.CANNOT_ADD_FOREIGN,
        ErrorCode.ER_DROP_INDEX_FK,
        ErrorCode.ER_FK_NO_INDEX_PARENT,
        ErrorCode.ER_FK_CANNOT_OPEN_PARENT,
        ErrorCode.ER_FK_COLUMN_CANNOT_DROP,
        ErrorCode.ER_FK_COLUMN_CANNOT_DROP_CHILD,
        ErrorCode.ER_FK_COLUMN_CANNOT_CHANGE,
        ErrorCode.ER_FK_COLUMN_CANNOT_CHANGE_CHILD,
        ErrorCode.ER_FK_NO_COLUMN_PARENT,
        ErrorCode.ER_FK_INCOMPATIBLE_COLUMNS,
        ErrorCode.ER_FK_NO_UNIQUE_INDEX_PARENT,
    }
)
"""Codes of statements that do not fit the foreign keys between their table and others."""
