"""How a table's values are stored in its row images, and how to write them as text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """The wire format of a column (from the table map) and the properties that the table map lacks.

    Attributes:
        type_code: the binlog type after unpacking MYSQL_TYPE_STRING's real type (ENUM, SET, CHAR).
        metadata: the table map's metadata as one integer (MySQL internals manual,
            "TABLE_MAP_EVENT"). For the old temporal types (7, 11, 12), the declared number of
            fractional digits, which the table map lacks: above 0 only in MariaDB's own format.
        length: bytes to which BINARY(n) is padded with zero bytes; None for other types.
        labels: the ENUM or SET labels in the charset to write.
        unlabelled: the text for an ENUM's index 0.
        separator: the comma between the members of a SET in that charset.
        text: a special rendering: ``"uuid"``, ``"inet6"``, ``"inet4"``, ``"json"`` or ``""``. When
            a UUID, INET6 or INET4 column is loaded with CHARACTER SET binary, the server takes the
            bytes as the stored value, not as text: the statement has to convert the text, or the
            column is sent as bytes (``text=""`` with ``length`` 16, 16, 4).
        transcode: (from, to) as Python codecs if the target column's charset differs from the
            member's; None if bytes are copied unchanged.
        before, after: escaped bytes around every field that the target's type shows in addition,
            such as further zeros after the decimal point.
        upper, limit: if ``limit`` is not 0, the column is an integer whose values get the bits of
            ``upper``, and must be less than ``limit``.
    """

    name: str
    type_code: int
    metadata: int
    unsigned: bool = False
    length: int | None = None
    labels: tuple[bytes, ...] = ()
    unlabelled: bytes = b""
    separator: bytes = b","
    text: str = ""
    transcode: tuple[str, str] | None = None
    before: bytes = b""
    after: bytes = b""
    upper: int = 0
    limit: int = 0


@dataclass(frozen=True, slots=True)
class RowFormat:
    """The columns of a table's row images, and the lines for the target made of its rows.

    Attributes:
        columns: the columns, in the order of the row image.
        written, key, hashed: indexes of the columns that form a line, its key and its hash.
        hash_cut: bytes at the end of the hashed fields that do not count.
        generated: columns that a row image may omit.
        until: in a table that keeps its former rows, the column with the time until which a row was
            the present one; former rows are left out.
        constants: further fields of each row, after the image; their indexes follow ``columns``.
    """

    columns: tuple[ColumnFormat, ...]
    written: tuple[int, ...]
    key: tuple[int, ...]
    hashed: tuple[int, ...]
    generated: frozenset[int] = frozenset()
    until: int | None = None
    constants: tuple[bytes, ...] = ()
    hash_cut: int = 0
