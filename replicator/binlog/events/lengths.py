"""Length-encoded integers (MySQL internals manual, "Protocol::LengthEncodedInteger")."""

from __future__ import annotations

from replicator.binlog.errors import BinlogError

_WIDTHS = {252: 2, 253: 3, 254: 8}


def packed_integer(data: bytes, at: int) -> tuple[int, int]:
    """The length-encoded integer at ``at`` and the offset behind it.

    Raises BinlogError where the bytes end before it does or cannot be one.
    """
    if at >= len(data):
        raise BinlogError(f"a packed integer was expected at byte {at}, where the data ends")
    first = data[at]
    if first < 251:
        return first, at + 1
    width = _WIDTHS.get(first)
    end = at + 1 + (width or 0)
    if width is None or end > len(data):
        raise BinlogError(f"byte {at} ({first:#04x}) does not begin a packed integer")
    return int.from_bytes(data[at + 1 : end], "little"), end
