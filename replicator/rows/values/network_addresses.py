"""MariaDB's own types of addresses and identifiers, as the text that its clients read."""

from __future__ import annotations

import struct

_WORDS = struct.Struct(">8H")


def uuid_text(value: bytes) -> bytes:
    """A UUID, whose trailing zero bytes may be missing."""
    digits = value.ljust(16, b"\0").hex().encode()
    return b"-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def inet4_text(value: bytes) -> bytes:
    """An IPv4 address, whose trailing zero bytes may be missing."""
    return b"%d.%d.%d.%d" % tuple(value.ljust(4, b"\0"))


def inet6_text(value: bytes) -> bytes:
    """An IPv6 address, whose trailing zero bytes may be missing.

    The first of the longest runs of zero words is left out, also one of a single word, where RFC
    5952 and the C library write it: compared with MariaDB 10.11 and 11.8.
    """
    value = value.ljust(16, b"\0")
    words = _WORDS.unpack(value)
    start, length = _longest_zeros(words)
    if start == 0 and (length == 6 or (length == 5 and words[5] == 0xFFFF)):
        return (b"::" if length == 6 else b"::ffff:") + inet4_text(value[12:])
    shown = [b"%x" % word for word in words]
    if not length:
        return b":".join(shown)
    return b":".join(shown[:start]) + b"::" + b":".join(shown[start + length :])


def _longest_zeros(words: tuple[int, ...]) -> tuple[int, int]:
    """Where the first of the longest runs of zeros begins, and how long it is."""
    best_start = best = run = 0
    for at, word in enumerate(words):
        run = 0 if word else run + 1
        if run > best:
            best_start, best = at - run + 1, run
    return best_start, best
