"""Writes rows by multi-row statements in strict mode: slower than a load, and exact or an error.

A shard can have rows that its own rules refuse: rows older than a CHECK or written without checks,
or a generated column truncated to its type outside strict mode. `advice_on` explains why a target
refuses such a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pymysql.constants import ER
from pymysql.err import MySQLError

from replicator.downstream.rows.key_lookup import locked_fields
from replicator.downstream.rows.literals import (
    NULL_FIELD,
    field_value,
    identifier,
    key_equal,
    key_literal,
    row_predicate,
    row_values,
    starts_equal,
)
from replicator.downstream.rows.load_data import HARMLESS_WARNINGS, InexactLoadError
from replicator.downstream.rows.target_columns import HeldKey, TargetColumn, TargetTable
from replicator.downstream.rows.write_session import LENIENT_MODE, STRICT_MODE, Session
from replicator.mysql.column_types import Literal
from replicator.mysql.errors import (
    DUPLICATE_KEY,
    ErrorCode,
    error_code,
    error_text,
    is_contention,
    is_unavailable,
)
from replicator.mysql.names import Member, folded
from replicator.mysql.row_values import without_values
from replicator.mysql.size_limits import is_too_large
from replicator.rows.decoder.lines import Lines, block_of, lines_of
from replicator.schema.structure.structure import write_rules_of

_VALUE_REFUSED = frozenset(
    {
        ER.BAD_NULL_ERROR,
        ER.WARN_DATA_OUT_OF_RANGE,
        ErrorCode.WARN_DATA_TRUNCATED,
        ER.TRUNCATED_WRONG_VALUE,
        ER.DIVISION_BY_ZERO,
        ER.TRUNCATED_WRONG_VALUE_FOR_FIELD,
        ER.DATA_TOO_LONG,
        ErrorCode.ER_DATA_OUT_OF_RANGE,
    }
)
_INTEGERS = re.compile(rb"[-0-9\n]+")
"""The lines of keys that are integers."""

_COLUMN = re.compile(r"[Cc]olumn (?:[`'][^`']*[`']\.)*[`']([^`']+)[`']")


def advice_on(code: int, text: str, columns: Sequence[TargetColumn]) -> str:
    """Return advice about a difference to the shard's server, to be added to the server's message.

    The result is empty if there is none. ``columns``: the written columns.
    """
    if code == ErrorCode.ER_CHECK_CONSTRAINT_VIOLATED:
        # MySQL manual, "CHECK Constraints": unlike MariaDB's, no session can disable them.
        return (
            ": the shard holds a row that this CHECK refuses, and the target's server can't"
            " be told to take it. ALTER TABLE … ALTER CHECK … NOT ENFORCED at the target, or fix"
            " the row in the shard"
        )
    found = _COLUMN.search(text)
    if code in _VALUE_REFUSED and found:
        name = folded(found[1])
        if all(folded(column.name) != name for column in columns):
            return (
                f": the target fills {found[1]} in itself, in strict mode, and the shard did"
                " so under another sql_mode. Fix the row in the shard, or make the column an"
                " ordinary one of the target, which takes the shard's value"
            )
    return ""


ROWS_PER_STATEMENT = 1000
KEYS_PER_DELETE = 500


class RowRefusedError(Exception):
    """The target refuses a row.

    Attributes:
        line: the row line, or with `keyed` the key line of a row to delete.
        index: number of the line.
        member: the row's shard, if known.
        advice: further explanation, or empty.
    """

    member: Member | None = None

    def __init__(
        self,
        code: int,
        text: str,
        line: bytes,
        index: int,
        *,
        keyed: bool = False,
        advice: str = "",
    ) -> None:
        super().__init__(f"{text}{advice} ({code})")
        self.code = code
        self.text = text
        self.line = line
        self.index = index
        self.keyed = keyed
        self.advice = advice

    def shown(self, *, values: bool) -> str:
        """Return the message for the operator, with or without the values quoted by the server."""
        return (self.text if values else without_values(self.text, self.code)) + self.advice


class TargetChangedError(Exception):
    """A target's structure is not the planned one: roll back, and plan the rows again."""

    def __init__(self, target: TargetTable) -> None:
        super().__init__(
            f"columns or unique keys of the target {target} have changed while the task wrote to it"
        )


def is_as_planned(session: Session, target: TargetTable) -> bool:
    """Return whether the target still has the planned columns and unique keys.

    If the transaction has used the table, they have not changed since: nobody can change a table in
    use. Raises the driver's error.
    """
    ((_, text),) = session.rows(b"SHOW CREATE TABLE " + target.quoted.encode())
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    return write_rules_of(text) == target.write_rules


