"""Writes the net changes of one bucket inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from replicator.downstream.rows.bulk_statements import NotTypedError, store_rows
from replicator.downstream.rows.key_lookup import count_keys, keys_there
from replicator.downstream.rows.literals import identifier
from replicator.downstream.rows.load_data import InexactLoadError, load_rows
from replicator.downstream.rows.statements import (
    RowRefusedError,
    StaleRows,
    delete_keys,
    delete_rows,
    insert_rows,
)
from replicator.downstream.rows.target_columns import (
    HeldKey,
    Restated,
    TargetColumn,
    TargetTable,
)
from replicator.downstream.rows.write_session import Session
from replicator.mysql.connection.prepared_statements import WireType
from replicator.mysql.errors import DUPLICATE_KEY
from replicator.mysql.names import Member
from replicator.rows.decoder.lines import bytes_of

FEW_ROWS = 50
FEW_BYTES = 256 * 1024
"""Maximum bytes for which a statement is at least as fast as a load, and exact at once.

A load has no limit on the size of a row.
"""


@dataclass(frozen=True, slots=True)
class NetChanges:
    """The net changes of rows that have the same columns.

    Attributes:
        restated: as in `replicator.pipeline.plans.plan.TablePlan`.
        filled: as in `TargetTable`.
        held: as in `TargetTable`.
        removed: as in `StaleRows`.
        deletes: key lines (the fields of ``key_columns``).
        removals: whole row lines, with the number of copies to delete.
        overwrites: row lines that replace existing rows.
        upserts: row lines of rows that may exist, with these or other values.
        arrivals: key lines of rows that are new in a shard; an existing row may be another shard's.
        shared: key lines of rows that are new in several shards within the batch.
        inserts: row lines that must not exist.
        members: the shard of each line of ``inserts``.
        renewed: number of changed rows that are both in ``deletes`` and in ``inserts``.
        types: if the rows are rows of parameters instead of lines
            (`replicator.rows.decoder.parameter_rows`), the types of these. Keys are always lines.
    """

    columns: tuple[TargetColumn, ...]
    key_columns: tuple[TargetColumn, ...]
    covers: bool
    restated: tuple[tuple[str, Restated], ...] = ()
    filled: tuple[tuple[str, str], ...] = ()
    held: tuple[HeldKey, ...] = ()
    removed: Callable[[Sequence[bytes]], None] | None = None
    deletes: Sequence[bytes] = field(default_factory=list)
    removals: dict[bytes, int] = field(default_factory=dict)
    overwrites: Sequence[bytes] = field(default_factory=list)
    upserts: Sequence[bytes] = field(default_factory=list)
    arrivals: Sequence[bytes] = field(default_factory=list)
    shared: Sequence[bytes] = field(default_factory=list)
    inserts: Sequence[bytes] = field(default_factory=list)
    members: Sequence[Member] = field(default_factory=list)
    renewed: int = 0
    types: tuple[WireType, ...] = ()


@dataclass(slots=True)
class WriteCounts:
    """The numbers of written rows; ``missing`` counts absent rows to change or delete."""

    inserted: int = 0
    overwritten: int = 0
    deleted: int = 0
    missing: int = 0


class DuplicateRowError(Exception):
    """A row of a shard has a key that the target already has from elsewhere.

    Attributes:
        text: the server's message (entry and constraint).
        member: the new row's shard; None if it must be searched for.
        columns: the columns of ``line``.
    """

    def __init__(
        self, text: str, member: Member | None, line: bytes, columns: Sequence[TargetColumn]
    ) -> None:
        super().__init__(text)
        self.text = text
        self.member = member
        self.line = line
        self.columns = columns


def write_changes(
    session: Session,
    target: TargetTable,
    changes: Sequence[NetChanges],
    *,
    load_data: bool,
    exact: bool,
) -> WriteCounts:
    """Delete first, then overwrite, then insert, so that unique values may move between rows.

    With ``load_data`` many rows are loaded, or written as parameters, otherwise by statements.
    After each of these errors, the transaction must be rolled back. Before a commit,
    `confirm_plan` shows whether the target stores the rows as planned.

    Raises:
        InexactLoadError: unless ``exact``, if the server's answer does not prove that all rows are
            right; retry with ``exact`` and without ``load_data``.
        NotTypedError: rows of parameters can't be written; retry with lines.
        DuplicateRowError: the target already holds a row's key.
        RowRefusedError: the target refuses a row.
        TargetChangedError: the target has changed.
        MySQLError: the driver's error.
    """
    counts = WriteCounts()
    if any(group.types and (group.upserts or group.removals) for group in changes):
        raise NotTypedError("the target may have some of the rows already")
    for group in changes:
        _delete(session, target, group, counts, exact)
    filled = [(group, replace(target, filled=group.filled)) for group in changes]
    for group, its in filled:
        if group.overwrites:
            _overwrite(session, its, group, counts, load_data, exact)
    for group, its in filled:
        if group.upserts:
            _upsert(session, its, group, load_data, exact)
            counts.overwritten += len(group.upserts)
    for group, its in filled:
        if group.inserts:
            _insert(session, its, group, load_data, exact)
            counts.inserted += len(group.inserts)
    renewed = sum(group.renewed for group in changes)
    counts.overwritten += renewed
    counts.inserted -= renewed
    # A missing row was not deleted.
    counts.deleted = max(0, counts.deleted - renewed)
    return counts


def _delete(
    session: Session, target: TargetTable, group: NetChanges, counts: WriteCounts, exact: bool
) -> None:
    found = 0
    if group.deletes:
        found += delete_keys(session, target, group.key_columns, group.deletes, exact=exact)
    if group.removals:
        its = replace(target, held=group.held)
        found += delete_rows(session, its, group.columns, group.removals)
    counts.deleted += found
    counts.missing += len(group.deletes) + sum(group.removals.values()) - found


def _overwrite(
    session: Session,
    target: TargetTable,
    group: NetChanges,
    counts: WriteCounts,
    load_data: bool,
    exact: bool,
) -> None:
    lines = group.overwrites
    counts.overwritten += len(lines)
    if not group.covers:
        counts.missing += _update_written(session, target, group, lines, exact)
    elif load_data and (group.types or _many(lines)):
        replaced = _load(session, target, group, lines, replace=True)
        if replaced < len(lines):
            raise InexactLoadError(f"{len(lines)} rows to change, {replaced} replaced")
    else:
        found = delete_keys(session, target, group.key_columns, _keys_of(group, lines), exact=exact)
        _put(session, target, group, lines, load_data, exact)
        counts.missing += len(lines) - found


def _upsert(
    session: Session, target: TargetTable, group: NetChanges, load_data: bool, exact: bool
) -> None:
    """Write rows that may exist.

    Rows with the same values of other unique keys are removed, since the binlog writes them again
    later.
    """
    if not group.covers and target.replace:
        _update_written(session, target, group, group.upserts, exact)
        return
    keys = _keys_of(group, group.upserts)
    delete_keys(session, target, group.key_columns, keys, exact=exact)
    _put(session, target, group, group.upserts, load_data, exact)


def _put(
    session: Session,
    target: TargetTable,
    group: NetChanges,
    lines: Sequence[bytes],
    load_data: bool,
    exact: bool,
) -> None:
    """Insert rows with free keys; REPLACE would delete every row with one of their values."""
    if load_data and _many(lines):
        load_rows(session, target, group.columns, lines, replace=False)
        return
    stale = StaleRows(group.key_columns, group.held, group.removed) if group.held else None
    with _duplicates(group):
        insert_rows(session, target, group.columns, lines, exact=exact, stale=stale)


def _update_written(
    session: Session, target: TargetTable, group: NetChanges, lines: Sequence[bytes], exact: bool
) -> int:
    """Update the existing rows, insert the others, and return how many were inserted.

    Only the columns of the shard are changed. Only existing rows are updated: for a missing row,
    the server would change another row with one of its unique values.
    """
    columns, keys = group.key_columns, _keys_of(group, lines)
    new: list[bytes] = []
    if count_keys(session, target, columns, keys) < len(keys):
        there = keys_there(session, target, columns, keys)
        new = [line for number, line in enumerate(lines) if number not in there]
        lines = [line for number, line in enumerate(lines) if number in there]
    names = [identifier(column.name) for column in group.columns]
    assignments = [name + b"=VALUES(" + name + b")" for name in names]
    for column, how in group.restated:
        name = identifier(column)
        value = name if how is Restated.KEPT else b"VALUES(" + name + b")"
        assignments.append(name + b"=" + value)
    suffix = b" ON DUPLICATE KEY UPDATE " + b",".join(assignments)
    with _duplicates(group):
        insert_rows(session, target, group.columns, lines, suffix=suffix, exact=exact)
        insert_rows(session, target, group.columns, new, exact=exact)
    return len(new)


@contextmanager
def _duplicates(group: NetChanges) -> Iterator[None]:
    try:
        yield
    except RowRefusedError as error:
        if error.code in DUPLICATE_KEY:
            raise DuplicateRowError(error.text, error.member, error.line, group.columns) from error
        raise


def _keys_of(group: NetChanges, lines: Sequence[bytes]) -> list[bytes]:
    names = [column.name for column in group.columns]
    places = [names.index(column.name) for column in group.key_columns]
    fields = (line.split(b"\t") for line in lines)
    return [b"\t".join([row[place] for place in places]) for row in fields]


def _insert(
    session: Session, target: TargetTable, group: NetChanges, load_data: bool, exact: bool
) -> None:
    lines = group.inserts
    if load_data and group.columns and (group.types or _many(lines)):
        _load(session, target, group, lines, replace=False)
        return
    with _duplicates(group):
        try:
            insert_rows(session, target, group.columns, lines, exact=exact)
        except RowRefusedError as error:
            error.member = group.members[error.index]
            raise


def _load(
    session: Session,
    target: TargetTable,
    group: NetChanges,
    lines: Sequence[bytes],
    *,
    replace: bool,
) -> int:
    """Write many rows at once; return the number of existing rows that they replaced."""
    if group.types:
        return store_rows(session, target, group.columns, group.types, lines, replace=replace)
    return load_rows(session, target, group.columns, lines, replace=replace)


def _many(lines: Sequence[bytes]) -> bool:
    return len(lines) > FEW_ROWS or bytes_of(lines) > FEW_BYTES
