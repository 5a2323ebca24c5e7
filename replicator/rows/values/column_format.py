"""How the values of a table stand in its row images, and how they are to be written as text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """The wire format of a column (from the table map) with what the table map leaves out.

    ``type_code`` is the binlog type after unpacking MYSQL_TYPE_STRING's real type (ENUM, SET,
    CHAR); ``metadata`` the table map's metadata for it as one integer (MySQL internals manual,
    "TABLE_MAP_EVENT"). ``length`` is the byte length that BINARY(n) is padded to with zero bytes
    (None elsewhere). ``labels`` are the ENUM / SET labels as bytes in the charset to write,
    ``unlabelled`` what is written for an ENUM's index 0,
    ``separator`` the comma between the members of a SET in that charset. For the old temporal type
    codes (7, 11, 12) ``metadata`` is the number of fractional digits that the column is declared
    with, which the table map leaves out: above 0 only in MariaDB's own temporal format.
    ``text`` names a special rendering: ``"uuid"``, ``"inet6"``, ``"inet4"``, ``"json"``
    or ``""``. Read with CHARACTER SET binary, a UUID, INET6 or INET4 column takes bytes for its
    own bytes, not for text: its text has to be converted in the statement, or left out
    (``text=""`` with ``length`` 16, 16, 4).
    ``transcode`` is (from, to) as Python codec names where the target column's charset
    differs from the member's; None: bytes are passed on as they are. ``before`` and ``behind`` are
    put around every field, escaped: what the target's type shows beyond the member's, such as
    further zeros behind the point. Where ``limit`` is not 0, the column is an integer whose values
    get the bits of ``upper``, and must be below ``limit``.
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
    behind: bytes = b""
    upper: int = 0
    limit: int = 0


@dataclass(frozen=True, slots=True)
class RowFormat:
    """The columns of a table's row images, and what rows of them are made for the target.

    ``columns`` stand in the order of the row image. ``written``, ``key`` and ``hashed`` are the
    indexes of those that make a line, its key and its hash; ``hash_cut`` bytes at the end of the
    hashed fields do not count. A row image may leave out those in ``generated``. ``until`` is the
    index of the column with the time until which a row was the present one, in a table that keeps
    its former rows: of those nothing is told. ``constants`` are fields that each row has behind
    those of the image; their indexes follow those of ``columns``.
    """

    columns: tuple[ColumnFormat, ...]
    written: tuple[int, ...]
    key: tuple[int, ...]
    hashed: tuple[int, ...]
    generated: frozenset[int] = frozenset()
    until: int | None = None
    constants: tuple[bytes, ...] = ()
    hash_cut: int = 0
