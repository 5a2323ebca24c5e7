"""What a server's refusal means for a task: a fault, unless the server is only unavailable, or a
lock is in the way."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pymysql.err
from pymysql.constants import CR

from actors.faults import FatalError, Recovery, of_source, of_target
from replicator.checks.connecting import explain
from replicator.mysql.connection.asyncio_connection import DatabaseAddress
from replicator.mysql.errors import (
    LOGIN_REFUSED,
    MISSING_PRIVILEGE,
    OF_ONE_TABLE,
    DatabaseUnavailableError,
    error_code,
    is_contention,
    is_unavailable,
)
from replicator.mysql.names import TableName
from replicator.routing.expression.types import ExpressionError
from replicator.schema.structure.structure import Table

_NEW_FILE = " (a changed task file is read by `replicator reload`, not by `resume`)"


def refusal(
    address: DatabaseAddress,
    error: pymysql.err.MySQLError,
    *,
    source: str | None,
    of: TableName | None = None,
) -> FatalError | DatabaseUnavailableError:
    """The error to raise for an error of a server: of a source, or (None) of the target. ``of``:
    the target whose table, or a shard of which, the statement is about. An error of that table
    alone blocks no other target.
    """
    if is_unavailable(error) or is_contention(error):
        return DatabaseUnavailableError(f"{address}: {error}", server=str(address))
    code = error_code(error)
    resume = "then `replicator resume`"
    finding = f"{address} refused a statement: {error.args[-1] if error.args else error} ({code})"
    if code in LOGIN_REFUSED:
        finding, way = explain(address, error)
        resume += _NEW_FILE
    elif code in MISSING_PRIVILEGE:
        way = f"grant {address.user} what the error names (`replicator check` shows what it needs)"
    else:
        way = "fix at the server what the error names"
    where = "target" if source is None else f"source {source}"
    scope = None if source is None else of_source(source)
    if of is not None and code in OF_ONE_TABLE:
        where = f"target {of}" if source is None else f"{where}, target {of}"
        scope = of_target(of)
    return FatalError(
        "server.refused",
        finding,
        f"{way}; {resume}",
        where=where,
        scope=scope,
    )


def refused_in_executor(address: DatabaseAddress, code: int, message: str) -> FatalError:
    """The fault that the target refuses the login of a Spark executor.

    ``code`` and ``message`` are those of LOGIN_REFUSED that the executor was told.
    """
    if code == CR.CR_SSL_CONNECTION_ERROR:
        finding, way = message, "fix what the message says (`replicator check` has the remedy)"
    else:
        finding, way = explain(address, pymysql.err.OperationalError(code, message))
    return FatalError(
        "server.refused",
        f"a Spark executor can't log in: {finding}",
        f"{way}; then `replicator resume`{_NEW_FILE}",
        "if `replicator check` can log in from this host: allow the account to log in from"
        " the hosts of the executors, too, and check their clocks; then `replicator resume`",
        where="target",
    )


def refuse_engine(name: TableName, table: Table) -> None:
    """Raise FatalError for a target that can't roll back."""
    if table.transactional:
        return
    raise FatalError(
        "target.not-transactional",
        f"the storage engine of the target {name} has no transactions, so the task can't commit"
        " rows and its progress together. After a lost connection, rows could be duplicated or"
        " missing",
        f"ALTER TABLE {name.quoted} ENGINE=InnoDB, then `replicator resume`",
        where=f"target {name}",
        scope=of_target(name),
    )


def unfit_filter(error: ExpressionError, member: str, target: TableName) -> FatalError:
    """The fault that an expression filter can't be evaluated on the rows of a shard."""
    return FatalError(
        "rows.filter-unfit",
        f"{member}: {error}. The task can't tell which rows to leave out",
        "write the expression so that it fits the table as it was when these rows were"
        " written (or delete the rule: then all rows pass); then"
        " `replicator reload TASK.yaml --on-changed-rules keep`, or `recopy` instead of `keep`"
        " if the new rule gives another result for earlier rows",
        where=f"{member}, target {target}",
        scope=of_target(target),
    )


Others = Callable[[Collection[TableName]], bool]
"""Whether there are other targets that go on: otherwise the task need not set these aside."""


def locked_fault(targets: Collection[TableName], message: str, where: str) -> FatalError:
    """The fault that holds these targets until the task tries them again. ``message``: the server's
    error."""
    names = sorted(targets)
    return FatalError(
        "target.locked",
        f"another session has locked {', '.join(map(str, names))} for too long: {message}."
        " The other targets go on",
        "wait: the task tries again by itself, after seconds at first and minutes later;"
        " `replicator resume` tries at once",
        "end the session that has the lock: SHOW FULL PROCESSLIST,"
        " information_schema.INNODB_TRX (TiDB: information_schema.TIDB_TRX) and"
        " performance_schema.metadata_locks (MariaDB: information_schema.METADATA_LOCK_INFO,"
        " with the plugin metadata_lock_info) show it",
        where=where,
        scope=of_target(*names),
        recovery=Recovery.RETRY,
    )
