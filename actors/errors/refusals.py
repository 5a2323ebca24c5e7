"""The meaning of a server's refusal for a task.

It is a fault, unless the server is only unavailable, or a lock prevents the work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import pymysql.err
from pymysql.constants import CR

from actors.errors.faults import FatalError, Recovery, fault, of_source, of_target
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


def refusal(
    address: DatabaseAddress,
    error: pymysql.err.MySQLError,
    *,
    source: str | None,
    of: TableName | None = None,
) -> FatalError | DatabaseUnavailableError:
    """Return the exception to raise for an error of a source, or (None) of the target.

    ``of``: the target whose table, or a shard of which, the statement concerns. An error that
    concerns only this table blocks no other target.
    """
    if is_unavailable(error) or is_contention(error):
        return DatabaseUnavailableError(f"{address}: {error}", server=str(address))
    code = error_code(error)
    where = "target" if source is None else f"source {source}"
    scope = None if source is None else of_source(source)
    if of is not None and code in OF_ONE_TABLE:
        where = f"target {of}" if source is None else f"{where}, target {of}"
        scope = of_target(of)
    if code in LOGIN_REFUSED:
        finding, way = explain(address, error)
        return fault(
            "server.refused",
            "login",
            scope=scope,
            recovery=recovery_from(code),
            finding=finding,
            way=way,
            where=where,
        )
    return fault(
        "server.refused",
        "statement",
        scope=scope,
        recovery=recovery_from(code),
        server=address,
        error=error.args[-1] if error.args else error,
        code=code,
        unprivileged=code in MISSING_PRIVILEGE,
        account=address.user,
        where=where,
    )


def recovery_from(code: int) -> Recovery:
    """Return how a task recovers from a fault with this error of a server.

    A server that denies access may allow it again without anybody telling the task.
    """
    if code in MISSING_PRIVILEGE | LOGIN_REFUSED:
        return Recovery.OPERATOR_OR_RETRY
    return Recovery.BY_OPERATOR


def refused_in_executor(address: DatabaseAddress, code: int, message: str) -> FatalError:
    """Return the fault for a target that refuses the login of a Spark executor.

    ``code`` and ``message`` are those of the LOGIN_REFUSED error that the executor got.
    """
    if code == CR.CR_SSL_CONNECTION_ERROR:
        finding, way = message, "fix what the message says (`replicator check` has the remedy)"
    else:
        finding, way = explain(address, pymysql.err.OperationalError(code, message))
    return fault(
        "server.refused",
        "executor-login",
        recovery=Recovery.OPERATOR_OR_RETRY,
        finding=finding,
        way=way,
    )


def refuse_engine(name: TableName, table: Table) -> None:
    """Raise FatalError for a target whose engine has no transactions."""
    if table.transactional:
        return
    raise fault("target.not-transactional", target=name)


def unfit_filter(error: ExpressionError, member: str, target: TableName) -> FatalError:
    """Return the fault for an expression filter that can't be evaluated on the rows of a shard."""
    return fault("rows.filter-unfit", member=member, error=error, target=target)


Others = Callable[[Collection[TableName]], bool]
"""Returns whether other targets continue; if none does, the task need not set these aside."""


def locked_fault(targets: Collection[TableName], message: str, where: str) -> FatalError:
    """Return the fault that holds these targets until the task tries them again.

    ``message`` is the server's error.
    """
    names = sorted(targets)
    return fault(
        "target.locked",
        scope=of_target(*names),
        recovery=Recovery.RETRY,
        targets=", ".join(map(str, names)),
        error=message,
        where=where,
    )
