"""Packets of result sets, as servers make them."""

from __future__ import annotations


def encoded_length(number: int) -> bytes:
    """A length (MySQL internals manual, "Protocol::LengthEncodedInteger")."""
    if number < 251:
        return bytes([number])
    for prefix, size in ((0xFC, 2), (0xFD, 3), (0xFE, 8)):
        if number < 1 << (8 * size):
            return bytes([prefix]) + number.to_bytes(size, "little")
    raise AssertionError(number)


def packet(content: bytes, number: int = 0) -> bytes:
    """One packet with this content."""
    return len(content).to_bytes(3, "little") + bytes([number % 256]) + content
