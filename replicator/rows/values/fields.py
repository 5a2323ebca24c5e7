"""The type of all renderers of fields, and the escaping of LOAD DATA lines."""

from __future__ import annotations

from collections.abc import Callable

Read = Callable[[bytes, int], tuple[bytes, int]]
"""Reads a value that is not NULL: (data, offset) to (field of a line, the offset after it)."""

_BACKSLASH, _TAB, _NEWLINE, _NUL = b"\\\t\n\0"


def escape(value: bytes) -> bytes:
    """Return ``value`` as a field of ``FIELDS TERMINATED BY '\\t' ESCAPED BY '\\\\'
    LINES TERMINATED BY '\\n'``, read with CHARACTER SET binary.
    """
    if _BACKSLASH in value:
        value = value.replace(b"\\", b"\\\\")
    if _TAB in value:
        value = value.replace(b"\t", b"\\t")
    if _NEWLINE in value:
        value = value.replace(b"\n", b"\\n")
    if _NUL in value:
        value = value.replace(b"\0", b"\\0")
    return value
