"""Converts row events to LOAD DATA lines, value by value.

Source of the format: MySQL internals manual, "ROWS_EVENT"; MariaDB KB, "Rows Event V1". A line has
the fields of a row for ``LOAD DATA … CHARACTER SET binary FIELDS TERMINATED BY '\\t' ESCAPED BY
'\\\\' LINES TERMINATED BY '\\n'``, loaded with ``sql_mode=''`` and ``time_zone='+00:00'``; NULL is
``\\N``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from zlib import crc32

import numpy as np

from replicator.binlog.errors import BinlogError, UnsupportedEventError
from replicator.binlog.events.compression import expand_rows
from replicator.binlog.events.event_header import HEADER_SIZE, EventType
from replicator.binlog.events.table_map import packed_integer
from replicator.rows.decoder.lines import Lines, lines_of
from replicator.rows.decoder.row_block import (
    UNKNOWN_LINE,
    RawColumn,
    RowBlock,
    RowChange,
    raw_column,
)
from replicator.rows.values.column_format import RowFormat
from replicator.rows.values.fields import Read
from replicator.rows.values.value_readers import column_reader


@dataclass(frozen=True, slots=True)
class RowsKind:
    """A row event type.

    Its change, whether extra data follows the flags, and whether it is compressed.
    """

    change: RowChange
    extra: bool = False
    compressed: bool = False


ROWS_KINDS: dict[int, RowsKind] = {
    EventType.WRITE_ROWS_V1: RowsKind(RowChange.INSERT),
    EventType.UPDATE_ROWS_V1: RowsKind(RowChange.UPDATE),
    EventType.DELETE_ROWS_V1: RowsKind(RowChange.DELETE),
    EventType.WRITE_ROWS_V2: RowsKind(RowChange.INSERT, extra=True),
    EventType.UPDATE_ROWS_V2: RowsKind(RowChange.UPDATE, extra=True),
    EventType.DELETE_ROWS_V2: RowsKind(RowChange.DELETE, extra=True),
    EventType.MARIADB_WRITE_ROWS_COMPRESSED: RowsKind(RowChange.INSERT, compressed=True),
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED: RowsKind(RowChange.UPDATE, compressed=True),
    EventType.MARIADB_DELETE_ROWS_COMPRESSED: RowsKind(RowChange.DELETE, compressed=True),
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_V2: RowsKind(
        RowChange.INSERT, extra=True, compressed=True
    ),
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V2: RowsKind(
        RowChange.UPDATE, extra=True, compressed=True
    ),
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_V2: RowsKind(
        RowChange.DELETE, extra=True, compressed=True
    ),
}

_Row = tuple[bytes | None, bytes | None, int, int]
"""Line, key line, hash, and the offset after the row.

