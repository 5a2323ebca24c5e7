"""Compressed transactions that are expanded whole, ahead of the loop that goes through them.

With small transactions a payload is as frequent as a transaction, and the loop should not end for
each. What is large or odd in any way is left to `replicator.binlog.events.transaction_payload`.

Reading by the compiled loop of `replicator.binlog.parser.fast_path_kernel`: its numbers and the
state.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import zstandard

from replicator.binlog.connection.framing import FULL_PACKET, PACKET_HEADER, PacketBuffer
from replicator.binlog.errors import BinlogError
from replicator.binlog.events.event_header import HEADER_SIZE, EventType
from replicator.binlog.events.transaction_payload import STEP, ZSTD, Payload, read_head
from replicator.binlog.parser import fast_path_kernel as kernel
from replicator.binlog.parser.fast_path_kernel import CLASSES, FULL
from replicator.binlog.parser.fast_path_kernel import walk as follow_events
from replicator.binlog.parser.parser_state import ReadingState
from replicator.binlog.positions.gtid import MariaDBGtid, MySQLGtid
from replicator.binlog.positions.position import BinlogPosition
from replicator.kernels.compiled import Bytes, Integers
from replicator.kernels.crc32 import TABLES

_MOST = 1 << 10
_BETWEEN = 2
"""Packets that stand between two payloads at most: GTIDs, and what is made up."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """The events of payloads. ``payloads`` has a row for each: where its packet begins in the
    buffer, and where its events begin and end in ``data``."""

    data: Bytes
    payloads: Integers


NOT_EXPANDED = Expanded(np.empty(0, np.uint8), np.empty((0, 3), np.int64))


class SmallPayloads:
    """Expands as many as the loop has lately gone into at once, and no more than a step in all."""

    def __init__(self) -> None:
        self._expander = zstandard.ZstdDecompressor()
        self._most = 1

    def entered(self, count: int) -> None:
        """The loop stopped behind so many; what was expanded beyond is expanded once more."""
        self._most = min(max(1, 2 * count), _MOST)

    def expand(self, packets: PacketBuffer, cut: int | None) -> Expanded:
        """Those that come next, from the very next packet on; ``cut`` ends their checksums off.

        Checksums are not looked at.
        """
        data, at = packets.data.data, packets.at
        pieces: list[bytes] = []
        rows: list[tuple[int, int, int]] = []
        size = between = 0
        while len(rows) < self._most and packets.end - at > PACKET_HEADER + HEADER_SIZE:
            begin = at + PACKET_HEADER + 1
            end = begin - 1 + int.from_bytes(data[at : at + 3], "little")
            if end > packets.end or end - begin < HEADER_SIZE or end - begin + 1 == FULL_PACKET:
                break
            if data[begin + 4] == EventType.TRANSACTION_PAYLOAD:
                content = self._content(bytes(data[begin + HEADER_SIZE : end + (cut or 0)]), size)
                if content is None:
                    break
                rows.append((at, size, size + len(content)))
                pieces.append(content)
                size += len(content)
                between = 0
            elif not rows or between == _BETWEEN:
                break
            else:
                between += 1
            at = end
        if not rows:
            return NOT_EXPANDED
        return Expanded(np.frombuffer(b"".join(pieces), np.uint8), np.array(rows, np.int64))

    def _content(self, body: bytes, others: int) -> bytes | None:
        """What a payload comes to beside so many bytes; None where it is not a small, sound one."""
        try:
            head = read_head(body)
            expanded = head.expanded
            if head.compression != ZSTD or not expanded or expanded + others > STEP:
                return None
            frame = body[head.size :]
            if zstandard.frame_content_size(frame) not in (-1, expanded):
                return None
            content = self._expander.decompress(
                frame, max_output_size=expanded, allow_extra_data=False
            )
        except (BinlogError, zstandard.ZstdError):
            # Its handler says what is wrong.
            return None
        return content if len(content) == expanded else None


_UUID = struct.Struct("<qq")
_SMALLEST_PACKET = 24
"""Bytes of a packet's header, its first byte, and the header of an event."""
_SMALLEST_ROWS = 25
"""Bytes of a row event that says no more than its table."""
_MOST_RUNS = 1 << 12
"""Runs of GTIDs that can end before the loop does."""
_NONE = -1
_NO_PACKETS = PacketBuffer()


