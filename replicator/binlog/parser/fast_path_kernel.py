"""The fast path as a compiled loop: row events of known tables, starts and ends of transactions.

It reads packets (`replicator.binlog.connection.framing`), and the expanded events of compressed
transactions (`replicator.binlog.events.transaction_payload`). It stops *before* an event that is
not of the fast path, and leaves this event to `replicator.binlog.parser.slow_path`. The slow path
does the same for the events of the fast path; the reasons are documented there.

Source of the formats: MySQL internals manual, "TABLE_MAP_EVENT" and "ROWS_EVENT"; and as in
`replicator.binlog.connection.framing` and `replicator.binlog.events.transaction_payload`.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from replicator.binlog.connection.framing import PacketBuffer
from replicator.binlog.events.event_header import ROW_EVENTS, EventType
from replicator.binlog.parser.parser_state import MARIADB, MYSQL, ReadingState
from replicator.binlog.positions.position import ReadPosition
from replicator.binlog.segments.segment_builder import RowColumns, SegmentBuilder
from replicator.kernels.compiled import (
    CHECKSUMS,
    INPUT,
    INTEGER,
    INTEGERS,
    OUTPUT,
    TABLE,
    Bytes,
    Integers,
    Number,
    compiled,
    inlined,
    record,
)
from replicator.kernels.crc32 import crc32
from replicator.kernels.shared_numbers import shared

STOPPED, FULL = 0, 1
"""Results of `walk`: the next event needs a handler, or is missing; the segment must end."""


NO_EVENT = -1


@inlined
def number_at(data: Bytes, at: int, width: int) -> Number:
    """Return the little-endian number of ``width`` bytes."""
    value = np.int64(0)
    for byte in range(width):
        value |= np.int64(data[at + byte]) << np.int64(8 * byte)
    return value


@inlined
def framed(
    data: Bytes, at: int, limit: int, sequence: int, checksum: int, tables: NDArray[np.uint32]
) -> Number:
    """Return the offset of the event in the packet at ``at``.

    Returns NO_EVENT if the packet is not complete before ``limit`` or needs a handler: a part of an
    event, no event, another ``sequence`` number, or a wrong checksum (of ``checksum`` bytes).
    """
    room = limit - at
    if room < 5 + _HEADER:
        return np.int64(NO_EVENT)
    length = number_at(data, at, 3)
    if length <= _HEADER or length == 0xFFFFFF or room < 4 + length or data[at + 4]:
        return np.int64(NO_EVENT)
    if data[at + 3] != sequence:
        return np.int64(NO_EVENT)
    begin, size = at + 5, length - 1
    stop = begin + size - checksum
    if stop - begin < _HEADER or number_at(data, begin + 9, 4) != size:
        return np.int64(NO_EVENT)
    if stop - begin < size and crc32(data, begin, stop, tables) != number_at(data, stop, 4):
        return np.int64(NO_EVENT)
    return begin


@inlined
def unframed(data: Bytes, at: int, limit: int) -> Number:
    """Return ``at`` if a complete expanded event begins there; otherwise NO_EVENT."""
    room = limit - at
    if room < _HEADER:
        return np.int64(NO_EVENT)
    size = number_at(data, at + 9, 4)
    if size < _HEADER or size > room:
        return np.int64(NO_EVENT)
    return at


@inlined
def joined_offset(before: int, size: int, end: int) -> Number:
    """Return the offset of an event's end in its file.

    ``end``: the event's own 32 bits of it, or 0.

    Returns NO_EVENT if the event does not begin at the end of the previous event.
    """
    if not end:
        return before + size
    if (before + size - end) & (_WRAP - 1):
        return np.int64(NO_EVENT)
    offset = before - (before & (_WRAP - 1)) + end
    return offset if offset >= before else offset + _WRAP


@shared
class LoopCursor(Structure):
    """The position of the loop in its input, and results that the state does not have.

    Attributes:
        checksum: bytes of an event's checksum: 4, or 0 if it has none.
        newest: place of the newest group's first event in the buffer; -1 if it is not there.
        newest_size: size of this event.
        newest_offset: offset of this event in the file.
        inside: whether the next events are of a payload: without packets and checksums, and with
            the payload's end position.
        entered: number of expanded payloads that the loop has entered.
        inner: place of the next event of the last of them in the expanded data.
        inner_limit: end of the events of the last of them.
    """

    checksum: int
    newest: int
    newest_size: int
    newest_offset: int
    inside: bool
    entered: int
    inner: int
    inner_limit: int

    def begin(self, checksum: int, at: int, end: int) -> None:
        """Begin inside a payload, from ``at`` to ``end``, unless it is empty."""
        self.checksum, self.newest, self.entered = checksum, -1, 0
        self.inside, self.inner, self.inner_limit = at < end, at, end


class _LoopState(NamedTuple):
    """The state of reading that the loop changes."""

    packets: PacketBuffer
    position: ReadPosition
    group: ReadingState
    segment: SegmentBuilder
    rows: RowColumns
    cursor: LoopCursor


UNUSUAL, DONE, ENDS = 0, 1, 2
"""Results for an event: it needs a handler; it is handled; it is handled and the segment ends."""


_ROWS_FLAGS = 6
_STATEMENT_END = 1


@inlined
def _find(known: Integers, table_id: int) -> Number:
    """Return the index of a table id in the hash table, or -1."""
    mask = known.shape[0] - 1
    place = table_id & mask
    while known[place, 0] >= 0:
        if known[place, 0] == table_id:
            return place
        place = (place + 1) & mask
    return np.int64(-1)


@inlined
def take_table_map(
    data: Bytes, state: _LoopState, begin: int, stop: int, known: Integers, bodies: Bytes
) -> Number:
    """Read a known table map into the current statement."""
    group = state.group
    body = begin + _HEADER + 6
    if stop < body or not group.open or not group.begun:
        return UNUSUAL
    place = _find(known, number_at(data, begin + _HEADER, 6))
    if place < 0 or known[place, 3] != stop - body:
        return UNUSUAL
    same = known[place, 2]
    for byte in range(stop - body):
        if data[body + byte] != bodies[same + byte]:
            return UNUSUAL
    known[place, 4] = group.statement
    return DONE


@inlined
def take_rows(
    data: Bytes,
    state: _LoopState,
    begin: int,
    stop: int,
    size: int,
    known: Integers,
    left_out: Bytes,
    kept: Bytes,
    starts: Integers,
    heads: Integers,
) -> Number:
    """Read a row event whose table map is part of the same statement."""
    _, position, group, segment, rows, cursor = state
    if stop - begin < _HEADER + _ROWS_FLAGS + 2 or not group.open or not group.begun:
        return UNUSUAL
    place = _find(known, number_at(data, begin + _HEADER, 6))
    if place < 0 or known[place, 4] != group.statement:
        return UNUSUAL
    ends = np.int64(data[begin + _HEADER + _ROWS_FLAGS]) & _STATEMENT_END
    group.statement += int(ends)
    group.unended = ends == 0
    table = known[place, 1]
    ordinal = group.ordinal + 1
    if table < 0 or ordinal <= group.skip or left_out[table << 8 | np.int64(data[begin + 4])]:
        group.ordinal = ordinal
        return DONE
    group.ordinal = ordinal
    group.routed += 1
    segment.moved = True
    at, count = rows.size, rows.count
    for byte in range(stop - begin):
        kept[at + byte] = data[begin + byte]
    if cursor.inside:
        for byte in range(4):
            kept[at + 13 + byte] = position.offset >> 8 * byte & 255
    heads[0, count], heads[1, count], heads[2, count] = table, group.transaction, ordinal
    count += 1
    starts[count] = rows.size = at + stop - begin
    rows.count = count
    if segment.bytes + size >= segment.max_bytes or count >= segment.max_events:
        segment.timestamp = number_at(data, begin, 4)
        return ENDS
    return DONE


_HEADER = 19
_SQL = 13
_BEGIN = np.frombuffer(b"BEGIN", np.uint8)
_COMMIT = np.frombuffer(b"COMMIT", np.uint8)
_WRAP = 1 << 32
_MOST = 1 << 62
_PART, _TABLE_MAP, _ROWS, _XID, _QUERY = range(1, 6)
_MARIADB_GTID, _MYSQL_GTID, _ANONYMOUS, _PAYLOAD = range(6, 10)
_STANDALONE_OR_XA = 1 | 64 | 128
_GROUP_COMMIT_ID = 2
_MARIADB_GTID_BYTES = 13
_GROUP_COMMIT_BYTES = 8
_MYSQL_GTID_BYTES = 25


def _classes() -> Bytes:
    classes = np.zeros(256, np.uint8)
    classes[list(ROW_EVENTS)] = _ROWS
    classes[[EventType.INTVAR, EventType.RAND, EventType.USER_VAR, EventType.IGNORABLE]] = _PART
    classes[[EventType.ROWS_QUERY, EventType.MARIADB_ANNOTATE_ROWS]] = _PART
    classes[EventType.TABLE_MAP] = _TABLE_MAP
    classes[EventType.XID] = _XID
    classes[EventType.QUERY] = _QUERY
    classes[EventType.MARIADB_GTID] = _MARIADB_GTID
    classes[EventType.GTID] = _MYSQL_GTID
    classes[EventType.ANONYMOUS_GTID] = _ANONYMOUS
    classes[EventType.TRANSACTION_PAYLOAD] = _PAYLOAD
    return classes


CLASSES = _classes()
"""How an event is handled, by its type."""


@inlined
def _begin_group(state: _LoopState, begin: int, size: int, offset: int) -> Number:
    position, group, cursor = state.position, state.group, state.cursor
    place = offset - size
    if group.open or group.resuming or cursor.inside or place < 0:
        return UNUSUAL
    group.located = True
    group.open = True
    group.begun = False
    group.without_effect = False
    position.boundary_offset = place
    group.transaction = position.file_key | place
    if place < _WRAP:
        cursor.newest, cursor.newest_size, cursor.newest_offset = begin, size, place
    group.ordinal = group.skip = group.routed = 0
    group.unended = False
    group.statement += 1
    return DONE


@inlined
def _end_group(data: Bytes, state: _LoopState, begin: int, size: int, offset: int) -> Number:
    position, group, segment, rows = state.position, state.group, state.segment, state.rows
    if not group.open or not group.begun or group.unended:
        return UNUSUAL
    if group.pending:
        if group.family == MARIADB:
            group.executed_first, group.executed_last = group.server, group.number
        else:
            if not group.executed:
                group.executed_first = group.number
            group.executed_last = group.number + 1
        group.executed = True
        group.pending = group.nameless = False
    else:
        group.nameless = True
    group.open = False
    segment.timestamp = number_at(data, begin, 4)
    position.boundary_offset = offset
    segment.moved = True
    full = segment.bytes + size >= segment.target_bytes or rows.count >= segment.target_events
    return ENDS if full else DONE


@inlined
def _end_run(state: _LoopState, runs: Integers) -> None:
    """Record the executed GTIDs, since GTIDs of another run follow."""
    group = state.group
    if group.executed:
        run = runs[group.ended_runs]
        run[0], run[1] = group.origin, group.server
        run[2], run[3] = group.executed_first, group.executed_last
        group.ended_runs += 1
        group.executed = False


@inlined
def _mariadb_gtid(
    data: Bytes,
    state: _LoopState,
    runs: Integers,
    begin: int,
    stop: int,
    size: int,
    offset: int,
) -> Number:
    group = state.group
    body = begin + _HEADER
    if stop - body < _MARIADB_GTID_BYTES:
        return UNUSUAL
    number, domain, flags = number_at(data, body, 8), number_at(data, body + 8, 4), data[body + 12]
    extra = body + _MARIADB_GTID_BYTES
    if flags & _GROUP_COMMIT_ID:
        extra += _GROUP_COMMIT_BYTES
    if flags & _STANDALONE_OR_XA or number < 0 or (extra < stop and data[extra]):
        return UNUSUAL
    if group.family not in (0, MARIADB) or group.ended_runs == runs.shape[0]:
        return UNUSUAL
    if _begin_group(state, begin, size, offset) == UNUSUAL:
        return UNUSUAL
    if group.origin != domain:
        _end_run(state, runs)
    group.begun = True
    group.family, group.pending = MARIADB, True
    group.origin, group.server, group.number = (
        domain,
        number_at(data, begin + 5, 4),
        number,
    )
    return DONE


@inlined
def _mysql_gtid(
    data: Bytes,
    state: _LoopState,
    runs: Integers,
    begin: int,
    stop: int,
    size: int,
    offset: int,
) -> Number:
    group = state.group
    body = begin + _HEADER
    if stop - body < _MYSQL_GTID_BYTES:
        return UNUSUAL
    first, second = number_at(data, body + 1, 8), number_at(data, body + 9, 8)
    number = number_at(data, body + 17, 8)
    if number < 1 or number > _MOST:
        return UNUSUAL
    if group.family not in (0, MYSQL) or group.ended_runs == runs.shape[0]:
        return UNUSUAL
    if _begin_group(state, begin, size, offset) == UNUSUAL:
        return UNUSUAL
    if group.origin != first or group.server != second or group.number + 1 != number:
        _end_run(state, runs)
    group.family, group.pending = MYSQL, True
    group.origin, group.server, group.number = first, second, number
    return DONE


@inlined
def _is(data: Bytes, at: int, word: Bytes) -> Number:
    same = True
    for byte in range(len(word)):
        same &= data[at + byte] == word[byte]
    return same


@inlined
def _query(data: Bytes, state: _LoopState, begin: int, stop: int, size: int, offset: int) -> Number:
    """Handle ``BEGIN`` and ``COMMIT`` only, which need no other parts of their events."""
    group = state.group
    body = begin + _HEADER
    if stop - body < _SQL:
        return UNUSUAL
    sql = body + _SQL + np.int64(data[body + 8]) + number_at(data, body + 11, 2) + 1
    if stop - sql == len(_COMMIT) and _is(data, sql, _COMMIT):
        return _end_group(data, state, begin, size, offset)
    if stop - sql != len(_BEGIN) or not _is(data, sql, _BEGIN):
        return UNUSUAL
    if group.open and (group.begun or (group.pending and group.family == MARIADB)):
        return UNUSUAL
    if not group.open and _begin_group(state, begin, size, offset) == UNUSUAL:
        return UNUSUAL
    group.begun = True
    return DONE


@inlined
def _bound(
    kind: int,
    data: Bytes,
    state: _LoopState,
    runs: Integers,
    begin: int,
    stop: int,
    size: int,
    offset: int,
) -> Number:
    if kind == _XID:
        return _end_group(data, state, begin, size, offset)
    if kind == _MARIADB_GTID:
        return _mariadb_gtid(data, state, runs, begin, stop, size, offset)
    if kind == _MYSQL_GTID:
        return _mysql_gtid(data, state, runs, begin, stop, size, offset)
    if kind == _ANONYMOUS:
        return _begin_group(state, begin, size, offset)
    return _query(data, state, begin, stop, size, offset)


@inlined
def _enter(state: _LoopState, payloads: Integers) -> Number:
    packets, cursor = state.packets, state.cursor
    number = cursor.entered
    if cursor.inside or number >= payloads.shape[0] or payloads[number, 0] != packets.at:
        return UNUSUAL
    cursor.inside, cursor.entered = True, number + 1
    cursor.inner, cursor.inner_limit = payloads[number, 1], payloads[number, 2]
    return DONE


@compiled(
    *(INTEGER, INPUT, INPUT, TABLE),
    *map(
        record, (PacketBuffer, ReadPosition, ReadingState, SegmentBuilder, RowColumns, LoopCursor)
    ),
    *(TABLE, TABLE, INPUT, INPUT, INPUT, CHECKSUMS, OUTPUT, INTEGERS, TABLE),
)
def walk(
    received: Bytes,
    expanded: Bytes,
    payloads: Integers,
    packet_record: Sequence[PacketBuffer],
    position_record: Sequence[ReadPosition],
    group_record: Sequence[ReadingState],
    segment_record: Sequence[SegmentBuilder],
    rows_record: Sequence[RowColumns],
    cursor_record: Sequence[LoopCursor],
    runs: Integers,
    known: Integers,
    bodies: Bytes,
    left_out: Bytes,
    classes: Bytes,
    tables: NDArray[np.uint32],
    kept: Bytes,
    starts: Integers,
    heads: Integers,
) -> int:
    """Read the events in ``received`` and in payloads; return STOPPED or FULL.

    Args:
        payloads: for each expanded payload: start of the packet, start and end in ``expanded``.
        runs: room for origin, server, first and last executed GTID of the ended runs of GTIDs.
    """
    packets, position, segment = packet_record[0], position_record[0], segment_record[0]
    cursor = cursor_record[0]
    state = _LoopState(packets, position, group_record[0], segment, rows_record[0], cursor)
    while True:
        if cursor.inside and cursor.inner == cursor.inner_limit:
            cursor.inside = False
        before = offset = position.offset
        if cursor.inside:
            data = expanded
            begin = unframed(data, cursor.inner, cursor.inner_limit)
        else:
            data = received
            begin = framed(data, packets.at, packets.end, packets.sequence, cursor.checksum, tables)
        if begin == NO_EVENT or classes[data[begin + 4]] == 0:
            return STOPPED
        kind = classes[data[begin + 4]]
        size = number_at(data, begin + 9, 4)
        inside, stop = cursor.inside, begin + size
        if not inside:
            stop -= cursor.checksum
            offset = joined_offset(before, size, number_at(data, begin + 13, 4))
            if offset == NO_EVENT:
                return STOPPED
        outcome = np.int64(DONE)
        if kind == _ROWS:
            outcome = take_rows(
                data, state, begin, stop, size, known, left_out, kept, starts, heads
            )
        elif kind == _TABLE_MAP:
            outcome = take_table_map(data, state, begin, stop, known, bodies)
        elif kind == _PAYLOAD:
            outcome = _enter(state, payloads)
        elif kind != _PART:
            outcome = _bound(kind, data, state, runs, begin, stop, size, offset)
        if outcome == UNUSUAL:
            return STOPPED
        if inside:
            cursor.inner = begin + size
        else:
            packets.at, packets.sequence = begin + size, packets.sequence + 1 & 0xFF
        position.before, position.offset = before, offset
        segment.bytes += size
        if outcome == ENDS:
            return FULL
