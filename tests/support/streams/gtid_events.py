"""Bodies of MySQL's GTID events as a server would write them."""

from __future__ import annotations


def packed(value: int) -> bytes:
    """An unsigned integer of variable length (MySQL's readme of mysql::serialization)."""
    for more in range(8):
        if value < 1 << 7 * (more + 1):
            ones = (1 << more) - 1
            return (value << more + 1 | ones).to_bytes(more + 1, "little")
    return b"\xff" + value.to_bytes(8, "little")


def tagged_body(source: bytes, number: int, tag: str, *, needed: int = 0) -> bytes:
    """A GTID_TAGGED event without header and checksum; ``needed``: the last field to be known."""
    fields = packed(0) + packed(0) + packed(1) + b"".join(map(packed, source))
    fields += packed(2) + packed(number << 1) + packed(3) + packed(len(tag)) + tag.encode()
    fields += packed(4) + packed(0) + packed(8) + packed(300)
    size = len(fields) + 4 if len(fields) + 3 > 127 else len(fields) + 3
    return packed(1) + packed(size) + packed(needed) + fields
