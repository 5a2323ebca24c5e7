"""Row events to LOAD DATA lines.

Source of the format: MySQL internals manual, "ROWS_EVENT"; MariaDB KB, "Rows Event V1". A line
holds the fields of a row for ``LOAD DATA … CHARACTER SET binary FIELDS TERMINATED BY '\\t'
ESCAPED BY '\\\\' LINES TERMINATED BY '\\n'``, read with ``sql_mode=''`` and
``time_zone='+00:00'``; NULL is ``\\N``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Protocol
from zlib import crc32

from replicator.binlog.errors import BinlogError, UnsupportedEventError
from replicator.binlog.events.compression import expand_rows
from replicator.binlog.events.event_header import HEADER_SIZE, EventType
from replicator.binlog.events.table_map import packed_integer
from replicator.rows.decoder.row_images import RowChange, RowImages, noted_column, present_rows
from replicator.rows.values.column_format import ColumnFormat
from replicator.rows.values.fields import Read
from replicator.rows.values.value_readers import column_reader


class RowsDecoder(Protocol):
    """Decodes the row events of one table structure."""

    def decode(self, events: Sequence[bytes]) -> RowImages:
        """The changes in ``events``: whole events from their 19-byte header on, no checksum.

        Raises UnsupportedEventError for any other event than an insert, update or delete of rows,
        BinlogError for one that does not fit the columns or lacks some of them, NoRoomError for a
        value that can't be mapped.
        """
        ...


@dataclass(frozen=True, slots=True)
class RowsKind:
    """A row event type: its change, whether extra data follows the flags, and is compressed."""

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
"""Line, key line, hash, and the offset behind the row; no line for a former row."""
_ReadRow = Callable[[bytes, int], _Row]
_Pick = Callable[[list[bytes]], bytes]
FOREVER = (b"2038-01-19 03:14:07.999999", b"2106-02-07 06:28:15.999999")
"""The end of a present row's time: the greatest TIMESTAMP, which is a later one since MariaDB 11.5
(its page "TIMESTAMP")."""

_DAMAGE = (BinlogError, ValueError, IndexError, struct.error)
_HINT = (
    "the table structure that the task knows is not the one the event was written with, "
    "or the event is damaged"
)


def compile_decoder(
    columns: tuple[ColumnFormat, ...],
    written: tuple[int, ...],
    key: tuple[int, ...],
    hashed: tuple[int, ...],
    generated: frozenset[int],
    until: int | None = None,
    constants: tuple[bytes, ...] = (),
    noted: tuple[int, ...] = (),
    hash_cut: int = 0,
) -> RowsDecoder:
    """A decoder for rows of ``columns`` (in the order of the row image).

    ``constants`` are fields that each row has behind those of the image; they have the indexes that
    follow.
    ``written``, ``key`` and ``hashed`` are the indexes of the columns that make a line, its key
    and its hash; a row image may leave out those in ``generated``. ``until`` is the index of the
    column with the time until which a row was the present one, in a table that keeps its former
    rows: of those nothing is told. ``noted`` are the indexes of columns of which the bytes are
    given, too. ``hash_cut`` bytes at the end of the hashed fields do not count. Raises BinlogError
    for a column that cannot be read.
    """
    return _Decoder(columns, written, key, hashed, generated, until, constants, noted, hash_cut)


class _Decoder:
    def __init__(
        self,
        columns: tuple[ColumnFormat, ...],
        written: tuple[int, ...],
        key: tuple[int, ...],
        hashed: tuple[int, ...],
        generated: frozenset[int],
        until: int | None,
        constants: tuple[bytes, ...],
        noted: tuple[int, ...],
        hash_cut: int,
    ) -> None:
        self._columns = columns
        self._constants = constants
        self._written = written
        self._key = key
        self._hashed = hashed
        self._counting = slice(-hash_cut if hash_cut else None)
        self._until = until
        used = {*written, *key, *hashed, *noted, until}
        self._needed = {*range(len(columns))} - (generated - used)
        self._readers: list[Read] = [column_reader(column) for column in columns]
        self._noted: dict[int, list[bytes | None]] = {index: [] for index in noted}
        for index, values in self._noted.items():
            self._readers[index] = _noting(self._readers[index], values)
        self._images: dict[bytes, _ReadRow] = {}

    def decode(self, events: Sequence[bytes]) -> RowImages:
        images = RowImages()
        for values in self._noted.values():
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
        if self._until is not None:
            images = present_rows(images)
        images.noted = tuple(map(noted_column, self._noted.values()))
        return images

    def _decode_event(self, index: int, event: bytes, kind: RowsKind, images: RowImages) -> None:
        at = HEADER_SIZE + 8
        if kind.extra:
            at += int.from_bytes(event[at : at + 2], "little")
        count, at = packed_integer(event, at)
        if count != len(self._columns):
            raise BinlogError(
                f"it has {count} columns, the table structure {len(self._columns)}; {_HINT}"
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
        before = len(images.change)
        if kind.change is RowChange.UPDATE:
            self._updates(data, at, read, read_after, images)
        elif kind.change is RowChange.INSERT:
            self._one_sided(data, at, read, images, RowChange.INSERT)
        else:
            self._one_sided(data, at, read, images, RowChange.DELETE)
        rows = len(images.change) - before
        images.event += [index] * rows

    def _one_sided(
        self, data: bytes, at: int, read: _ReadRow, images: RowImages, change: RowChange
    ) -> None:
        """Rows that came, or that went."""
        there = images.after, images.after_key, images.after_hash
        absent = images.before, images.before_key, images.before_hash
        if change is RowChange.DELETE:
            there, absent = absent, there
        lines, keys, hashes = there
        rows = 0
        end = len(data)
        while at < end:
            line, key, hashed, at = read(data, at)
            lines.append(line)
            keys.append(key)
            hashes.append(hashed)
            rows += 1
        images.change += [int(change)] * rows
        lines, keys, hashes = absent
        lines += [None] * rows
        keys += [None] * rows
        hashes += [0] * rows

    def _updates(
        self, data: bytes, at: int, read: _ReadRow, read_after: _ReadRow, images: RowImages
    ) -> None:
        end = len(data)
        while at < end:
            line, key, hashed, at = read(data, at)
            images.before.append(line)
            images.before_key.append(key)
            images.before_hash.append(hashed)
            line, key, hashed, at = read_after(data, at)
            images.after.append(line)
            images.after_key.append(key)
            images.after_hash.append(hashed)
            images.change.append(int(RowChange.UPDATE))

    def _image(self, bitmap: bytes) -> _ReadRow:
        """The reader of rows with the columns that ``bitmap`` says are present."""
        read = self._images.get(bitmap)
        if read is None:
            bits = int.from_bytes(bitmap, "little")
            present = tuple(i for i in range(len(self._columns)) if bits >> i & 1)
            missing = sorted(self._needed - {*present})
            if missing:
                names = ", ".join(self._columns[i].name for i in missing)
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
        constants = self._constants
        made = range(len(self._columns), len(self._columns) + len(constants))
        rank = {column: n for n, column in enumerate((*present, *made))}
        line_of = _picker(tuple(rank[i] for i in self._written), len(rank))
        key_of = _picker(tuple(rank[i] for i in self._key), len(rank))
        hash_of = _picker(tuple(rank[i] for i in self._hashed), len(rank))
        has_key = bool(self._key)
        has_hash = bool(self._hashed)
        key_is_hashed = self._key == self._hashed
        counting = self._counting
        names = tuple(self._columns[i].name for i in present)
        until = None if self._until is None else rank[self._until]
        noted = [(1 << rank[i], values) for i, values in self._noted.items()]
        noted_mask = sum(bit for bit, _ in noted)

        def read_row(data: bytes, start: int) -> _Row:
            at = start + null_bytes
            nulls = int.from_bytes(data[start:at], "little") & null_mask
            fields: list[bytes] = []
            add = fields.append
            try:
                if nulls:
                    if nulls & noted_mask:
                        for bit, values in noted:
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
                for _, values in noted:
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


def _noting(read: Read, values: list[bytes | None]) -> Read:
    """A reader that also keeps the bytes that it has read."""
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
    """Joins the fields at ``indexes`` by tabs."""
    join = b"\t".join
    if indexes == tuple(range(count)):
        return join
    if len(indexes) == 1:
        return itemgetter(indexes[0])
    if not indexes:
        return lambda fields: b""
    pick = itemgetter(*indexes)
    return lambda fields: join(pick(fields))
