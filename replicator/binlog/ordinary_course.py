"""Reading by the compiled loop of `replicator.binlog.event_walk`: its numbers and the state."""

from __future__ import annotations

import struct

import numpy as np

from replicator.binlog import walk_numbers as walk
from replicator.binlog.event_walk import CLASSES, FULL
from replicator.binlog.event_walk import walk as follow_events
from replicator.binlog.framing import PacketBuffer
from replicator.binlog.gtid import MariaDBGtid, MySQLGtid
from replicator.binlog.payload import Payload
from replicator.binlog.position import BinlogPosition
from replicator.binlog.reading_state import ReadingState
from replicator.binlog.small_payloads import NOT_EXPANDED, Expanded, SmallPayloads
from replicator.compiled import Integers
from replicator.crc32 import TABLES

_UUID = struct.Struct("<qq")
_SMALLEST_PACKET = 24
"""Bytes of a packet's header, its first byte, and the header of an event."""
_SMALLEST_ROWS = 25
"""Bytes of a row event that says no more than its table."""
_MOST_RUNS = 1 << 12
"""Runs of GTIDs that can end before the loop does."""
_NONE = -1
_NO_PACKETS = PacketBuffer()


class OrdinaryCourse:
    """Takes ordinary events into the state, without a Python object for each."""

    def __init__(self, state: ReadingState) -> None:
        self._state = state
        self._numbers: Integers = np.zeros(walk.NUMBERS, np.int64)
        self._runs: Integers = np.empty((_MOST_RUNS, 4), np.int64)
        self._payloads = SmallPayloads()

    def follow(self, packets: PacketBuffer) -> bool:
        """Take events as long as they are ordinary; whether the segment is to end.

        Where it is not, the next event needs `EventHandlers`, or is not there yet. It may be one of
        a payload that the state has then. Where one of the state's parts can't
        be told to the loop (`ReadingState.needs_handlers`), handlers take each event.
        """
        if packets.continued or packets.end - packets.at < _SMALLEST_PACKET:
            return False
        if self._state.needs_handlers:
            return False
        if self._walk(packets, NOT_EXPANDED):
            return True
        ahead = self._payloads.expand(packets, self._state.files.cut)
        if not len(ahead.payloads):
            return False
        full = self._walk(packets, ahead)
        entered, at, end = self._numbers[walk.ENTERED : walk.RUNS].tolist()
        if at < end:
            size = end - int(ahead.payloads[entered - 1, 1])
            self._state.payloads.append(Payload.of_rest(ahead.data[at:end], size))
        if not full:
            self._payloads.entered(entered)
        return full

    def follow_inside(self, payload: Payload) -> bool:
        """The same with what is expanded of a payload."""
        if self._state.needs_handlers:
            return False
        expanded = Expanded(payload.data, NOT_EXPANDED.payloads)
        full = self._walk(_NO_PACKETS, expanded, payload.at, payload.end)
        payload.at = int(self._numbers[walk.INNER])
        return full

    def _walk(self, packets: PacketBuffer, expanded: Expanded, at: int = 0, end: int = 0) -> bool:
        """Begin in ``expanded.data[at:end]``, which is the rest of a payload, if anything."""
        tables, rows = self._state.tables.known, self._state.segment.rows
        size = packets.end - packets.at + len(expanded.data)
        rows.reserve(size, size // _SMALLEST_ROWS + 1)
        try:
            self._load(packets)
        except OverflowError:
            # A number of 64 bits, which a handler can bear.
            self._numbers[walk.ENTERED : walk.RUNS] = 0, at, end
            return False
        self._numbers[walk.INSIDE :] = at < end, 0, at, end, 0
        result = follow_events(
            packets.data,
            expanded.data,
            expanded.payloads,
            self._numbers,
            self._runs,
            tables.ids,
            tables.bodies,
            tables.left_out,
            CLASSES,
            TABLES,
            rows.data,
            rows.start,
            rows.heads,
        )
        if self._numbers[walk.PACKET] > packets.at or self._numbers[walk.INNER] > at:
            self._store(packets)
        return result == FULL

    def _load(self, packets: PacketBuffer) -> None:
        state, numbers = self._state, self._numbers
        position, segment, limits = state.files.position, state.segment, state.segment.limits
        numbers[walk.PACKET] = packets.at
        numbers[walk.LIMIT] = packets.end
        numbers[walk.BEFORE : walk.CHECKSUM + 1] = (
            position.before,
            position.offset,
            _NONE,
            position.file_key,
            -(state.files.cut or 0),
        )
        numbers[walk.OPEN : walk.ROUTED + 1] = (
            state.open,
            state.begun,
            state.without_effect,
            state.located,
            state.resume is not None,
            state.transaction,
            state.ordinal,
            state.skip,
            state.routed,
        )
        numbers[walk.BYTES : walk.NEWEST + 1] = (
            segment.bytes,
            segment.rows.count,
            segment.rows.bytes,
            segment.timestamp,
            segment.moved,
            limits.target_bytes,
            limits.max_bytes,
            limits.target_events,
            limits.max_events,
            _NONE,
        )
        numbers[walk.SEQUENCE : walk.FAMILY] = (
            packets.sequence,
            state.tables.statement,
            state.unended,
        )
        numbers[walk.FAMILY :] = 0
        gtid = state.gtid
        if isinstance(gtid, MariaDBGtid):
            numbers[walk.FAMILY : walk.EXECUTED] = (
                *(walk.MARIADB, 1, gtid.domain, gtid.server, gtid.sequence),
            )
        elif gtid is not None and gtid.tag:
            numbers[walk.FAMILY : walk.GTID] = walk.TAGGED, 1
        elif gtid is not None:
            numbers[walk.FAMILY : walk.EXECUTED] = (
                *(walk.MYSQL, 1, *_UUID.unpack(gtid.source), gtid.number),
            )

    def _store(self, packets: PacketBuffer) -> None:
        state, numbers = self._state, self._numbers.tolist()
        files, segment = state.files, state.segment
        packets.at, packets.sequence = numbers[walk.PACKET], numbers[walk.SEQUENCE]
        state.tables.statement = numbers[walk.STATEMENT]
        state.unended = bool(numbers[walk.UNENDED])
        files.position.before, files.position.offset = numbers[walk.BEFORE], numbers[walk.OFFSET]
        if numbers[walk.BOUNDARY] != _NONE:
            files.position.boundary = BinlogPosition(files.position.file, numbers[walk.BOUNDARY])
        if numbers[walk.NEWEST] != _NONE:
            begin, end = numbers[walk.NEWEST], numbers[walk.NEWEST] + numbers[walk.NEWEST_SIZE]
            event = packets.data[begin:end].tobytes()
            files.begins_group(numbers[walk.NEWEST_OFFSET], event)
        state.open, state.begun = bool(numbers[walk.OPEN]), bool(numbers[walk.BEGUN])
        state.without_effect = bool(numbers[walk.WITHOUT_EFFECT])
        state.located = bool(numbers[walk.LOCATED])
        state.transaction, state.ordinal = numbers[walk.TRANSACTION], numbers[walk.ORDINAL]
        state.skip, state.routed = numbers[walk.SKIP], numbers[walk.ROUTED]
        segment.bytes, segment.timestamp = numbers[walk.BYTES], numbers[walk.TIMESTAMP]
        segment.moved = bool(numbers[walk.MOVED])
        segment.rows.count, segment.rows.bytes = numbers[walk.COUNT], numbers[walk.KEPT]
        self._store_gtids(numbers)

    def _store_gtids(self, numbers: list[int]) -> None:
        state = self._state
        family, pending, *gtid = numbers[walk.FAMILY : walk.EXECUTED]
        if family == walk.TAGGED:
            # The one that was there before: no other came behind it.
            if numbers[walk.EXECUTED]:
                state.files.executed(state.gtid)
            state.gtid = state.gtid if pending else None
            return
        runs = self._runs[: numbers[walk.RUNS]].tolist()
        if numbers[walk.EXECUTED]:
            runs.append([*gtid[:2], *numbers[walk.EXECUTED_FIRST : walk.INSIDE]])
        state.gtid = None
        if family == walk.MARIADB:
            for domain, _, server, sequence in runs:
                state.files.executed(MariaDBGtid(domain, server, sequence))
            if pending:
                state.gtid = MariaDBGtid(*gtid)
        elif family == walk.MYSQL:
            for *source, first, end in runs:
                state.files.executed_run(_UUID.pack(*source), first, end)
            if pending:
                state.gtid = MySQLGtid(_UUID.pack(*gtid[:2]), gtid[2])