The lines are None for a historical row of a table with system versioning.
"""
_ReadRow = Callable[[bytes, int], _Row]
_Pick = Callable[[list[bytes]], bytes]
FOREVER = (b"2038-01-19 03:14:07.999999", b"2106-02-07 06:28:15.999999")
"""The values that mark the end of a current row's period: the largest TIMESTAMP before MariaDB 11.5
and since then (MariaDB's page "TIMESTAMP")."""

_DAMAGE = (BinlogError, ValueError, IndexError, struct.error)
_HINT = (
    "the table structure that the task knows is not the one the event was written with, "
    "or the event is damaged"
)


@dataclass(slots=True)
class _Images:
    """The rows while they are read: lists with one entry for each, in binlog order.

    Attributes:
        event: the index of the event among the given ones.
        change: a value of `RowChange`.
        before, after: the row as a line without its newline; None if there was or is no row.
        before_key, after_key: the key columns as such a line, or the whole line if there is no key.
        before_hash, after_hash: the CRC32 of the hashed columns' fields joined by tabs, without the
            last ``hash_cut`` bytes (`RowFormat`); 0 without a row or hashed columns.
    """

    event: list[int] = field(default_factory=list)
    change: list[int] = field(default_factory=list)
    before: list[bytes | None] = field(default_factory=list)
    after: list[bytes | None] = field(default_factory=list)
    before_key: list[bytes | None] = field(default_factory=list)
    after_key: list[bytes | None] = field(default_factory=list)
    before_hash: list[int] = field(default_factory=list)
    after_hash: list[int] = field(default_factory=list)


class ReferenceDecoder:
    """Decodes the row events of one table structure, value by value."""

    def __init__(self, rows: RowFormat, raw_columns: tuple[int, ...] = ()) -> None:
        """Compile the format.

        ``raw_columns``: indexes of columns whose bytes are also returned. Raises BinlogError for a
        column that cannot be read.
        """
        self._rows = rows
        self._counting = slice(-rows.hash_cut if rows.hash_cut else None)
        used = {*rows.written, *rows.key, *rows.hashed, *raw_columns, rows.until}
        self._needed = {*range(len(rows.columns))} - (rows.generated - used)
        self._readers: list[Read] = [column_reader(column) for column in rows.columns]
        self._raw_columns: dict[int, list[bytes | None]] = {index: [] for index in raw_columns}
        for index, values in self._raw_columns.items():
            self._readers[index] = _keeping_raw(self._readers[index], values)
        self._images: dict[bytes, _ReadRow] = {}

    def decode(self, events: Sequence[bytes]) -> RowBlock:
        """Return the changes in ``events``, each from its 19-byte header on, without checksum.

        Raises UnsupportedEventError for an event other than an insert, update or delete of rows,
        BinlogError for an event that does not fit the columns or lacks some of them,
        MappedValueError for a value that can't be mapped.
        """
        images = _Images()
        for values in self._raw_columns.values():
            values.clear()
        for index, event in enumerate(events):
            kind = _kind(event)
            try:
                self._decode_event(index, event, kind, images)
            except _DAMAGE as error:
                raise BinlogError(
                    f"row event {index} (type {event[4]}, {len(event)} bytes, ends at position "
                    f"{int.from_bytes(event[13:17], 'little')} of its binlog) cannot be read: "
                    f"{error}"
                ) from error
        if self._rows.until is not None:
            images = _present_rows(images)
        return _block(images, tuple(map(raw_column, self._raw_columns.values())))

    def _decode_event(self, index: int, event: bytes, kind: RowsKind, images: _Images) -> None:
        at = HEADER_SIZE + 8
        if kind.extra:
            at += int.from_bytes(event[at : at + 2], "little")
        count, at = packed_integer(event, at)
        if count != len(self._rows.columns):
            raise BinlogError(
                f"it has {count} columns, the table structure {len(self._rows.columns)}; {_HINT}"
            )
        width = (count + 7) // 8
        bitmap = event[at : at + width]
        read = self._image(bitmap)
        at += width
        read_after = read
        if kind.change is RowChange.UPDATE:
            after_bitmap = event[at : at + width]
            at += width
            if after_bitmap != bitmap:
                read_after = self._image(after_bitmap)
        data = event
        if kind.compressed:
            data = expand_rows(event[at:])
            at = 0
        change, end = kind.change, len(data)
        while at < end:
            line = key = after = after_key = None
            hashed = after_hash = 0
            if change is not RowChange.INSERT:
                line, key, hashed, at = read(data, at)
            if change is not RowChange.DELETE:
                after, after_key, after_hash, at = read_after(data, at)
            images.event.append(index)
            images.change.append(int(change))
            images.before.append(line)
            images.before_key.append(key)
            images.before_hash.append(hashed)
            images.after.append(after)
            images.after_key.append(after_key)
            images.after_hash.append(after_hash)

    def _image(self, bitmap: bytes) -> _ReadRow:
        """Return the reader of rows with the columns in ``bitmap``."""
        read = self._images.get(bitmap)
        if read is None:
            bits = int.from_bytes(bitmap, "little")
            present = tuple(i for i in range(len(self._rows.columns)) if bits >> i & 1)
            missing = sorted(self._needed - {*present})
            if missing:
                names = ", ".join(self._rows.columns[i].name for i in missing)
                raise BinlogError(
                    f"binlog_row_image is not FULL: the event lacks {names}. Set "
                    "binlog_row_image=FULL on the source, in all sessions"
                )
            read = self._images[bitmap] = self._compile(present)
        return read

    def _compile(self, present: tuple[int, ...]) -> _ReadRow:
        readers = [self._readers[i] for i in present]
        steps = [(reader, 1 << n) for n, reader in enumerate(readers)]
        null_bytes = (len(present) + 7) // 8
        null_mask = (1 << len(present)) - 1
        constants = self._rows.constants
        made = range(len(self._rows.columns), len(self._rows.columns) + len(constants))
        rank = {column: n for n, column in enumerate((*present, *made))}
        line_of = _picker(tuple(rank[i] for i in self._rows.written), len(rank))
        key_of = _picker(tuple(rank[i] for i in self._rows.key), len(rank))
        hash_of = _picker(tuple(rank[i] for i in self._rows.hashed), len(rank))
        has_key = bool(self._rows.key)
        has_hash = bool(self._rows.hashed)
        key_is_hashed = self._rows.key == self._rows.hashed
        counting = self._counting
        names = tuple(self._rows.columns[i].name for i in present)
        until = None if self._rows.until is None else rank[self._rows.until]
        raw_columns = [(1 << rank[i], values) for i, values in self._raw_columns.items()]
        raw_mask = sum(bit for bit, _ in raw_columns)

        def read_row(data: bytes, start: int) -> _Row:
            at = start + null_bytes
            nulls = int.from_bytes(data[start:at], "little") & null_mask
            fields: list[bytes] = []
            add = fields.append
            try:
                if nulls:
                    if nulls & raw_mask:
                        for bit, values in raw_columns:
                            if nulls & bit:
                                values.append(None)
                    for read, bit in steps:
                        if nulls & bit:
                            add(b"\\N")
                        else:
                            value, at = read(data, at)
                            add(value)
                else:
                    for read in readers:
                        value, at = read(data, at)
                        add(value)
            except BinlogError as error:
                raise BinlogError(
                    f"column {names[len(fields)]} of the row at byte {start}: {error}"
                ) from error
            except _DAMAGE as error:
                raise BinlogError(
                    f"column {names[len(fields)]} of the row at byte {start}: {error}; {_HINT}"
                ) from error
            if at > len(data):
                raise BinlogError(
                    f"the row at byte {start} ends {at - len(data)} bytes behind it; {_HINT}"
                )
            if until is not None and fields[until] not in FOREVER:
                for _, values in raw_columns:
                    values.pop()
                return None, None, 0, at
            if constants:
                fields += constants
            line = line_of(fields)
            key = key_of(fields) if has_key else line
            if not has_hash:
                return line, key, 0, at
            hashed = key if key_is_hashed else hash_of(fields)
            return line, key, crc32(hashed[counting]), at

        return read_row


def _keeping_raw(read: Read, values: list[bytes | None]) -> Read:
    """Return a reader that also stores the bytes that it has read."""
    note = values.append

    def read_and_note(data: bytes, at: int) -> tuple[bytes, int]:
        field, end = read(data, at)
        note(data[at:end])
        return field, end

    return read_and_note


def _kind(event: bytes) -> RowsKind:
    code = event[4] if len(event) > HEADER_SIZE else 0
    kind = ROWS_KINDS.get(code)
    if kind is None:
        hint = (
            "set binlog_row_value_options='' on the source"
            if code == EventType.PARTIAL_UPDATE_ROWS
            else "its rows would be lost"
        )
        raise UnsupportedEventError(f"event type {code} is no row event that can be read: {hint}")
    return kind


def _picker(indexes: tuple[int, ...], count: int) -> _Pick:
    """Return a function that joins the fields at ``indexes`` by tabs."""
    join = b"\t".join
    if indexes == tuple(range(count)):
        return join
    if len(indexes) == 1:
        return itemgetter(indexes[0])
    if not indexes:
        return lambda fields: b""
    pick = itemgetter(*indexes)
    return lambda fields: join(pick(fields))


def _present_rows(images: _Images) -> _Images:
    """Return the effects of the changes on the present rows.

    A server with system versioning deletes a row by setting the end of its period. It logs an
    update as the new row in place of the old one, and an insert of the old row with its end
    (MariaDB's page "System-Versioned Tables").
    """
    found = _Images()
    for index, (before, after) in enumerate(zip(images.before, images.after, strict=True)):
        if before is None and after is None:
            continue
        if before is None or after is None:
            change = RowChange.DELETE if after is None else RowChange.INSERT
        else:
            change = RowChange.UPDATE
        found.event.append(images.event[index])
        found.change.append(int(change))
        found.before.append(before)
        found.after.append(after)
        found.before_key.append(images.before_key[index])
        found.after_key.append(images.after_key[index])
        found.before_hash.append(images.before_hash[index])
        found.after_hash.append(images.after_hash[index])
    return found


def _block(images: _Images, raw_columns: tuple[RawColumn, ...]) -> RowBlock:
    """Return the same rows as arrays."""
    before, after = (
        np.array([key is not None for key in keys], np.bool_)
        for keys in (images.before_key, images.after_key)
    )
    count = int(before.sum())
    return RowBlock(
        np.array(images.event, np.int64),
        np.where(before, np.cumsum(before) - 1, -1),
        np.where(after, np.cumsum(after) - 1 + count, -1),
        _lines(images.before, images.after, images.before_key, images.after_key),
        lines_of(_present(images.before_key) + _present(images.after_key)),
        np.array(
            [
                hashed
                for hashes, keys in (
                    (images.before_hash, images.before_key),
                    (images.after_hash, images.after_key),
                )
                for hashed, key in zip(hashes, keys, strict=True)
                if key is not None
            ],
            np.uint32,
        ),
        raw_columns,
    )


def _lines(
    before: Sequence[bytes | None],
    after: Sequence[bytes | None],
    before_key: Sequence[bytes | None],
    after_key: Sequence[bytes | None],
) -> Lines:
    return lines_of(
        [
            UNKNOWN_LINE if line is None else line
            for lines, keys in ((before, before_key), (after, after_key))
            for line, key in zip(lines, keys, strict=True)
            if key is not None
        ]
    )


def _present(keys: Sequence[bytes | None]) -> list[bytes]:
    return [key for key in keys if key is not None]
