"""The fast path of a binlog as a compiled loop: row events of tables that are known, and what
begins and ends their transactions.

It follows packets (`replicator.binlog.connection.framing`), and what is expanded of compressed
transactions (`replicator.binlog.events.transaction_payload`), and stops *before* an event that is
not of the fast path, with everything as it was before that event:
`replicator.binlog.parser.slow_path` takes it. What is done here is done there for the same events,
with the reasons.

Source of the formats: MySQL internals manual, "TABLE_MAP_EVENT" and "ROWS_EVENT"; and as in
`replicator.binlog.connection.framing` and `replicator.binlog.events.transaction_payload`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from replicator.binlog.events.event_header import ROW_EVENTS, EventType
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
)
from replicator.kernels.crc32 import crc32

STOPPED, FULL = 0, 1
"""What `walk` gives: an event must be handled otherwise, or has not come; the segment must end."""


NO_EVENT = -1


@inlined
def number_at(data: Bytes, at: int, width: int) -> Number:
    """The number of ``width`` bytes there."""
    value = np.int64(0)
    for byte in range(width):
        value |= np.int64(data[at + byte]) << np.int64(8 * byte)
    return value


@inlined
def framed(
    data: Bytes, at: int, limit: int, sequence: int, checksum: int, tables: NDArray[np.uint32]
) -> Number:
    """Where the event of the packet at ``at`` begins.

    NO_EVENT where it is not whole before ``limit``, or needs a handler: parts of events, what is no
    event, what is not the packet of this ``sequence`` number, and what does not match its checksum,
    of ``checksum`` bytes.
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
    """The same of an event at ``at`` in what is expanded of a payload: it begins there."""
    room = limit - at
    if room < _HEADER:
        return np.int64(NO_EVENT)
    size = number_at(data, at + 9, 4)
    if size < _HEADER or size > room:
        return np.int64(NO_EVENT)
    return at


@inlined
def end_offset(before: int, size: int, end: int) -> Number:
    """Where an event ends in its file: at what it says itself, by 32 bits, if anything."""
    if not end:
        return before + size
    offset = before - (before & (_WRAP - 1)) + end
    return offset if offset >= before else offset + _WRAP


@inlined
def joins(before: int, size: int, end: int) -> Number:
    """Whether an event that says to end there, by 32 bits, begins where the one before ends."""
    return not end or (before + size - end) & (_WRAP - 1) == 0


# The places of the loop's numbers in their array, which `replicator.binlog.parser.fast_path`
# shares with it. Where the next packet begins in the buffer, and
# where what was received ends:
PACKET, LIMIT = 0, 1
# In the file: where the newest event begins and ends, the last boundary, the file's position key.
BEFORE, OFFSET, BOUNDARY, FILE_KEY = 2, 3, 4, 5
CHECKSUM = 6
"""The bytes of an event's checksum: 4, or 0 where there is none."""
# The group, as in `replicator.binlog.parser.parser_state`; RESUMING: rows may have to be left out.
OPEN, BEGUN, WITHOUT_EFFECT, LOCATED, RESUMING = 7, 8, 9, 10, 11
TRANSACTION, ORDINAL, SKIP, ROUTED = 12, 13, 14, 15
# The segment: bytes of events, row events and their bytes.
BYTES, COUNT, KEPT, TIMESTAMP, MOVED = 16, 17, 18, 19, 20
TARGET_BYTES, MAX_BYTES, TARGET_EVENTS, MAX_EVENTS = 21, 22, 23, 24
# The first event of the newest group: where it stands in the buffer (-1: not there), in the file.
NEWEST, NEWEST_SIZE, NEWEST_OFFSET = 25, 26, 27
SEQUENCE = 28
"""The number of the next packet."""
# The statement: its number, and whether rows of it came that do not end it.
STATEMENT, UNENDED = 29, 30
# Whose GTIDs they are (0: none came yet), and whether the newest one's group is open.
FAMILY, PENDING = 31, 32
# The newest: domain, server and sequence, or both halves of the UUID, and the number.
GTID, GTID_SERVER, GTID_NUMBER = 33, 34, 35
# Those executed since, of this domain or UUID: none, or the last one's server and sequence; or the
# first number, and the end.
EXECUTED, EXECUTED_FIRST, EXECUTED_LAST = 36, 37, 38
INSIDE = 39
"""Whether the next events are those of a payload: not in packets, without checksums, and all end
where the payload does."""
# How many of the payloads that were expanded ahead have been gone into. Where the next event of the
# last one begins in what is expanded, and where they end:
ENTERED, INNER, INNER_LIMIT = 40, 41, 42
RUNS = 43
"""How many runs of GTIDs, each of one domain or UUID, have ended."""
NUMBERS = 44

