"""MariaDB's zlib compression of row events (``log_bin_compress``) and of COMPRESSED columns.

Source of the formats: MariaDB KB, "Compressing Events to Reduce Size of the Binary Log" and
"Storage-Engine Independent Column Compression", and what a real server writes.
"""

from __future__ import annotations

import zlib

from replicator.binlog.errors import BinlogError
from replicator.memory import largest_event, too_large


def expand_rows(packed: bytes) -> bytes:
    """Return the rows of a compressed row event; ``packed`` follows the columns' bitmaps.

    In the first byte, bit 7 is set, bits 4 to 6 are the algorithm (0: zlib), and bits 0 to 2 are
    the width of the expanded length. The length follows, big-endian; then zlib data. Raises
    BinlogError.
    """
    if not packed:
        raise BinlogError("a compressed row event without data")
    head = packed[0]
    if head & 0xF0 != 0x80:
        raise BinlogError(f"rows compressed with an unknown algorithm (header {head:#04x})")
    return _inflate(packed, head & 7, zlib.MAX_WBITS)


def expand_value(stored: bytes) -> bytes:
    """Return the value of a COMPRESSED column.

    An empty value is stored empty. Others begin with one byte. It is 0 before a plain value.
    Otherwise it has the algorithm (8: zlib) in bits 4 to 7, bit 3 for zlib data without its
    wrapper, and the width of the expanded length, which follows big-endian. Raises BinlogError.
    """
    if not stored:
        return stored
    head = stored[0]
    if head == 0:
        return stored[1:]
    if head & 0xF0 != 0x80:
        raise BinlogError(f"a value compressed with an unknown algorithm (header {head:#04x})")
    return _inflate(stored, head & 7, -zlib.MAX_WBITS if head & 8 else zlib.MAX_WBITS)


def _inflate(packed: bytes, width: int, window: int) -> bytes:
    length = int.from_bytes(packed[1 : 1 + width], "big")
    if length > largest_event():
        raise BinlogError(too_large("compressed data expanded", length))
    stream = zlib.decompressobj(window)
    try:
        # Expand at most one byte more than announced: a damaged length must not cost gigabytes.
        data = stream.decompress(packed[1 + width :], length + 1)
    except zlib.error as error:
        raise BinlogError(f"compressed data that cannot be expanded: {error}") from error
    if not stream.eof and len(data) <= length:
        raise BinlogError(f"compressed data that ends after {len(data)} of {length} bytes")
    if len(data) != length:
        raise BinlogError(f"compressed data expands to {len(data)} bytes or more, not to {length}")
    return data
