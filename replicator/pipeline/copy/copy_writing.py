"""Writes the rows of a chunk into the target, in a transaction of the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from replicator.downstream.meta.tracked_keys import track_keys
from replicator.downstream.rows.bulk_statements import NotTypedError, TypedStatement
from replicator.downstream.rows.key_lookup import keys_there
from replicator.downstream.rows.literals import identifier
from replicator.downstream.rows.load_data import InexactLoadError, load_blocks
from replicator.downstream.rows.statements import insert_rows
from replicator.downstream.rows.write_session import Session
from replicator.mysql.connection.prepared_statements import WireType
from replicator.pipeline.copy.copy_plan import TableCopy
from replicator.pipeline.copy.typed_rows import LargeRowError

Block = tuple[memoryview, int]
"""Row lines, and their number."""


class OnDuplicate(StrEnum):
    """The treatment of a row whose key is on the target already."""

    REPLACE = "replace"
    ERROR = "error"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class Writing:
    """How rows are written.

    Attributes:
        on_duplicate: the treatment of rows whose key exists.
        tracked_table: quoted name of the table in which such keys are recorded; empty for none.
        load_data: whether to write with LOAD DATA instead of statements.
    """

    on_duplicate: OnDuplicate
    tracked_table: str
    load_data: bool


Tell = Callable[[int, int], None]
"""Called after each block with the rows and bytes of the chunk sent so far."""


def tell_nobody(rows: int, size: int) -> None:
    """Ignore the progress of a chunk."""


class Counter:
    """Counts the rows and bytes that pass, and reports the sums."""

    def __init__(self, tell: Tell = tell_nobody) -> None:
        self.rows = 0
        self.size = 0
        self._tell = tell
        tell(0, 0)

    def counted(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yield the same blocks, counting them."""
        for block, rows in blocks:
            self.rows += rows
            self.size += len(block)
            yield block, rows
            self._tell(self.rows, self.size)


def write_blocks(
    session: Session,
    copy: TableCopy,
    blocks: Iterator[Block],
    counter: Counter,
    way: Writing,
) -> tuple[int, int]:
    """Write the rows that ``counter`` counts; return how many replaced others or were ignored.

    If the target already had rows with the same keys, these rows may be another shard's. So their
    keys are recorded.

    Raises:
        InexactLoadError: after a load, it is uncertain whether keys existed, or which values were
            stored; roll back, and retry without a load.
        RowRefusedError: the target refuses a row.

    Also raises the driver's error, and the errors of ``blocks``.
    """
    mode = way.on_duplicate
    notes = way.tracked_table if copy.target_key and mode is not OnDuplicate.ERROR else ""
    if not way.load_data or not copy.columns:
        return _insert(session, copy, _noted(session, copy, blocks, notes), mode, counter)
    met = _load(session, copy, blocks, mode, counter)
    return _none_to_note(met, notes)


def write_typed(
    session: Session,
    copy: TableCopy,
    types: Sequence[WireType],
    blocks_of: Callable[[int], Iterator[Block]],
    counter: Counter,
    way: Writing,
) -> tuple[int, int]:
    """Write typed rows, otherwise like `write_blocks`; ``way.on_duplicate`` must not be IGNORE.

    Args:
        types: the types of the values.
        blocks_of: called with the maximum number of bytes of a block; yields the rows.

    Raises:
        InexactLoadError: see `write_blocks`.
        NotTypedError: a server or a row does not support this way of writing.

    Also raises the driver's error, and the errors of reading the rows.
    """
    mode = way.on_duplicate
    assert mode is not OnDuplicate.IGNORE, "INSERT IGNORE also takes values that do not fit"
    verb = b"REPLACE" if mode is OnDuplicate.REPLACE else b"INSERT"
    statement = TypedStatement(session, copy.target, copy.columns, types, verb)
    blocks = counter.counted(blocks_of(statement.room))
    try:
        affected = statement.write(block for block, _ in blocks)
    except LargeRowError as error:
        raise NotTypedError(str(error)) from error
    replaced = affected - counter.rows
    if replaced < 0 or (replaced and mode is OnDuplicate.ERROR):
        raise InexactLoadError(f"{counter.rows} rows sent, {affected} affected")
    return _none_to_note((replaced, 0), way.tracked_table if copy.target_key else "")


def _none_to_note(met: tuple[int, int], notes: str) -> tuple[int, int]:
    if notes and any(met):
        raise InexactLoadError("rows were there already, and their keys are to be noted")
    return met


def _noted(
    session: Session, copy: TableCopy, blocks: Iterator[Block], table: str
) -> Iterator[Block]:
    """Yield each block after recording those of its keys that the target already has."""
    for block, rows in blocks:
        if table:
            keys = [copy.key_of(line) for line in bytes(block).split(b"\n")[:-1]]
            there = keys_there(session, copy.target, copy.target_key, keys)
            track_keys(session, table, copy.target.name, copy.target_key, (keys[n] for n in there))
        yield block, rows


def _load(
    session: Session,
    copy: TableCopy,
    blocks: Iterator[Block],
    mode: OnDuplicate,
    counter: Counter,
) -> tuple[int, int]:
    words = {OnDuplicate.REPLACE: b"REPLACE", OnDuplicate.IGNORE: b"IGNORE", OnDuplicate.ERROR: b""}
    loaded = load_blocks(
        session, copy.target, copy.columns, (block for block, _ in blocks), words[mode]
    )
    if loaded.records != counter.rows and loaded.records != counter.rows + loaded.deleted:
        raise InexactLoadError(f"{counter.rows} rows sent, {loaded.records} taken")
    if loaded.skipped and mode is not OnDuplicate.IGNORE:
        raise InexactLoadError(f"{loaded.skipped} rows skipped")
    return loaded.deleted, loaded.skipped


def _insert(
    session: Session,
    copy: TableCopy,
    blocks: Iterator[Block],
    mode: OnDuplicate,
    counter: Counter,
) -> tuple[int, int]:
    verb, suffix = b"INSERT", b""
    if mode is OnDuplicate.REPLACE:
        verb = b"REPLACE"
    elif mode is OnDuplicate.IGNORE and copy.columns:
        # Do not use INSERT IGNORE: it would also accept values that do not fit, and change them.
        name = identifier(copy.columns[0].name)
        suffix = b" ON DUPLICATE KEY UPDATE " + name + b"=" + name
    affected = 0
    for block, _ in blocks:
        lines = bytes(block).split(b"\n")[:-1]
        affected += insert_rows(
            session, copy.target, copy.columns, lines, verb=verb, suffix=suffix, exact=True
        )
    if suffix:
        return 0, counter.rows - affected
    return affected - counter.rows, 0
