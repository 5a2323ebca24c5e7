"""Table maps and row events in the compiled loop (`replicator.binlog.parser.fast_path_kernel`).

Source of the formats: MySQL internals manual, "TABLE_MAP_EVENT" and "ROWS_EVENT".
"""

from __future__ import annotations

import numpy as np

from replicator.binlog.events.event_bounds import number_at
from replicator.binlog.parser.kernel_numbers import (
    BEGUN,
    BYTES,
    COUNT,
    DONE,
    ENDS,
    INSIDE,
    KEPT,
    MAX_BYTES,
    MAX_EVENTS,
    MOVED,
    OFFSET,
    OPEN,
    ORDINAL,
    ROUTED,
    SKIP,
    STATEMENT,
    TIMESTAMP,
    TRANSACTION,
    UNENDED,
    UNUSUAL,
)
from replicator.kernels.compiled import Bytes, Integers, Number, inlined

_HEADER = 19
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
