"""TRANSACTION_PAYLOAD_EVENT: a whole transaction compressed by the source (MySQL 8.0.20+).

Source of the format: MySQL's comments on Transaction_payload_event
(``binlog_transaction_compression``). The body is a list of fields, each type, length and value as
length-encoded integers, ended by type 0; the payload follows: events without checksums, one
after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

import zstandard

from replicator.binlog.errors import BinlogError, UnsupportedEventError
from replicator.binlog.events import HEADER_SIZE, U32

_END_OF_FIELDS = 0
_COMPRESSION_FIELD = 2
_EXPANDED_SIZE_FIELD = 3
_ZSTD = 0
_NOT_COMPRESSED = 255
_STEP = 1 << 20
"""Compressed bytes expanded at a time, so that a huge transaction is never in memory whole."""


def expand_payload(body: bytes) -> Iterator[bytes]:
    """The events inside a payload event, each from its header on; they have no checksum.

    ``body`` is the event without its 19-byte header and its checksum. Raises
    UnsupportedEventError for an unknown compression, BinlogError when the content is damaged.
    """
    fields, at = _read_fields(body)
    compression = fields.get(_COMPRESSION_FIELD, _ZSTD)
    if compression == _ZSTD:
        pieces = _decompress(body[at:])
    elif compression == _NOT_COMPRESSED:
        pieces = iter((body[at:],))
    else:
        raise UnsupportedEventError(
            f"A transaction is compressed with algorithm {compression}, which is not known here. "
            "Set binlog_transaction_compression=OFF on the source."
        )
    return _split(pieces, fields.get(_EXPANDED_SIZE_FIELD))


def as_outside(events: Iterator[bytes], end: int, *, checksums: bool) -> Iterator[bytes]:
    """The events of a payload as if they stood outside of one.

    Their end position becomes ``end``, that of the payload: they stand nowhere else in the file.
    With ``checksums`` each gets one.
    """
    position = U32.pack(end & 0xFFFFFFFF)
    for event in events:
        whole = event[:13] + position + event[17:]
        yield whole + U32.pack(crc32(whole)) if checksums else whole


def _read_fields(body: bytes) -> tuple[dict[int, int], int]:
    """The fields by type, and where the payload begins."""
    fields: dict[int, int] = {}
    at = 0
    try:
        while True:
            kind, at = _read_integer(body, at)
            if kind == _END_OF_FIELDS:
                return fields, at
            length, at = _read_integer(body, at)
            fields[kind] = _read_integer(body, at)[0]
            at += length
    except IndexError as error:
        raise BinlogError("A compressed transaction ends inside its own header.") from error


def _read_integer(body: bytes, at: int) -> tuple[int, int]:
    """A length-encoded integer and the offset after it (MySQL internals manual, "Integer")."""
    first = body[at]
    if first < 0xFB:
        return first, at + 1
    width = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first] if first in (0xFC, 0xFD, 0xFE) else 0
    if not width or at + 1 + width > len(body):
        raise IndexError(at)
    return int.from_bytes(body[at + 1 : at + 1 + width], "little"), at + 1 + width


def _decompress(data: bytes) -> Iterator[bytes]:
    """The content of all zstd frames in ``data``, in pieces."""
    expander = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
    try:
        for at in range(0, len(data), _STEP):
            yield expander.decompress(data[at : at + _STEP])
    except zstandard.ZstdError as error:
        raise BinlogError(f"A compressed transaction can't be expanded: {error}.") from error


def _split(pieces: Iterator[bytes], announced: int | None) -> Iterator[bytes]:
    """Cut running bytes into events by the size in each header."""
    rest = b""
    total = 0
    for piece in pieces:
        total += len(piece)
        data = rest + piece
        at = 0
        while len(data) - at >= HEADER_SIZE:
            size = int.from_bytes(data[at + 9 : at + 13], "little")
            if size < HEADER_SIZE:
                raise BinlogError(f"A compressed transaction holds an event of {size} bytes.")
            if at + size > len(data):
                break
            yield data[at : at + size]
            at += size
        rest = data[at:]
    if rest or announced not in (None, total):
        raise BinlogError(
            f"A compressed transaction is incomplete: {total} bytes of {announced}, the last "
            f"{len(rest)} of them an event without its end."
        )