MARIADB, MYSQL, TAGGED = 1, 2, 3
"""For FAMILY. Of GTIDs with tags the loop only ends the groups: handlers read them."""

UNUSUAL, DONE, ENDS = 0, 1, 2
"""What becomes of an event: it needs a handler; it is done with; and the segment ends with it."""


_ROWS_FLAGS = 6
_STATEMENT_END = 1


@inlined
def _find(known: Integers, table_id: int) -> Number:
    """The place of a table id in the hash table, or -1."""
    mask = known.shape[0] - 1
    place = table_id & mask
    while known[place, 0] >= 0:
        if known[place, 0] == table_id:
            return place
        place = (place + 1) & mask
    return np.int64(-1)


@inlined
def take_table_map(
    data: Bytes, state: Integers, begin: int, stop: int, known: Integers, bodies: Bytes
) -> Number:
    """Take a table map that is known, into the present statement."""
    body = begin + _HEADER + 6
    if stop < body or not state[OPEN] or not state[BEGUN]:
        return UNUSUAL
    place = _find(known, number_at(data, begin + _HEADER, 6))
    if place < 0 or known[place, 3] != stop - body:
        return UNUSUAL
    same = known[place, 2]
    for byte in range(stop - body):
        if data[body + byte] != bodies[same + byte]:
            return UNUSUAL
    known[place, 4] = state[STATEMENT]
    return DONE


@inlined
def take_rows(
    data: Bytes,
    state: Integers,
    begin: int,
    stop: int,
    size: int,
    known: Integers,
    left_out: Bytes,
    kept: Bytes,
    starts: Integers,
    heads: Integers,
) -> Number:
    """Take a row event whose table map came in the same statement."""
    if stop - begin < _HEADER + _ROWS_FLAGS + 2 or not state[OPEN] or not state[BEGUN]:
        return UNUSUAL
    place = _find(known, number_at(data, begin + _HEADER, 6))
    if place < 0 or known[place, 4] != state[STATEMENT]:
        return UNUSUAL
    ends = np.int64(data[begin + _HEADER + _ROWS_FLAGS]) & _STATEMENT_END
    state[STATEMENT] += ends
    state[UNENDED] = 1 - ends
    table = known[place, 1]
    ordinal = state[ORDINAL] + 1
    if table < 0 or ordinal <= state[SKIP] or left_out[table << 8 | np.int64(data[begin + 4])]:
        state[ORDINAL] = ordinal
        return DONE
    state[ORDINAL] = ordinal
    state[ROUTED] += 1
    state[MOVED] = 1
    at, count = state[KEPT], state[COUNT]
    for byte in range(stop - begin):
        kept[at + byte] = data[begin + byte]
    if state[INSIDE]:
        for byte in range(4):
            kept[at + 13 + byte] = state[OFFSET] >> 8 * byte & 255
    heads[0, count], heads[1, count], heads[2, count] = table, state[TRANSACTION], ordinal
    count += 1
    starts[count] = state[KEPT] = at + stop - begin
    state[COUNT] = count
    if state[BYTES] + size >= state[MAX_BYTES] or count >= state[MAX_EVENTS]:
        state[TIMESTAMP] = number_at(data, begin, 4)
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
"""What is done with an event, by its type."""


