"""Converts row events to lines, keys and hashes in arrays, without Python objects for values.

Each step processes all rows of the events: find the values (`replicator.rows.decoder.image_walk`),
write the values that the compiled loop does not know (`replicator.rows.values.value_readers`), then
write lines and keys (`replicator.rows.decoder.field_text`). If a step can't process the events,
`replicator.rows.decoder.reference_decoder` reads them value by value and reports errors.

Source of the format of the headers of row events: MySQL internals manual, "ROWS_EVENT"; MariaDB KB,
"Rows Event V1" and "Compressing Events to Reduce Size of the Binary Log".
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from replicator.binlog.errors import BinlogError
from replicator.binlog.events.compression import expand_rows
from replicator.binlog.events.event_header import HEADER_SIZE
from replicator.binlog.segments.row_events import RowEvents
from replicator.kernels.compiled import (
    INPUT,
    INTEGER,
    INTEGERS,
    TABLE,
    TRUTH,
    Bytes,
    Integers,
    Truths,
    compiled,
)
from replicator.kernels.crc32 import Checksums
from replicator.mysql.column_types import BINLOG_TYPES, Decoder
from replicator.rows.decoder import field_text
from replicator.rows.decoder.image_walk import NULL, Walk, layout_of, walk_rows
from replicator.rows.decoder.lines import Lines
from replicator.rows.decoder.parameter_rows import (
    DOUBLE,
    LONGEST_PREFIX,
    parameter_format,
    write_parameters,
)
from replicator.rows.decoder.reference_decoder import ROWS_KINDS, ReferenceDecoder
from replicator.rows.decoder.row_block import RawColumn, RowBlock
from replicator.rows.decoder.row_format import (
    Pieces,
    constant_format,
    extent,
    field_format,
    is_text,
)
from replicator.rows.values.column_format import ColumnFormat, RowFormat
from replicator.rows.values.fields import Read
from replicator.rows.values.float_text import float_text
from replicator.rows.values.value_readers import MappedValueError, column_reader

EXTRA, COMPRESSED = 4, 8
"""Flags of a kind of row event, besides the change (1 to 3): extra data in its header, and
compressed rows."""

_TABLE_AND_FLAGS = 8
_TWO_BYTES = 252
_CHANGE = 3
_UPDATE = 2


@compiled(INTEGER, INPUT, INTEGERS, INTEGERS, INTEGERS, INTEGER, TABLE)
def _read(
    data: Bytes, begins: Integers, ends: Integers, kinds: Integers, columns: int, heads: Integers
) -> int:
    """Return the index of the first event without ``columns`` columns in its header, or -1."""
    width = (columns + 7) // 8
    for event in range(begins.shape[0]):
        at, end = begins[event], ends[event]
        if end - at <= HEADER_SIZE + _TABLE_AND_FLAGS:
            return event
        kind = kinds[data[at + 4]]
        if kind == 0:
            return event
        at += HEADER_SIZE + _TABLE_AND_FLAGS
        if kind & EXTRA:
            if at + 2 > end:
                return event
            extra = np.int64(data[at]) | np.int64(data[at + 1]) << 8
            if extra < 2:
                return event
            at += extra
        if at + 3 > end:
            return event
        count = np.int64(data[at])
        at += 1
        if count == _TWO_BYTES:
            count = np.int64(data[at]) | np.int64(data[at + 1]) << 8
            at += 2
        elif count > _TWO_BYTES - 2:
            return event
        change = kind & _CHANGE
        heads[event, 0] = change
        heads[event, 1] = kind & COMPRESSED
        heads[event, 2] = at
        heads[event, 3] = at
        at += width
        if change == _UPDATE:
            heads[event, 3] = at
            at += width
        if count != columns or at > end:
            return event
        heads[event, 4] = at
    return -1


@compiled(TRUTH, INPUT, INTEGERS, INTEGER)
def _alike(data: Bytes, places: Integers, width: int) -> bool:
    first = places[0]
    for place in places:
        for byte in range(width):
            if data[place + byte] != data[first + byte]:
                return False
    return True


@dataclass(frozen=True, slots=True)
class RowEventHeaders:
    """For each event.

    Its change, whether its rows are compressed, the places of the bitmaps of the columns in its
    images (former and latter), and the beginning of its rows.
    """

    change: Integers
    compressed: Integers
    former: Integers
    latter: Integers
    rows: Integers


def read_heads(
    data: Bytes, begins: Integers, ends: Integers, kinds: Integers, columns: int
) -> RowEventHeaders | None:
    """Read the headers of the events ``data[begins[i]:ends[i]]``, which begin with 19 bytes.

    ``kinds`` has the change of each event type, with `EXTRA` and `COMPRESSED`, and 0 for other
    types. Returns None if there is another event, or an event with another number of columns.
    """
    heads = np.empty((len(begins), 5), np.int64)
    if _read(data, begins, ends, kinds, columns, heads) >= 0:
        return None
    return RowEventHeaders(*(np.ascontiguousarray(part) for part in heads.T))


def alike(data: Bytes, places: Integers, width: int) -> bool:
    """Return whether the same ``width`` bytes are at all ``places``."""
    return bool(_alike(data, places, width))


_UNREADABLE = (BinlogError, MappedValueError, ValueError, IndexError, struct.error)


@dataclass(frozen=True, slots=True)
class OwnBuckets:
    """The ``own`` buckets among a target's ``count`` buckets."""

    count: int
    own: frozenset[int]

    @property
    def all(self) -> bool:
        """Whether no bucket belongs to another task."""
        return len(self.own) == self.count

    def holds(self, hashes: Checksums) -> Truths:
        """Return for each hash whether its row is in one of these buckets."""
        mine = np.zeros(self.count, np.bool_)
        mine[[*self.own]] = True
        chosen: Truths = mine[hashes % np.uint32(self.count)]
        return chosen


