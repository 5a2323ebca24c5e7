"""The fault of a statement that the target has refused."""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote as quoted

from pymysql.constants import ER

from actors.errors.faults import DdlEvent, FatalError, fault
from actors.errors.refusals import recovery_from
from replicator.binlog.segments.segment import Statement
from replicator.ddl.model.actions import AddConstraint, AddKey
from replicator.ddl.parser.alter_parser import typed_actions
from replicator.ddl.parser.statement import StatementKind
from replicator.ddl.parser.statement_kinds import classify
from replicator.downstream.ddl.ddl_execution import (
    DdlExecution,
    DdlRefusedError,
    HalfExecutedError,
)
from replicator.mysql.errors import DUPLICATE_KEY, MISSING_PRIVILEGE, ErrorCode

_ABOUT_ROWS = DUPLICATE_KEY | {
    ER.WARN_NULL_TO_NOTNULL,
    ER.BAD_NULL_ERROR,
    ER.INVALID_USE_OF_NULL,
    ER.WARN_DATA_OUT_OF_RANGE,
    ER.DATA_TOO_LONG,
    ErrorCode.WARN_DATA_TRUNCATED,
    ER.TRUNCATED_WRONG_VALUE,
    ER.TRUNCATED_WRONG_VALUE_FOR_FIELD,
    ER.DIVISION_BY_ZERO,
    ER.CANT_CREATE_GEOMETRY_OBJECT,
    ErrorCode.ER_NO_PARTITION_FOR_GIVEN_VALUE,
    ErrorCode.ER_DATA_OUT_OF_RANGE,
    ErrorCode.ER_INVALID_JSON_TEXT,
    ErrorCode.ER_WRONG_SRID_FOR_COLUMN,
    ErrorCode.ER_FUNCTIONAL_INDEX_DATA_IS_TOO_LONG,
    ErrorCode.ER_CHECK_CONSTRAINT_VIOLATED,
    ErrorCode.ER_CONSTRAINT_FAILED,
    ER.NO_REFERENCED_ROW,
    ER.NO_REFERENCED_ROW_2,
}
"""Error codes by which a server refuses a statement because of the rows in its table."""


def refused_statement(
    ddl: DdlExecution, statement: Statement, error: DdlRefusedError, shown: str
) -> FatalError:
    """Return the fault to raise if the target has refused a statement, or the rest of one.

    ``shown``: the error's text for the operator.
    """
    half = isinstance(error, HalfExecutedError)
    left = error.left if isinstance(error, HalfExecutedError) else ddl.statements
    executed = error.executed if isinstance(error, HalfExecutedError) else ()
    kind = kind_of_refusal(error.code, left)
    return fault(
        "ddl.refused",
        "part" if half else "whole",
        about=DdlEvent(ddl.member.source, statement.position),
        recovery=recovery_from(error.code),
        error=shown,
        statement="; ".join(ddl.statements)[:2000],
        executed="; ".join(executed)[:2000],
        left="; ".join(left)[:2000] if half else "",
        kind=kind,
        lacks_syntax=kind in ("value", "name", "other"),
        member=ddl.member,
        target=ddl.target,
        quoted_target=quoted(str(ddl.target)),
    )


def kind_of_refusal(code: int, left: Iterable[str]) -> str:
    """Return the ``kind`` of `ddl.refused`: what the error of a statement is about.

    ``left``: the statements that the target has not executed.
    """
    if code in MISSING_PRIVILEGE:
        return "privilege"
    if code == ER.WRONG_VALUE_FOR_VAR:
        return "value"
    if code == ER.DUP_FIELDNAME:
        return "name"
    if code not in _ABOUT_ROWS:
        return "other"
    return "keys" if all(map(only_adds_keys, left)) else "rows"


def only_adds_keys(sql: str) -> bool:
    """Return whether a statement only adds indexes, keys and constraints.

    A table without them has the same rows.
    """
    parsed = classify(sql, default_schema="")
    if parsed.kind is StatementKind.CREATE_INDEX:
        return True
    actions = typed_actions(parsed)
    return bool(actions) and all(isinstance(a, AddKey | AddConstraint) for a in actions)