@inlined
def _begin_group(state: Integers, begin: int, size: int, offset: int) -> Number:
    place = offset - size
    if state[OPEN] or state[RESUMING] or state[INSIDE] or place < 0:
        return UNUSUAL
    state[LOCATED] = 1
    state[OPEN] = 1
    state[BEGUN] = 0
    state[WITHOUT_EFFECT] = 0
    state[BOUNDARY] = place
    state[TRANSACTION] = state[FILE_KEY] | place
    if place < _WRAP:
        state[NEWEST], state[NEWEST_SIZE], state[NEWEST_OFFSET] = begin, size, place
    state[ORDINAL] = state[SKIP] = state[ROUTED] = state[UNENDED] = 0
    state[STATEMENT] += 1
    return DONE


@inlined
def _end_group(data: Bytes, state: Integers, begin: int, size: int, offset: int) -> Number:
    if not state[OPEN] or not state[BEGUN] or state[UNENDED]:
        return UNUSUAL
    if state[PENDING]:
        if state[FAMILY] == MARIADB:
            state[EXECUTED_FIRST], state[EXECUTED_LAST] = state[GTID_SERVER], state[GTID_NUMBER]
        else:
            if not state[EXECUTED]:
                state[EXECUTED_FIRST] = state[GTID_NUMBER]
            state[EXECUTED_LAST] = state[GTID_NUMBER] + 1
        state[EXECUTED] = 1
        state[PENDING] = 0
    state[OPEN] = 0
    state[TIMESTAMP] = number_at(data, begin, 4)
    state[BOUNDARY] = offset
    state[MOVED] = 1
    full = state[BYTES] + size >= state[TARGET_BYTES] or state[COUNT] >= state[TARGET_EVENTS]
    return ENDS if full else DONE


@inlined
def _end_run(state: Integers, runs: Integers) -> None:
    """Note the GTIDs executed, as others follow."""
    if state[EXECUTED]:
        for part in range(2):
            runs[state[RUNS], part] = state[GTID + part]
            runs[state[RUNS], 2 + part] = state[EXECUTED_FIRST + part]
        state[RUNS] += 1
        state[EXECUTED] = 0


@inlined
def _mariadb_gtid(
    data: Bytes,
    state: Integers,
    runs: Integers,
    begin: int,
    stop: int,
    size: int,
    offset: int,
) -> Number:
    body = begin + _HEADER
    if stop - body < _MARIADB_GTID_BYTES:
        return UNUSUAL
    number, domain, flags = number_at(data, body, 8), number_at(data, body + 8, 4), data[body + 12]
    extra = body + _MARIADB_GTID_BYTES
    if flags & _GROUP_COMMIT_ID:
        extra += _GROUP_COMMIT_BYTES
    if flags & _STANDALONE_OR_XA or number < 0 or (extra < stop and data[extra]):
        return UNUSUAL
    if state[FAMILY] not in (0, MARIADB) or state[RUNS] == runs.shape[0]:
        return UNUSUAL
    if _begin_group(state, begin, size, offset) == UNUSUAL:
        return UNUSUAL
    if state[GTID] != domain:
        _end_run(state, runs)
    state[BEGUN] = 1
    state[FAMILY], state[PENDING] = MARIADB, 1
    state[GTID], state[GTID_SERVER], state[GTID_NUMBER] = (
        domain,
        number_at(data, begin + 5, 4),
        number,
    )
    return DONE


@inlined
def _mysql_gtid(
    data: Bytes,
    state: Integers,
    runs: Integers,
    begin: int,
    stop: int,
    size: int,
    offset: int,
) -> Number:
    body = begin + _HEADER
    if stop - body < _MYSQL_GTID_BYTES:
        return UNUSUAL
    first, second = number_at(data, body + 1, 8), number_at(data, body + 9, 8)
    number = number_at(data, body + 17, 8)
    if number < 1 or number > _MOST:
        return UNUSUAL
    if state[FAMILY] not in (0, MYSQL) or state[RUNS] == runs.shape[0]:
        return UNUSUAL
    if _begin_group(state, begin, size, offset) == UNUSUAL:
        return UNUSUAL
    if state[GTID] != first or state[GTID_SERVER] != second or state[GTID_NUMBER] + 1 != number:
        _end_run(state, runs)
    state[FAMILY], state[PENDING] = MYSQL, 1
    state[GTID], state[GTID_SERVER], state[GTID_NUMBER] = first, second, number
    return DONE


