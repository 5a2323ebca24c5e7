"""Compressed transactions that are expanded whole, ahead of the loop that goes through them.

With small transactions a payload is as frequent as a transaction, and the loop should not end for
each. What is large or odd in any way is left to `replicator.binlog.payload`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import zstandard

from replicator.binlog.errors import BinlogError
from replicator.binlog.events import HEADER_SIZE, EventType
from replicator.binlog.framing import FULL_PACKET, PACKET_HEADER, PacketBuffer
from replicator.binlog.payload import STEP, ZSTD, read_head
from replicator.compiled import Bytes, Integers

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
