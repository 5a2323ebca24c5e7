"""TRANSACTION_PAYLOAD_EVENT: a whole transaction compressed by the source (MySQL 8.0.20+).

Source of the format: MySQL's comments on Transaction_payload_event
(``binlog_transaction_compression``). The body is a list of fields (type, length and value, each a
length-encoded integer) that ends with type 0. The payload follows: events without checksums, one
after the other.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import BinaryIO
from zlib import crc32

import numpy as np
import zstandard

from replicator.binlog.errors import BinlogError, UnsupportedEventError
from replicator.binlog.events.event_header import HEADER_SIZE, U32
from replicator.kernels.compiled import Bytes
from replicator.memory import largest_event, too_large

_END_OF_FIELDS = 0
_COMPRESSION_FIELD = 2
_EXPANDED_SIZE_FIELD = 3
ZSTD = 0
_NOT_COMPRESSED = 255
LARGEST_WINDOW = 1 << 27
"""Bytes of zstd's window at its highest level without `--long`."""
STEP = 1 << 20
"""Bytes expanded at a time, so that a huge transaction is never completely in memory."""


class Payload:
    """The events inside a payload event, expanded step by step.

    ``data[at:end]`` is expanded and not returned yet; an event begins at ``at``, with its header.
    The events have no checksum.
    """

    def __init__(self, source: BinaryIO, announced: int | None) -> None:
        """``announced``: the bytes of all events, if known."""
        self._source = source
        self._announced = announced
        self._expanded = 0
        self.data: Bytes = np.empty(0, np.uint8)
        self.at = self.end = 0

    @classmethod
    def of_event(cls, body: bytes) -> Payload:
        """Open an event without its 19-byte header and its checksum.

        Raises UnsupportedEventError for an unknown compression, BinlogError for a damaged head.
        """
        head = read_head(body)
        return cls(_opened(head.compression, body[head.size :]), head.expanded)

    @classmethod
    def of_rest(cls, events: Bytes, size: int) -> Payload:
        """Continue a completely expanded payload, of ``size`` bytes, with its last events."""
        payload = cls(io.BytesIO(), size)
        payload._expanded = size
        payload.data, payload.end = events, len(events)
        return payload

    @property
    def whole(self) -> bool:
        """Whether the next event is completely expanded."""
        rest = self.end - self.at
        return rest >= HEADER_SIZE and self._size() <= rest

    def fill(self) -> bool:
        """Expand until the next event is complete; return False if there is none.

        Raises BinlogError if the content is damaged, or if an event is too large.
        """
        while not self.whole:
            if self.end - self.at >= HEADER_SIZE and self._size() > largest_event():
                what = "An event of a compressed transaction"
                raise BinlogError(f"{too_large(what, self._size())}.")
            if not self._expand():
                return False
        return True

    def next_event(self) -> bytes:
        """Return the next event, which is complete. Raises BinlogError if it can't be an event."""
        size = self._size()
        if size < HEADER_SIZE:
            raise BinlogError(f"A compressed transaction holds an event of {size} bytes.")
        self.at += size
        return bytes(self.data.data[self.at - size : self.at])

    def _size(self) -> int:
        return int.from_bytes(self.data.data[self.at + 9 : self.at + 13], "little")

    def _expand(self) -> bool:
        """Expand one step; return False at the end."""
        rest = self.data[self.at : self.end]
        left = STEP if self._announced is None else self._announced - self._expanded
        # One byte more, to detect content that is larger than announced.
        room = max(min(STEP, left) + 1, 2 * len(rest))
        if len(rest) >= HEADER_SIZE:
            room = min(room, self._size() + STEP)
        data = np.empty(room, np.uint8)
        data[: len(rest)] = rest
        try:
            count = self._source.readinto(data.data[len(rest) :])  # type: ignore[attr-defined]
        except zstandard.ZstdError as error:
            raise BinlogError(f"A compressed transaction can't be expanded: {error}.") from error
        self.data, self.at, self.end = data, 0, len(rest) + count
        self._expanded += count
        if self._announced is not None and self._expanded > self._announced:
            raise BinlogError(
                f"A compressed transaction expands to {self._expanded} bytes or more, and says that"
                f" it has {self._announced}."
            )
        if not count and (len(rest) or self._announced not in (None, self._expanded)):
            raise BinlogError(
                f"A compressed transaction is incomplete: {self._expanded} bytes of "
                f"{self._announced}, the last {len(rest)} of them an event without its end."
            )
        return bool(count)


def as_outside(event: bytes, end: int, *, checksums: bool) -> bytes:
    """Return an event of a payload in the form of an event outside of a payload.

    Its end position becomes ``end``, the payload's, since it has no other position in the file.
    With ``checksums`` it gets a checksum.
    """
    whole = event[:13] + U32.pack(end & 0xFFFFFFFF) + event[17:]
    return whole + U32.pack(crc32(whole)) if checksums else whole


def as_inside(event: bytes, cut: int | None) -> bytes:
    """Return an event of the file in the form of an event of a payload.

    ``cut``: end of the event before its checksum.
    """
    whole = event[:cut]
    return whole[:9] + U32.pack(len(whole)) + whole[13:]


def _opened(compression: int, data: bytes) -> BinaryIO:
    """Return a reader of the content of all zstd frames. Raises UnsupportedEventError."""
    if compression == ZSTD:
        expander = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
        return expander.stream_reader(data, read_across_frames=True)
    if compression == _NOT_COMPRESSED:
        return io.BytesIO(data)
    raise UnsupportedEventError(
        f"A transaction is compressed with algorithm {compression}, which this program does not"
        " know. Set binlog_transaction_compression=OFF on the source."
    )


@dataclass(frozen=True, slots=True)
class PayloadHead:
    """The ``size`` bytes before the content; ``expanded``: bytes of the expanded events."""

    compression: int
    expanded: int | None
    size: int


def read_head(body: bytes) -> PayloadHead:
    """Read the fields before the content. Raises BinlogError if they do not end."""
    fields: dict[int, int] = {}
    at = 0
    try:
        while True:
            kind, at = _read_integer(body, at)
            if kind == _END_OF_FIELDS:
                break
            length, at = _read_integer(body, at)
            fields[kind] = _read_integer(body, at)[0]
            at += length
    except IndexError as error:
        raise BinlogError("A compressed transaction ends inside its own header.") from error
    return PayloadHead(fields.get(_COMPRESSION_FIELD, ZSTD), fields.get(_EXPANDED_SIZE_FIELD), at)


def _read_integer(body: bytes, at: int) -> tuple[int, int]:
    """Return a length-encoded integer and its end (MySQL internals manual, "Integer")."""
    first = body[at]
    if first < 0xFB:
        return first, at + 1
    width = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first] if first in (0xFC, 0xFD, 0xFE) else 0
    if not width or at + 1 + width > len(body):
        raise IndexError(at)
    return int.from_bytes(body[at + 1 : at + 1 + width], "little"), at + 1 + width
