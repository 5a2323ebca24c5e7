"""Compressed transactions as a MySQL writes them."""

from __future__ import annotations

import zstandard

ZSTD, NOT_COMPRESSED = 0, 255


def payload_of(data: bytes, compression: int = ZSTD) -> bytes:
    """The body of a payload event that holds these events, which have no checksums."""
    content = zstandard.compress(data) if compression == ZSTD else data
    return packed(content, compression, len(data))


def packed(content: bytes, compression: int, size: int) -> bytes:
    """The same of a content that is said to be of ``size`` bytes when it is expanded."""
    fields = {2: _integer(compression), 3: _integer(size), 1: _integer(len(content))}
    head = b"".join(_integer(kind) + _integer(len(text)) + text for kind, text in fields.items())
    return head + b"\x00" + content


def _integer(value: int) -> bytes:
    if value < 0xFB:
        return bytes((value,))
    return b"\xfe" + value.to_bytes(8, "little")