@inlined
def _is(data: Bytes, at: int, word: Bytes) -> Number:
    same = True
    for byte in range(len(word)):
        same &= data[at + byte] == word[byte]
    return same


@inlined
def _query(data: Bytes, state: Integers, begin: int, stop: int, size: int, offset: int) -> Number:
    """Only ``BEGIN`` and ``COMMIT``, which need nothing else of their events."""
    body = begin + _HEADER
    if stop - body < _SQL:
        return UNUSUAL
    sql = body + _SQL + np.int64(data[body + 8]) + number_at(data, body + 11, 2) + 1
    if stop - sql == len(_COMMIT) and _is(data, sql, _COMMIT):
        return _end_group(data, state, begin, size, offset)
    if stop - sql != len(_BEGIN) or not _is(data, sql, _BEGIN):
        return UNUSUAL
    if state[OPEN] and (state[BEGUN] or (state[PENDING] and state[FAMILY] == MARIADB)):
        return UNUSUAL
    if not state[OPEN] and _begin_group(state, begin, size, offset) == UNUSUAL:
        return UNUSUAL
    state[BEGUN] = 1
    return DONE


@inlined
def _bound(
    kind: int,
    data: Bytes,
    state: Integers,
    runs: Integers,
    begin: int,
    stop: int,
    size: int,
    offset: int,
) -> Number:
    """Take an event that begins or ends a group."""
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
def _enter(state: Integers, payloads: Integers) -> Number:
    """Go into a payload that was expanded ahead."""
    number = state[ENTERED]
    if state[INSIDE] or number >= payloads.shape[0] or payloads[number, 0] != state[PACKET]:
        return UNUSUAL
    state[INSIDE], state[ENTERED] = 1, number + 1
    state[INNER], state[INNER_LIMIT] = payloads[number, 1], payloads[number, 2]
    return DONE


@compiled(
    *(INTEGER, INPUT, INPUT, TABLE, INTEGERS, TABLE, TABLE, INPUT, INPUT, INPUT, CHECKSUMS),
    *(OUTPUT, INTEGERS, TABLE),
)
def walk(
    packets: Bytes,
    expanded: Bytes,
    payloads: Integers,
    state: Integers,
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
    """Follow the events of ``packets`` and of payloads; STOPPED or FULL.

    ``payloads``: of each payload that was expanded ahead, where its packet begins, and where its
    events begin and end in ``expanded``. ``runs``: room for runs of GTIDs that have ended: what is
    at GTID and GTID_SERVER, at EXECUTED_FIRST and EXECUTED_LAST, for each.
    ``known``, ``bodies`` and ``left_out`` are those of
    `replicator.binlog.segments.table_routes`, ``kept``, ``starts`` and ``heads`` of
    `replicator.binlog.segments.segment_builder`, with room for all that is in ``packets`` and
    ``expanded``; ``classes`` and ``tables`` are CLASSES and the tables of
    `replicator.kernels.crc32`.
    """
    while True:
        if state[INSIDE] and state[INNER] == state[INNER_LIMIT]:
            state[INSIDE] = 0
        before = offset = state[OFFSET]
        if state[INSIDE]:
            data = expanded
            begin = unframed(data, state[INNER], state[INNER_LIMIT])
        else:
            data = packets
            begin = framed(
                data, state[PACKET], state[LIMIT], state[SEQUENCE], state[CHECKSUM], tables
            )
        if begin == NO_EVENT:
            return STOPPED
        kind = classes[data[begin + 4]]
        if kind == 0:
            return STOPPED
        size = number_at(data, begin + 9, 4)
        inside, stop = state[INSIDE], begin + size
        if not inside:
            stop -= state[CHECKSUM]
            end = number_at(data, begin + 13, 4)
            if not joins(before, size, end):
                return STOPPED
            offset = end_offset(before, size, end)
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
        state[INNER if inside else PACKET] = begin + size
        state[SEQUENCE] = state[SEQUENCE] + 1 - inside & 0xFF
        state[BEFORE], state[OFFSET] = before, offset
        state[BYTES] += size
        if outcome == ENDS:
            return FULL