def _kind_numbers() -> Integers:
    numbers = np.zeros(256, np.int64)
    for code, kind in ROWS_KINDS.items():
        extra = EXTRA if kind.extra else 0
        numbers[code] = int(kind.change) | extra | (COMPRESSED if kind.compressed else 0)
    return numbers


_KINDS = _kind_numbers()


class BlockDecoder:
    """Decodes the row events of one table structure."""

    def __init__(
        self, rows: RowFormat, raw_columns: tuple[int, ...] = (), *, typed: bool = False
    ) -> None:
        """Compile the format; the arguments are as in `ReferenceDecoder`.

        ``typed``: rows become rows of parameters (`replicator.rows.decoder.parameter_rows`) instead
        of lines. Each written column must have a `parameter_type`, and no key or hash a DOUBLE.
        """
        columns, used = rows.columns, {*rows.written, *rows.key, *rows.hashed}
        self._columns = columns
        self._readers: list[Read] = [column_reader(column) for column in columns]
        self._extents = [extent(column) for column in columns]
        self._needed = {*range(len(columns))} - (rows.generated - {*used, *raw_columns})
        self._key, self._hashed, self._raw_columns = rows.key, rows.hashed, raw_columns
        self._hash_cut = rows.hash_cut
        pieces = Pieces()
        formats = [field_format(column, n, pieces) for n, column in enumerate(columns)]
        formats += [constant_format(constant, pieces) for constant in rows.constants]
        self._line, self._key_line, self._hash_line = (
            np.array([formats[n] for n in chosen], np.int64).reshape(len(chosen), field_text.WIDTH)
            for chosen in (rows.written, rows.key, rows.hashed)
        )
        self._typed = typed
        if typed:
            parameters = [parameter_format(columns[n], n, pieces) for n in rows.written]
            self._line = np.array(parameters, np.int64).reshape(len(parameters), field_text.WIDTH)
            as_stored = {form[1] for form in parameters if form[0] == DOUBLE}
            used -= as_stored
        self._pieces, self._piece_ends = pieces.arrays()
        self._longest = max(field_text.LONGEST, pieces.longest) + 1
        given = [n for n in range(len(columns)) if n in used and formats[n][0] == field_text.GIVEN]
        # Any bytes are a valid number, so other tasks' rows need no check of these columns.
        self._then = [n for n in given if n not in rows.hashed and _is_float(columns[n])]
        self._first = [n for n in given if n not in self._then]
        self._in_python = bool(raw_columns) or not all(_is_float(columns[n]) for n in given)

    def decode(self, events: RowEvents, own: OwnBuckets | None = None) -> RowBlock | None:
        """Return the rows of the events; None if the events are unusual in any way.

        If ``own`` is given, only rows of these buckets have lines.
        """
        heads = self._heads(events) if len(events) else None
        if heads is not None and (self._in_python or heads.compressed.any()):
            # Python code reads the whole buffer, so it must contain only these events.
            events = events.gathered()
            heads = self._heads(events)
        if heads is None:
            return None
        layouts = self._layouts(events.data, heads)
        if layouts is None:
            return None
        data, ends = events.data, events.end
        try:
            if heads.compressed.any():
                data, heads, ends = _expanded(data, heads, ends)
            walk = walk_rows(data, heads.rows, ends, heads.change, layouts, len(self._columns))
            return None if walk is None else self._block(data, walk, own)
        except _UNREADABLE:
            return None

    def _heads(self, events: RowEvents) -> RowEventHeaders | None:
        return read_heads(events.data, events.begin, events.end, _KINDS, len(self._columns))

    def _layouts(self, data: Bytes, heads: RowEventHeaders) -> tuple[Integers, Integers] | None:
        """Return the layouts of the images if all events have the same columns."""
        width = (len(self._columns) + 7) // 8
        updates = np.ascontiguousarray(heads.latter[heads.latter != heads.former])
        if not alike(data, heads.former, width):
            return None
        if len(updates) and not alike(data, updates, width):
            return None
        first = int(heads.former[0])
        former = self._layout(data[first : first + width].tobytes())
        first = int(updates[0]) if len(updates) else first
        latter = self._layout(data[first : first + width].tobytes())
        return None if former is None or latter is None else (former, latter)

    def _layout(self, bitmap: bytes) -> Integers | None:
        bits = int.from_bytes(bitmap, "little")
        present = [n for n in range(len(self._columns)) if bits >> n & 1]
        if self._needed - {*present}:
            return None
        return layout_of([(*self._extents[n], n) for n in present])

    def _block(self, data: Bytes, walk: Walk, own: OwnBuckets | None) -> RowBlock | None:
        raw = data.tobytes() if self._in_python else b""
        # Record the raw values first: later, the places of some values are replaced by the places
        # of their text.
        raw_columns = tuple(self._note(raw, walk, column) for column in self._raw_columns)
        every = np.ones(len(walk.sizes), np.bool_)
        given = self._write_given(raw, data, walk, self._first, every, np.empty(0, np.uint8))
        hashed = self._write(data, given, walk, self._hash_line, every)
        if hashed is None:
            return None
        hashes = np.zeros(len(every), np.uint32)
        if self._hashed:
            hashes = hashed.checksums(self._hash_cut)
        wanted = every if own is None or own.all else own.holds(hashes)
        given = self._write_given(raw, data, walk, self._then, wanted, given)
        write = self._write_parameters if self._typed else self._write
        lines = write(data, given, walk, self._line, wanted)
        if lines is None:
            return None
        keys = lines
        if self._key:
            same = self._hashed == self._key
            written = hashed if same else self._write(data, given, walk, self._key_line, wanted)
            if written is None:
                return None
            keys = written
        return RowBlock(walk.event, walk.before, walk.after, lines, keys, hashes, raw_columns)

    def _note(self, raw: bytes, walk: Walk, column: int) -> RawColumn:
        prefix, sizes = self._extents[column].length_bytes, walk.sizes[:, column]
        return RawColumn(
            raw, walk.starts[:, column] - prefix, np.where(sizes == NULL, NULL, sizes + prefix)
        )

    def _write(
        self, data: Bytes, given: Bytes, walk: Walk, formats: Integers, wanted: Truths
    ) -> Lines | None:
        images = len(walk.sizes)
        room = images
        for how, column, first, *_ in formats.tolist():
            # The field and the pieces around it; each byte of a text may need an escape.
            room += 3 * images * self._longest
            if is_text(how):
                room += 2 * int(np.maximum(walk.sizes[:, column], 0).sum())
            if how == field_text.PADDED:
                room += 2 * images * first
        out = np.empty(room, np.uint8)
        starts = np.empty(images + 1, np.int64)
        fits = field_text.write_lines(
            data,
            given,
            walk.starts,
            walk.sizes,
            wanted,
            formats,
            self._pieces,
            self._piece_ends,
            out,
            starts,
        )
        return Lines(out[: starts[-1]], starts) if fits else None

    def _write_parameters(
        self, data: Bytes, given: Bytes, walk: Walk, formats: Integers, wanted: Truths
    ) -> Lines | None:
        images = len(walk.sizes)
        room = images
        for how, column, first, *_ in formats.tolist():
            room += images * (self._longest + LONGEST_PREFIX)
            if is_text(how):
                room += int(np.maximum(walk.sizes[:, column], 0).sum())
            if how == field_text.PADDED:
                room += images * first
        out = np.empty(room, np.uint8)
        starts = np.empty(images + 1, np.int64)
        fits = write_parameters(
            data,
            given,
            walk.starts,
            walk.sizes,
            wanted,
            formats,
            self._pieces,
            self._piece_ends,
            out,
            starts,
        )
        return Lines(out[: starts[-1]], starts) if fits else None

    def _write_given(
        self,
        raw: bytes,
        data: Bytes,
        walk: Walk,
        columns: Sequence[int],
        wanted: Truths,
        given: Bytes,
    ) -> Bytes:
        """Append values unknown to the compiled loop to ``given``, and record their places."""
        parts, at = [given], len(given)
        for n in columns:
            images = np.flatnonzero((walk.sizes[:, n] != NULL) & wanted)
            starts = walk.starts[images, n]
            text, places, sizes = self._fields(raw, data, n, starts)
            walk.starts[images, n] = places + at
            walk.sizes[images, n] = sizes
            parts.append(text)
            at += len(text)
        return np.concatenate(parts)

    def _fields(
        self, raw: bytes, data: Bytes, n: int, starts: Integers
    ) -> tuple[Bytes, Integers, Integers]:
        column = self._columns[n]
        if _is_float(column):
            size = self._extents[n].size
            stored = data[starts[:, None] + np.arange(size)]
            return float_text(stored.view(f"<f{size}").ravel().astype(np.float64))
        read, prefix = self._readers[n], self._extents[n].length_bytes
        fields = [read(raw, start)[0] for start in (starts - prefix).tolist()]
        sizes = np.array([len(part) for part in fields], np.int64)
        return np.frombuffer(b"".join(fields), np.uint8), np.cumsum(sizes) - sizes, sizes