def confirm_plan(session: Session, target: TargetTable) -> None:
    """Raise TargetChangedError if the target may have stored the written rows differently.

    Also raises the driver's error.
    """
    if not is_as_planned(session, target):
        raise TargetChangedError(target)


def insert_rows(
    session: Session,
    target: TargetTable,
    columns: Sequence[TargetColumn],
    lines: Sequence[bytes],
    *,
    exact: bool,
    verb: bytes = b"INSERT",
    suffix: bytes = b"",
    stale: StaleRows | None = None,
) -> int:
    """Write row lines by INSERT or REPLACE statements; return the server's count of affected rows.

    ``exact`` costs further round trips to find a refused row. ``stale``: duplicates to remove.

    Raises:
        RowRefusedError: the server refuses a row, which it names, or would change a value.
        InexactLoadError: unless ``exact``, the server refuses one of several rows; roll back, and
            retry with ``exact``.
        MySQLError: the driver's error.
    """
    filled = [identifier(name) for name, _ in target.filled]
    constants = tuple(literal.encode() for _, literal in target.filled)
    names = b",".join([*(identifier(column.name) for column in columns), *filled])
    head = verb + b" INTO " + target.quoted.encode() + b" (" + names + b") VALUES "
    affected = 0
    for first, run in runs(lines, len(columns), session.max_packet // 2):
        found = None
        if len(run) > 1:
            sql = head + row_values(run, columns, constants) + suffix
            found = _run_together(session, sql, run[0], first, exact=exact)
        if found is not None:
            affected += found
            continue
        for index, line in enumerate(run, first):
            sql = head + row_values([line], columns, constants) + suffix
            if stale is not None:
                affected += _insert_over(session, sql, target, columns, line, index, stale)
            else:
                affected += _insert_one(session, sql, columns, line, index)
    return affected


@dataclass(frozen=True, slots=True)
class StaleRows:
    """Rows of a target that are outdated, because a new row of the same shard has their values.

    Attributes:
        key: columns of the row key.
        held: unique keys that the shard enforces.
        removed: called with the key lines of the rows before they are removed.
    """

    key: Sequence[TargetColumn]
    held: Sequence[HeldKey]
    removed: Callable[[Sequence[bytes]], None] | None = None

    @property
    def suffix(self) -> bytes:
        """A clause by which a stale row with the new row's values gets the new row's key."""
        condition = b" OR ".join(
            b"(%s)" % b" AND ".join(_same_part(identifier(name), length) for name, length in key)
            for key in self.held
        )
        names = (identifier(column.name) for column in self.key)
        changes = (b"%s=IF(%s,VALUES(%s),%s)" % (name, condition, name, name) for name in names)
        return b" ON DUPLICATE KEY UPDATE " + b",".join(changes)


def _same_part(name: bytes, length: int) -> bytes:
    if length:
        return b"LEFT(%s,%d)=LEFT(VALUES(%s),%d)" % (name, length, name, length)
    return b"%s=VALUES(%s)" % (name, name)


def _in_the_way(
    session: Session,
    target: TargetTable,
    columns: Sequence[TargetColumn],
    fields: Sequence[bytes],
    stale: StaleRows,
) -> list[bytes]:
    """Return the key lines of the rows with the new row's values of a unique key."""
    conditions = _held_values(stale.held, columns, fields)
    if not conditions:
        return []
    condition = b"(" + b") OR (".join(conditions) + b")"
    return [b"\t".join(key) for key in locked_fields(session, target.quoted, stale.key, condition)]


def _insert_over(
    session: Session,
    sql: bytes,
    target: TargetTable,
    columns: Sequence[TargetColumn],
    line: bytes,
    index: int,
    stale: StaleRows,
) -> int:
    """Write a row whose key is free, and remove stale rows that have its unique values.

    Raises the errors of `insert_rows`.
    """
    names = [column.name for column in columns]
    fields = line.split(b"\t")
    key = b"\t".join(fields[names.index(column.name)] for column in stale.key)
    for _ in stale.held:
        undoable = session.set_savepoint()
        try:
            return _insert_one(session, sql, columns, line, index)
        except RowRefusedError as error:
            if error.code not in DUPLICATE_KEY or not undoable:
                raise
            session.back_to_savepoint()
            if stale.removed is not None:
                stale.removed(_in_the_way(session, target, columns, fields, stale))
            # The violated key does not matter, only the row that has its values.
            if not _insert_one(session, sql + stale.suffix, columns, line, index):
                raise
        delete_keys(session, target, stale.key, [key], exact=True)
    return _insert_one(session, sql, columns, line, index)


def _run_together(
    session: Session, sql: bytes, line: bytes, index: int, *, exact: bool
) -> int | None:
    """Write several rows by one statement; return the affected rows, or None to write them singly.

    After None, the transaction is as it was before the statement. ``line`` and ``index`` belong to
    the first row. Raises the errors of `insert_rows`.
    """
    if exact and not session.set_savepoint():
        return None
    try:
        return _run_exactly(session, sql, line, index)
    except MySQLError as error:
        if is_unavailable(error) or is_contention(error):
            raise
        if not exact:
            raise InexactLoadError(error_text(error)) from error
        # If only the statement was undone, writing row by row finds the refused row.
        session.back_to_savepoint()
        return None


def update_row(
    session: Session,
    target: TargetTable,
    columns: Sequence[TargetColumn],
    line: bytes,
    key: tuple[Sequence[TargetColumn], bytes],
    more: Sequence[bytes],
) -> bool:
    """Turn the row with a key into a row line by an UPDATE, so that foreign keys act on the change.

    ``key``: columns and line of the former key; ``more``: further assignments. Returns False if
    there is no such row. Raises RowRefusedError, or the driver's error.
    """
    fields = line.split(b"\t")
    assignments = [
        identifier(column.name) + b"=" + row_values([field], [column])
        for column, field in zip(columns, fields, strict=True)
    ]
    where = b" WHERE " + b" AND ".join(map(key_equal, key[0], key[1].split(b"\t")))
    name = target.quoted.encode()
    sql = b"UPDATE " + name + b" SET " + b",".join([*assignments, *more]) + where
    if changed := _insert_one(session, sql, columns, line, 0):
        if changed > 1:
            raise TargetChangedError(target)
        return True
    # A row that already has the new values is not counted as affected.
    return bool(session.rows(b"SELECT 1 FROM " + name + where))


def runs(lines: Sequence[bytes], columns: int, size: int) -> Iterator[tuple[int, Sequence[bytes]]]:
    """Yield runs of lines for one statement each, with the number of their first line.

    A run has at most `ROWS_PER_STATEMENT` rows and ``size`` bytes as values, unless it is one row.
    """
    whole = lines if isinstance(lines, Lines) else lines_of(lines)
    # At most, each byte is escaped; a field gets quotes and a comma, a row its parentheses.
    most = np.cumsum(2 * np.diff(whole.starts) + 8 * columns + 4)
    first = 0
    while first < len(whole):
        before = int(most[first - 1]) if first else 0
        fits = int(np.searchsorted(most, before + size, side="right"))
        end = min(max(fits, first + 1), first + ROWS_PER_STATEMENT, len(whole))
        yield first, Lines(whole.text, whole.starts[first : end + 1])
        first = end


def delete_keys(
    session: Session,
    target: TargetTable,
    columns: Sequence[TargetColumn],
    keys: Sequence[bytes],
    *,
    exact: bool,
) -> int:
    """Delete the rows with these keys; return their number.

    Raises RowRefusedError naming the key if the server refuses one, InexactLoadError as
    `insert_rows`, TargetChangedError if several rows have one of the keys, or the driver's error.
    """
    head = b"DELETE FROM " + target.quoted.encode() + b" WHERE "
    deleted = 0
    if len(columns) == 1 and not columns[0].bytewise:
        column = columns[0]
        head += identifier(column.name) + b" IN ("
        # A line is the whole literal of an integer, so most keys need no work of their own.
        parts: Iterable[bytes] = (
            keys
            if column.literal is Literal.NUMBER and _INTEGERS.fullmatch(block_of(keys))
            else (key_literal(column, key) for key in keys)
        )
        joint, tail = b",", b")"
    else:
        parts = (
            b"(" + b" AND ".join(map(key_equal, columns, key.split(b"\t"))) + b")" for key in keys
        )
        joint, tail = b" OR ", b""
    first = 0
    for chunk in packed(parts, KEYS_PER_DELETE, session.max_packet // 2):
        found = None
        if len(chunk) > 1:
            sql = head + joint.join(chunk) + tail
            found = _run_together(session, sql, keys[first], first, exact=exact)
        if found is None:
            found = sum(
                _delete_one(session, head + part + tail, keys[index], index)
                for index, part in enumerate(chunk, first)
            )
        if found > len(chunk):
            raise TargetChangedError(target)
        deleted += found
        first += len(chunk)
    return deleted


def _delete_one(session: Session, sql: bytes, key: bytes, index: int) -> int:
    try:
        return session.run(sql).affected
    except MySQLError as error:
        if is_unavailable(error) or is_contention(error) or is_too_large(error):
            raise
        raise RowRefusedError(
            error_code(error), error_text(error), key, index, keyed=True
        ) from error


def delete_rows(
    session: Session,
    target: TargetTable,
    columns: Sequence[TargetColumn],
    counts: Mapping[bytes, int],
) -> int:
    """Delete as many rows as ``counts`` gives for each row line; return how many were deleted.

    If the target lacks such a row, for example because only the shard knows some values, a row with
    the same values of a unique key is deleted. Raises RowRefusedError naming the row if the server
    refuses it, or the driver's error.
    """
    head = b"DELETE FROM " + target.quoted.encode()
    deleted = 0
    for line, count in counts.items():
        # Without written columns, for example if all are computed, all rows are equal.
        fields = line.split(b"\t")
        whole = b" AND ".join(map(row_predicate, columns, fields))
        conditions = [whole] if whole else [b"TRUE"]
        conditions += _held_values(target.held, columns, fields)[:1]
        left = count
        try:
            for condition in conditions:
                if left:
                    sql = head + b" WHERE " + condition + b" LIMIT %d" % left
                    left -= session.run(sql).affected
        except MySQLError as error:
            if is_unavailable(error) or is_contention(error) or is_too_large(error):
                raise
            raise RowRefusedError(error_code(error), error_text(error), line, 0) from error
        deleted += count - left
    return deleted


def _held_values(
    held: Sequence[HeldKey], columns: Sequence[TargetColumn], fields: Sequence[bytes]
) -> list[bytes]:
    """Return a condition for each unique key whose values the row has: one row can meet it."""
    pairs = zip(columns, fields, strict=bool(columns))
    row = {folded(c.name): (c, field) for c, field in pairs if field != NULL_FIELD}
    return [
        b" AND ".join(starts_equal(*row[folded(name)], length) for name, length in key)
        for key in held
        if all(folded(name) in row for name, _ in key)
    ]


def packed(parts: Iterable[bytes], rows: int, size: int) -> Iterator[list[bytes]]:
    """Yield runs of at most ``rows`` parts and ``size`` bytes; a larger part is its own run."""
    run: list[bytes] = []
    used = 0
    for part in parts:
        if run and (len(run) >= rows or used + len(part) > size):
            yield run
            run, used = [], 0
        run.append(part)
        used += len(part) + 1
    if run:
        yield run


def _run_exactly(session: Session, sql: bytes, line: bytes, index: int) -> int:
    answer = session.run(sql)
    if answer.warnings:
        # Strict mode still rounds: a fraction of a second, the last digit of a DECIMAL.
        serious = [w for w in session.warnings() if w[0] not in HARMLESS_WARNINGS]
        if serious:
            raise RowRefusedError(*serious[0], line, index)
    return answer.affected


def _insert_one(
    session: Session, sql: bytes, columns: Sequence[TargetColumn], line: bytes, index: int
) -> int:
    """Write a row by a separate statement. No statement may follow an error."""
    try:
        if empty := _empty_enums(columns, line):
            return _insert_empty_enum(session, sql, empty, line, index)
        return _run_exactly(session, sql, line, index)
    except MySQLError as error:
        if is_unavailable(error) or is_contention(error) or is_too_large(error):
            raise
        code, text = error_code(error), error_text(error)
        advice = advice_on(code, text, columns)
        raise RowRefusedError(code, text, line, index, advice=advice) from error


def _insert_empty_enum(
    session: Session, sql: bytes, empty: Sequence[str], line: bytes, index: int
) -> int:
    """Write a row with the value that an ENUM has after an invalid assignment (index 0).

    Strict mode refuses it although the source has it. Outside strict mode, any warning about
    another column would mean a changed value.
    """
    session.set_mode(LENIENT_MODE)
    try:
        answer = session.run(sql)
        warnings = session.warnings() if answer.warnings else []
    finally:
        session.set_mode(STRICT_MODE)
    for code, text in warnings:
        if code in HARMLESS_WARNINGS:
            continue
        if code != ErrorCode.WARN_DATA_TRUNCATED or not any(f"'{name}'" in text for name in empty):
            raise RowRefusedError(code, text, line, index)
    return answer.affected


def _empty_enums(columns: Sequence[TargetColumn], line: bytes) -> list[str]:
    fields = line.split(b"\t")
    return [
        column.name
        for column, field in zip(columns, fields, strict=bool(columns))
        if column.literal is Literal.ENUM and field_value(field) == column.unlabelled
    ]
