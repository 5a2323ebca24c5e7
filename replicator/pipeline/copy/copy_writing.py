"""Writing the rows of a chunk into the target, in a transaction that the caller holds."""

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
"""Row lines, and how many."""


class OnDuplicate(StrEnum):
    """What becomes of a row whose key is on the target already."""

    REPLACE = "replace"
    ERROR = "error"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class Writing:
    """How rows are written: by a load, or by statements; what becomes of those whose key is there,
    and the quoted name of the table where such keys are noted (empty: nowhere)."""

    on_duplicate: OnDuplicate
    tracked_table: str
    load_data: bool


Tell = Callable[[int, int], None]
"""Is told how many rows and bytes of a chunk were sent, block after block."""


def tell_nobody(rows: int, size: int) -> None:
    """For a chunk whose progress nobody wants to know."""


class Counter:
    """Counts the rows and bytes that pass, and passes the sums on."""

    def __init__(self, tell: Tell = tell_nobody) -> None:
        self.rows = 0
        self.size = 0
        self._tell = tell
        tell(0, 0)

    def counted(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """The same blocks."""
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
    """Write the rows that ``counter`` counts; how many of them replaced others, or were ignored.

    Where rows with their keys were there, these may be another shard's: they are noted. Raises
    InexactLoadError (roll back, and try again without a load) where that, or a value, is open after
    a load, RowRefusedError, the driver's error, or what ``blocks`` raises.
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
    """As `write_blocks`, for rows that are no text; ``way`` is not to ignore any.

    ``types``: those of the values; ``blocks_of``: the rows, in blocks of so many bytes at most.
    Raises InexactLoadError, NotTypedError where the servers, or a row, are not fit for it, the
    driver's error, or what reading the rows raises.
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
    """The blocks; of each the keys that the target has are noted before it is written."""
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
        # Not INSERT IGNORE, which also takes values that do not fit, changed.
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