def _is_float(column: ColumnFormat) -> bool:
    """Return whether all values are floating-point numbers, which have a compiled loop."""
    real = BINLOG_TYPES[column.type_code].decoder is Decoder.REAL
    return real and not (column.before or column.after)


def _expanded(
    data: Bytes, heads: RowEventHeaders, ends: Integers
) -> tuple[Bytes, RowEventHeaders, Integers]:
    """Return the events with the expanded rows of compressed ones appended."""
    raw = data.tobytes()
    parts, at = [raw], len(raw)
    rows, ends = heads.rows.copy(), ends.copy()
    for event in np.flatnonzero(heads.compressed).tolist():
        part = expand_rows(raw[rows[event] : ends[event]])
        rows[event], ends[event] = at, at + len(part)
        parts.append(part)
        at += len(part)
    return np.frombuffer(b"".join(parts), np.uint8), replace(heads, rows=rows), ends


class CompiledDecoder:
    """Decodes the row events of one table structure."""

    def __init__(self, rows: RowFormat, raw_columns: tuple[int, ...] = ()) -> None:
        """Compile the format; the arguments are as in `ReferenceDecoder`."""
        self._reference = ReferenceDecoder(rows, raw_columns)
        self._blocks = BlockDecoder(rows, raw_columns) if rows.until is None else None

    def decode(self, events: RowEvents, own: OwnBuckets | None = None) -> RowBlock:
        """Return the rows of the events. Rows outside ``own`` may have empty lines and keys.

        Raises the errors of `ReferenceDecoder.decode`.
        """
        block = self._blocks.decode(events, own) if self._blocks is not None else None
        return self._reference.decode(events.split()) if block is None else block
