"""Limits of servers on the size of a transaction or of a row, and the errors about them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pymysql.constants import ER

from replicator.mysql.errors import ErrorCode, error_code, error_text


@dataclass(frozen=True, slots=True)
class SizeLimit:
    """A limit of a server, and how to raise it.

    Attributes:
        code: code of the error.
        text: a regular expression; distinguishes the error from others with the code.
        setting: the server's name of the limit.
        remedy: how the operator raises it, an instruction without a full stop.
        of_row: whether a single row is too large, so that a smaller transaction does not help.
    """

    code: int
    text: str
    setting: str
    remedy: str
    of_row: bool = False


_QUOTA = "tidb_mem_quota_query"

LIMITS = (
    SizeLimit(
        ER.ERROR_DURING_COMMIT,
        "wsrep_max_ws_rows",
        "wsrep_max_ws_rows",
        "execute on every node of the target: SET GLOBAL wsrep_max_ws_rows = 0; and set the same"
        " in its my.cnf",
    ),
    SizeLimit(
        ER.UNKNOWN_ERROR,
        "writeset size",
        "wsrep_max_ws_size",
        "execute on every node of the target: SET GLOBAL wsrep_max_ws_size = 2147483647; and set"
        " the same in its my.cnf",
    ),
    SizeLimit(
        ER.TRANS_CACHE_FULL,
        "",
        "max_binlog_cache_size",
        "execute on the target: SET GLOBAL max_binlog_cache_size = 4294967296; and set the same in"
        " its my.cnf",
    ),
    SizeLimit(
        ErrorCode.ER_RUN_HOOK_ERROR,
        "before_commit",
        "group_replication_transaction_size_limit",
        "look for the reason in the target's error log; if the transaction is too large, execute on"
        " every member of the target's group: SET GLOBAL group_replication_transaction_size_limit"
        " = 2147483647; and set the same in its my.cnf",
    ),
    SizeLimit(
        ErrorCode.TIDB_TXN_TOO_LARGE,
        "",
        "performance.txn-total-size-limit",
        "set the target's performance.txn-total-size-limit to more",
    ),
    SizeLimit(
        ErrorCode.TIDB_MEMORY_EXCEED_FOR_QUERY,
        "",
        _QUOTA,
        f"set the target's {_QUOTA} to more",
    ),
    SizeLimit(ER.UNKNOWN_ERROR, _QUOTA, _QUOTA, f"set the target's {_QUOTA} to more"),
    SizeLimit(
        ErrorCode.TIDB_ENTRY_TOO_LARGE,
        "",
        "performance.txn-entry-size-limit",
        "set the target's performance.txn-entry-size-limit to more than the row's size",
        of_row=True,
    ),
)
"""Limits of Galera (MariaDB KB, "Galera Cluster System Variables"), of a binlog's cache, of group
replication (MySQL manual, "Group Replication System Variables"; only its error log has the reason),
and of TiDB (its pages "TiDB Configuration File" and "System Variables")."""


def size_limit(code: int, text: str) -> SizeLimit | None:
    """Return the limit that an error is about; None for other errors."""
    for limit in LIMITS:
        if code == limit.code and re.search(limit.text, text):
            return limit
    return None


def is_too_large(error: BaseException) -> bool:
    """Return whether the transaction is too large, so that the server may accept smaller ones."""
    limit = size_limit(error_code(error), error_text(error))
    return limit is not None and not limit.of_row
