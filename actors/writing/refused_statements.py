"""The remedies for a statement that the target has refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from shlex import quote as quoted

from pymysql.constants import ER

from replicator.ddl.model.actions import AddConstraint, AddKey
from replicator.ddl.parser.actions_text import typed_actions
from replicator.ddl.parser.statement import StatementKind
from replicator.ddl.parser.statement_kinds import classify
from replicator.downstream.ddl.ddl_execution import DdlRefusedError
from replicator.mysql.errors import DUPLICATE_KEY, MISSING_PRIVILEGE, ErrorCode
from replicator.mysql.names import TableName

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
"""Errors of statements that the rows of a table do not allow."""

_LATER = (
    "If the statement was meant for the rows of all shards, change these in the shards first, and"
    " execute it there again later. If the error is due to something else"
)


def ways(
    error: DdlRefusedError, target: TableName, statements: Sequence[str], then: str
) -> tuple[str, ...]:
    """Return the remedies for a refused statement, or for the refused rest of one.

    Args:
        statements: the statements that the target has not executed.
        then: what the task does after `replicator resume`, as text.
    """
    first = f"{_mended(error, target, statements)}, then `replicator resume`: {then}"
    if error.code in _ABOUT_ROWS or error.code in MISSING_PRIVILEGE:
        return (first,)
    return (
        first,
        "if the target's server does not have what the statement uses (a type, a collation, a kind"
        " of index, a form of the statement): `replicator binlog replace` with statements that it"
        " executes and that leave its columns able to store all values of the shards; or, if"
        " nothing is left of the statement, `replicator binlog skip`. Then `replicator resume`."
        f" {_older_rows(target)}",
    )


def _older_rows(target: TableName) -> str:
    return (
        "When no schema change of the target is open any more, `replicator compare TASK.yaml"
        f" --tables {quoted(str(target))} --repair-now` gives the values that the statement has"
        " changed in the shards to the older rows"
    )


def _mended(error: DdlRefusedError, target: TableName, statements: Iterable[str]) -> str:
    """Return what the operator has to do before the task continues, as the beginning of a sentence.

    Args:
        statements: the statements that the target has not executed.
    """
    if error.code in MISSING_PRIVILEGE:
        return (
            "grant the task's account what the error names (`replicator check` shows all that it"
            " needs)"
        )
    if error.code == ER.WRONG_VALUE_FOR_VAR:
        return "if the error says what to do on the target, do it"
    if error.code == ER.DUP_FIELDNAME:
        return "give the column that the error names another name on the target, if no shard has it"
    if error.code not in _ABOUT_ROWS:
        return (
            "change what the error names on the target (a table, key, constraint, trigger or view"
            " that is in the way), but no rows"
        )
    begin = (
        "the rows on the target, of all shards together, do not allow this statement, while the"
        " shard's did. Do not delete or change rows on the target."
    )
    if all(map(only_adds_keys, statements)):
        return (
            f"{begin} `replicator binlog skip` leaves the statement out, and the target keeps the"
            f" wider structure that it has. {_LATER}"
        )
    return (
        f"{begin} `replicator binlog replace` gives the target the same statement without the part"
        " that its rows do not allow (a key, NOT NULL, a narrower type), or with a type that holds"
        " these rows and the new values of the shards; if nothing is left of it, `replicator binlog"
        " skip`. A skip leaves out all other parts, too."
        f" {_older_rows(target)}. {_LATER}"
    )


def only_adds_keys(sql: str) -> bool:
    """Whether a statement only adds indexes, keys and constraints.

    A table without them has the same rows.
    """
    parsed = classify(sql, default_schema="")
    if parsed.kind is StatementKind.CREATE_INDEX:
        return True
    actions = typed_actions(parsed)
    return bool(actions) and all(isinstance(a, AddKey | AddConstraint) for a in actions)
