"""Reads events with the compiled loop of `replicator.binlog.parser.fast_path_kernel`.

Small compressed transactions are completely expanded before the loop: if transactions are small,
payloads are as frequent as transactions, and the loop should not end for each of them. Large or
unusual payloads are left to `replicator.binlog.events.transaction_payload`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import zstandard

from replicator.binlog.connection.framing import FULL_PACKET, PACKET_HEADER, PacketBuffer
from replicator.binlog.errors import BinlogError
from replicator.binlog.events.event_header import HEADER_SIZE, EventType
from replicator.binlog.events.transaction_payload import STEP, ZSTD, Payload, read_head
from replicator.binlog.parser.fast_path_kernel import CLASSES, FULL, LoopCursor
from replicator.binlog.parser.fast_path_kernel import walk as follow_events
from replicator.binlog.parser.parser_state import ReadingState
from replicator.kernels.compiled import Bytes, Integers, record_of
from replicator.kernels.crc32 import TABLES

_MOST = 1 << 10
_BETWEEN = 2
"""Maximum number of packets between two payloads: GTIDs, and artificial events."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """The events of payloads.

    ``payloads`` has a row for each: the start of its packet in the buffer, and the start and end of
    its events in ``data``.
    """

    data: Bytes
    payloads: Integers


NOT_EXPANDED = Expanded(np.empty(0, np.uint8), np.empty((0, 3), np.int64))


class SmallPayloads:
    """Expands payloads: up to twice as many as the loop read last time, at most `STEP` bytes."""

    def __init__(self) -> None:
        self._expander = zstandard.ZstdDecompressor()
        self._most = 1

    def entered(self, count: int) -> None:
        """Record how many payloads the loop read; the rest will be expanded a second time."""
        self._most = min(max(1, 2 * count), _MOST)

    def expand(self, packets: PacketBuffer, cut: int | None) -> Expanded:
        """Expand the payloads from the next packet on.

        ``cut``: the end of a slice that omits an event's checksum; None without checksums. Does not
        verify the checksums.
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
        """Return a payload's content.

        Return None unless it is valid, and small together with the ``others``.
        """
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
            # Its handler reports the error.
            return None
        return content if len(content) == expanded else None


_SMALLEST_PACKET = 24
"""Bytes of a packet's header, its first byte, and the header of an event."""
_SMALLEST_ROWS = 25
"""Bytes of a row event that has only its table."""
_MOST_RUNS = 1 << 12
"""Maximum number of runs of GTIDs that can end before the loop ends."""


class FastPath:
    """Reads ordinary events into the state, without a Python object for each."""

    def __init__(self, state: ReadingState) -> None:
        self._state = state
        self._cursor = LoopCursor()
        # The loop reads and changes the numbers of these objects directly.
        self._position, self._group = record_of(state.files.position), record_of(state)
        self._segment, self._rows = record_of(state.segment), record_of(state.segment.rows)
        self._place = record_of(self._cursor)
        self._none = self._packets = PacketBuffer()
        self._packet_record = record_of(self._packets)
        self._runs: Integers = np.empty((_MOST_RUNS, 4), np.int64)
        self._payloads = SmallPayloads()

    def follow(self, packets: PacketBuffer) -> bool:
        """Read events while they are ordinary; return whether the segment should end.

        If not, the next event needs `SlowPath`, or has not arrived. The next event may be in a
        payload that was added to the state. If the loop can't represent a part of the state
        (`ReadingState.needs_handlers`), handlers read each event.
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
        cursor = self._cursor
        if cursor.inner < cursor.inner_limit:
            size = cursor.inner_limit - int(ahead.payloads[cursor.entered - 1, 1])
            rest = ahead.data[cursor.inner : cursor.inner_limit]
            self._state.payloads.append(Payload.of_rest(rest, size))
        if not full:
            self._payloads.entered(cursor.entered)
        return full

    def follow_inside(self, payload: Payload) -> bool:
        """Do the same with the expanded part of a payload."""
        if self._state.needs_handlers:
            return False
        expanded = Expanded(payload.data, NOT_EXPANDED.payloads)
        full = self._walk(self._none, expanded, payload.at, payload.end)
        payload.at = self._cursor.inner
        return full

    def _walk(self, packets: PacketBuffer, expanded: Expanded, at: int = 0, end: int = 0) -> bool:
        """Run the loop; it begins in ``expanded.data[at:end]``, the rest of a payload, if any."""
        state, cursor = self._state, self._cursor
        tables, rows = state.tables.known, state.segment.rows
        if packets is not self._packets:
            self._packets, self._packet_record = packets, record_of(packets)
        size = packets.end - packets.at + len(expanded.data)
        rows.reserve(size, size // _SMALLEST_ROWS + 1)
        cursor.begin(-(state.files.cut or 0), at, end)
        result = follow_events(
            packets.data,
            expanded.data,
            expanded.payloads,
            self._packet_record,
            self._position,
            self._group,
            self._segment,
            self._rows,
            self._place,
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
        if cursor.newest >= 0:
            event = packets.data[cursor.newest : cursor.newest + cursor.newest_size].tobytes()
            state.files.begins_group(cursor.newest_offset, event)
        if state.executed or state.ended_runs:
            state.record_executed(self._runs)
        elif not state.pending:
            state.family = 0
        return result == FULL