class FastPath:
    """Takes ordinary events into the state, without a Python object for each."""

    def __init__(self, state: ReadingState) -> None:
        self._state = state
        self._numbers: Integers = np.zeros(kernel.NUMBERS, np.int64)
        self._runs: Integers = np.empty((_MOST_RUNS, 4), np.int64)
        self._payloads = SmallPayloads()

    def follow(self, packets: PacketBuffer) -> bool:
        """Take events as long as they are ordinary; whether the segment is to end.

        Where it is not, the next event needs `SlowPath`, or is not there yet. It may be one of
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
        entered, at, end = self._numbers[kernel.ENTERED : kernel.RUNS].tolist()
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
        payload.at = int(self._numbers[kernel.INNER])
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
            self._numbers[kernel.ENTERED : kernel.RUNS] = 0, at, end
            return False
        self._numbers[kernel.INSIDE :] = at < end, 0, at, end, 0
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
        if self._numbers[kernel.PACKET] > packets.at or self._numbers[kernel.INNER] > at:
            self._store(packets)
        return result == FULL

    def _load(self, packets: PacketBuffer) -> None:
        state, numbers = self._state, self._numbers
        position, segment, limits = state.files.position, state.segment, state.segment.limits
        numbers[kernel.PACKET] = packets.at
        numbers[kernel.LIMIT] = packets.end
        numbers[kernel.BEFORE : kernel.CHECKSUM + 1] = (
            position.before,
            position.offset,
            _NONE,
            position.file_key,
            -(state.files.cut or 0),
        )
        numbers[kernel.OPEN : kernel.ROUTED + 1] = (
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
        numbers[kernel.BYTES : kernel.NEWEST + 1] = (
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
        numbers[kernel.SEQUENCE : kernel.FAMILY] = (
            packets.sequence,
            state.tables.statement,
            state.unended,
        )
        numbers[kernel.FAMILY :] = 0
        gtid = state.gtid
        if isinstance(gtid, MariaDBGtid):
            numbers[kernel.FAMILY : kernel.EXECUTED] = (
                *(kernel.MARIADB, 1, gtid.domain, gtid.server, gtid.sequence),
            )
        elif gtid is not None and gtid.tag:
            numbers[kernel.FAMILY : kernel.GTID] = kernel.TAGGED, 1
        elif gtid is not None:
            numbers[kernel.FAMILY : kernel.EXECUTED] = (
                *(kernel.MYSQL, 1, *_UUID.unpack(gtid.source), gtid.number),
            )

    def _store(self, packets: PacketBuffer) -> None:
        state, numbers = self._state, self._numbers.tolist()
        files, segment = state.files, state.segment
        packets.at, packets.sequence = numbers[kernel.PACKET], numbers[kernel.SEQUENCE]
        state.tables.statement = numbers[kernel.STATEMENT]
        state.unended = bool(numbers[kernel.UNENDED])
        files.position.before, files.position.offset = (
            numbers[kernel.BEFORE],
            numbers[kernel.OFFSET],
        )
        if numbers[kernel.BOUNDARY] != _NONE:
            files.position.boundary = BinlogPosition(files.position.file, numbers[kernel.BOUNDARY])
        if numbers[kernel.NEWEST] != _NONE:
            begin, end = (
                numbers[kernel.NEWEST],
                numbers[kernel.NEWEST] + numbers[kernel.NEWEST_SIZE],
            )
            event = packets.data[begin:end].tobytes()
            files.begins_group(numbers[kernel.NEWEST_OFFSET], event)
        state.open, state.begun = bool(numbers[kernel.OPEN]), bool(numbers[kernel.BEGUN])
        state.without_effect = bool(numbers[kernel.WITHOUT_EFFECT])
        state.located = bool(numbers[kernel.LOCATED])
        state.transaction, state.ordinal = numbers[kernel.TRANSACTION], numbers[kernel.ORDINAL]
        state.skip, state.routed = numbers[kernel.SKIP], numbers[kernel.ROUTED]
        segment.bytes, segment.timestamp = numbers[kernel.BYTES], numbers[kernel.TIMESTAMP]
        segment.moved = bool(numbers[kernel.MOVED])
        segment.rows.count, segment.rows.bytes = numbers[kernel.COUNT], numbers[kernel.KEPT]
        self._store_gtids(numbers)

    def _store_gtids(self, numbers: list[int]) -> None:
        state = self._state
        family, pending, *gtid = numbers[kernel.FAMILY : kernel.EXECUTED]
        if family == kernel.TAGGED:
            # The one that was there before: no other came behind it.
            if numbers[kernel.EXECUTED]:
                state.files.executed(state.gtid)
            state.gtid = state.gtid if pending else None
            return
        runs = self._runs[: numbers[kernel.RUNS]].tolist()
        if numbers[kernel.EXECUTED]:
            runs.append([*gtid[:2], *numbers[kernel.EXECUTED_FIRST : kernel.INSIDE]])
        state.gtid = None
        if family == kernel.MARIADB:
            for domain, _, server, sequence in runs:
                state.files.executed(MariaDBGtid(domain, server, sequence))
            if pending:
                state.gtid = MariaDBGtid(*gtid)
        elif family == kernel.MYSQL:
            for *source, first, end in runs:
                state.files.executed_run(_UUID.pack(*source), first, end)
            if pending:
                state.gtid = MySQLGtid(_UUID.pack(*gtid[:2]), gtid[2])
