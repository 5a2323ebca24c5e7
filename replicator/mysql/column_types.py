"""The column types: all properties of each type, in one place.

`BINLOG_TYPES` has the types that a table map names by a number: the form of their metadata and
values in a binlog, and their decoder (MySQL's ``field_types.h``; MariaDB adds 140 and 141; MySQL
internals manual, "TABLE_MAP_EVENT" and "ROWS_EVENT"). `SQL_TYPES` has the types that servers name
in ``information_schema.COLUMNS``: the binlog types that store them, how their values are written
and compared, which rules convert them, and their substitutes on servers that lack them.

A new type needs a record here, its decoder (`replicator.rows.values.value_readers`, and
`replicator.rows.decoder.row_format` if compiled loops write it), and a test. A unit test compares
every module that decides by type with these tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum, auto

from pymysqlreplication.constants import FIELD_TYPE


class ColumnType(IntEnum):
    """The type codes that a TABLE_MAP_EVENT can have; mysql-replication lacks some.

    The ``…_2`` codes are the temporal formats since MySQL 5.6 / MariaDB 10.1. A table map has ENUM
    and SET as STRING, with the real type in the metadata; `parse_table_map` unpacks them.
    """

    DECIMAL_OLD = FIELD_TYPE.DECIMAL
    TINY = FIELD_TYPE.TINY
    SHORT = FIELD_TYPE.SHORT
    LONG = FIELD_TYPE.LONG
    FLOAT = FIELD_TYPE.FLOAT
    DOUBLE = FIELD_TYPE.DOUBLE
    NULL = FIELD_TYPE.NULL
    TIMESTAMP = FIELD_TYPE.TIMESTAMP
    LONGLONG = FIELD_TYPE.LONGLONG
    INT24 = FIELD_TYPE.INT24
    DATE = FIELD_TYPE.DATE
    TIME = FIELD_TYPE.TIME
    DATETIME = FIELD_TYPE.DATETIME
    YEAR = FIELD_TYPE.YEAR
    NEWDATE = FIELD_TYPE.NEWDATE
    VARCHAR = FIELD_TYPE.VARCHAR
    BIT = FIELD_TYPE.BIT
    TIMESTAMP_2 = FIELD_TYPE.TIMESTAMP2
    DATETIME_2 = FIELD_TYPE.DATETIME2
    TIME_2 = FIELD_TYPE.TIME2
    BLOB_COMPRESSED = 140
    VARCHAR_COMPRESSED = 141
    VECTOR = 242
    TYPED_ARRAY = 244
    JSON = FIELD_TYPE.JSON
    DECIMAL = FIELD_TYPE.NEWDECIMAL
    ENUM = FIELD_TYPE.ENUM
    SET = FIELD_TYPE.SET
    TINY_BLOB = FIELD_TYPE.TINY_BLOB
    MEDIUM_BLOB = FIELD_TYPE.MEDIUM_BLOB
    LONG_BLOB = FIELD_TYPE.LONG_BLOB
    BLOB = FIELD_TYPE.BLOB
    VAR_STRING = FIELD_TYPE.VAR_STRING
    STRING = FIELD_TYPE.STRING
    GEOMETRY = FIELD_TYPE.GEOMETRY


class Metadata(Enum):
    """The form of a type's metadata in a table map."""

    NONE = auto()
    BYTE = auto()
    LITTLE = auto()
    """Two bytes, the low byte first."""
    BIG = auto()
    """Two bytes, the high byte first; for STRING, the first may name another type."""


class Width(Enum):
    """How the size of a value in a row image follows from its type's metadata."""

    FIXED = auto()
    """All values have the same size."""
    FRACTION = auto()
    """The size depends on the digits of the fraction of a second, which are the metadata."""
    PREFIX = auto()
    """The value begins with its size, in as many bytes as the metadata gives."""
    LENGTH = auto()
    """The value begins with its size, in one byte, or two if the maximum size (the metadata) needs
    two."""
    DIGITS = auto()
    """The size depends on the digits of a DECIMAL: ``precision << 8 | scale``."""
    BITS = auto()
    """The size depends on the bits of a BIT: ``bytes << 8 | bits``."""
    NUMBER = auto()
    """The metadata is the size of an ENUM's number, or a SET's."""


class Decoder(Enum):
    """The function that decodes a value to text, in `replicator.rows.values.value_readers`."""

    INTEGER = auto()
    REAL = auto()
    DECIMAL = auto()
    BIT = auto()
    ENUM = auto()
    SET = auto()
    YEAR = auto()
    DATE = auto()
    TIME = auto()
    DATETIME = auto()
    TIMESTAMP = auto()
    OLD_TIME = auto()
    """The formats before MySQL 5.6 and MariaDB 10.1, and MariaDB's own format for fractions."""
    OLD_DATETIME = auto()
    OLD_TIMESTAMP = auto()
    STRING = auto()
    """Bytes, or text in the column's charset."""
    COMPRESSED = auto()
    """A STRING that MariaDB has compressed."""
    JSON = auto()
    NONE = auto()
    """No decoder: a table map may name the type, but no row has a value of it."""


_MOST_FRACTION = 6
_MOST_PRECISION, _MOST_SCALE = 65, 38
_MOST_BITS = 64


@dataclass(frozen=True, slots=True)
class BinlogType:
    """A type in binlogs.

    Attributes:
        sizes: the bytes of a value of FIXED width; for FRACTION by the digits; for NUMBER all
            sizes.
        character: whether servers list its collation in the optional metadata.
    """

    code: ColumnType
    decoder: Decoder
    width: Width
    metadata: Metadata
    sizes: tuple[int, ...] = ()
    character: bool = False

    @property
    def numeric(self) -> bool:
        """Whether servers list its sign in the optional metadata."""
        return self.decoder in (Decoder.INTEGER, Decoder.REAL, Decoder.DECIMAL)

    @property
    def unlogged_fraction(self) -> bool:
        """Whether only the column, not its table map, has the digits of a fraction."""
        return self.width is Width.FRACTION and self.metadata is Metadata.NONE

    def length_bytes(self, metadata: int) -> int:
        """Return the number of bytes of the size before a value; 0 for a value without a size."""
        if self.width is Width.PREFIX:
            return metadata
        if self.width is Width.LENGTH:
            return 1 if metadata < 256 else 2
        return 0

    def is_possible(self, metadata: int) -> bool:
        """Return whether a column can have this metadata, as `parse_table_map` returns it.

        The search for values in row images relies on this check alone.
        """
        high, low = metadata >> 8, metadata & 255
        match self.width:
            case Width.PREFIX:
                return 1 <= metadata <= 4
            case Width.FRACTION:
                return metadata <= _MOST_FRACTION
            case Width.DIGITS:
                return 0 < high <= _MOST_PRECISION and low <= min(high, _MOST_SCALE)
            case Width.BITS:
                return low < 8 and 0 < 8 * high + low <= _MOST_BITS
            case Width.NUMBER:
                return metadata in self.sizes
        return True


def _fixed(code: ColumnType, decoder: Decoder, size: int) -> BinlogType:
    return BinlogType(code, decoder, Width.FIXED, Metadata.NONE, (size,))


def _moment(code: ColumnType, decoder: Decoder, metadata: Metadata, *sizes: int) -> BinlogType:
    return BinlogType(code, decoder, Width.FRACTION, metadata, sizes)


def _long(code: ColumnType, decoder: Decoder, character: bool) -> BinlogType:
    return BinlogType(code, decoder, Width.PREFIX, Metadata.BYTE, character=character)


def _short(code: ColumnType, decoder: Decoder, metadata: Metadata) -> BinlogType:
    return BinlogType(code, decoder, Width.LENGTH, metadata, character=True)


_T, _D = ColumnType, Decoder

BINLOG_TYPES: dict[int, BinlogType] = {
    found.code: found
    for found in (
        _fixed(_T.TINY, _D.INTEGER, 1),
        _fixed(_T.SHORT, _D.INTEGER, 2),
        _fixed(_T.INT24, _D.INTEGER, 3),
        _fixed(_T.LONG, _D.INTEGER, 4),
        _fixed(_T.LONGLONG, _D.INTEGER, 8),
        BinlogType(_T.FLOAT, _D.REAL, Width.FIXED, Metadata.BYTE, (4,)),
        BinlogType(_T.DOUBLE, _D.REAL, Width.FIXED, Metadata.BYTE, (8,)),
        BinlogType(_T.DECIMAL, _D.DECIMAL, Width.DIGITS, Metadata.BIG),
        BinlogType(_T.BIT, _D.BIT, Width.BITS, Metadata.LITTLE),
        BinlogType(_T.ENUM, _D.ENUM, Width.NUMBER, Metadata.BIG, (1, 2)),
        BinlogType(_T.SET, _D.SET, Width.NUMBER, Metadata.BIG, tuple(range(1, 9))),
        _fixed(_T.YEAR, _D.YEAR, 1),
        _fixed(_T.DATE, _D.DATE, 3),
        _fixed(_T.NEWDATE, _D.DATE, 3),
        _moment(_T.TIME_2, _D.TIME, Metadata.BYTE, 3, 4, 4, 5, 5, 6, 6),
        _moment(_T.DATETIME_2, _D.DATETIME, Metadata.BYTE, 5, 6, 6, 7, 7, 8, 8),
        _moment(_T.TIMESTAMP_2, _D.TIMESTAMP, Metadata.BYTE, 4, 5, 5, 6, 6, 7, 7),
        # Only the column, not the table map, has the digits of the fraction.
        _moment(_T.TIME, _D.OLD_TIME, Metadata.NONE, 3, 4, 4, 5, 5, 5, 6),
        _moment(_T.DATETIME, _D.OLD_DATETIME, Metadata.NONE, 8, 6, 6, 7, 7, 7, 8),
        _moment(_T.TIMESTAMP, _D.OLD_TIMESTAMP, Metadata.NONE, 4, 5, 5, 6, 6, 7, 7),
        _short(_T.STRING, _D.STRING, Metadata.BIG),
        _short(_T.VARCHAR, _D.STRING, Metadata.LITTLE),
        _short(_T.VAR_STRING, _D.STRING, Metadata.LITTLE),
        _short(_T.VARCHAR_COMPRESSED, _D.COMPRESSED, Metadata.LITTLE),
        *(
            _long(code, _D.STRING, character=True)
            for code in (_T.TINY_BLOB, _T.BLOB, _T.MEDIUM_BLOB, _T.LONG_BLOB)
        ),
        _long(_T.BLOB_COMPRESSED, _D.COMPRESSED, character=True),
        _long(_T.GEOMETRY, _D.STRING, character=False),
        _long(_T.VECTOR, _D.STRING, character=False),
        _long(_T.JSON, _D.JSON, character=False),
        _fixed(_T.NULL, _D.NONE, 0),
    )
}
"""By the number in a table map, with ENUM's and SET's number unpacked."""


class Literal(StrEnum):
    """The kind of a column's values: how it is loaded, and how a predicate matches it."""

    NUMBER = "number"
    """Integers and DECIMAL, unchanged."""
    FLOAT = "float"
    """FLOAT, compared as the double that the single precision number is."""
    DOUBLE = "double"
    """DOUBLE, compared as a double, not as the decimal number of the same digits."""
    BIT = "bit"
    """BIT: raw bytes in rows, an integer in predicates."""
    QUOTED = "quoted"
    """Temporal types and YEAR, compared as quoted text."""
    PARSED = "parsed"
    """UUID, INET4 and INET6: text that the server parses, but reads as raw bytes if it is in the
    charset ``binary`` (a 16-character IPv6 address is then stored as another address)."""
    JSON = "json"
    """JSON as a separate type (MySQL, TiDB), which is refused in the charset ``binary``."""
    TEXT = "text"
    """Character types and SET: a hex string with the column's charset as introducer."""
    ENUM = "enum"
    """ENUM, written like TEXT; strict mode refuses its value without a label (index 0)."""
    BINARY = "binary"
    """BINARY, VARBINARY and BLOB types: a hex string."""
    GEOMETRY = "geometry"
    """Geometry, compared by its bytes."""
    VECTOR = "vector"
    """Vectors, which MySQL compares only by a function of their bytes."""


FRACTIONAL = frozenset({"time", "datetime", "timestamp"})
"""The types whose values have fractions of seconds."""
EXACT_LITERALS = frozenset(
    {Literal.NUMBER, Literal.BIT, Literal.QUOTED, Literal.PARSED, Literal.BINARY}
)
"""Values of these types are equal exactly if their bytes are: no collation, no negative zero."""


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type as servers name it.

    Attributes:
        family: the types for which `replicator.schema.structure.conversions` has one rule; a type
            without others has its own name.
        stored: the binlog types that store it.
        implicit: the SQL literal of the default that servers give a NOT NULL column without one;
            empty if there is none.
        filler: the literal for a column that the shard has dropped; empty if there is none.
        size: the bytes of an integer; the maximum bytes of a TEXT or BLOB; the characters of the
            text by which MariaDB shows a value.
        aliases: other words for it in statements.
        stand_in: the length of the VARBINARY that replaces it on servers that lack it; no statement
            is likely to use such a length.
    """

    name: str
    family: str
    stored: frozenset[int]
    literal: Literal
    implicit: str
    filler: str
    size: int = 0
    aliases: tuple[str, ...] = ()
    stand_in: int = 0


_BLOBS = (_T.TINY_BLOB, _T.BLOB, _T.MEDIUM_BLOB, _T.LONG_BLOB)
_ANY_BLOB = frozenset({*_BLOBS, _T.BLOB_COMPRESSED})
_ANY_VARCHAR = frozenset({_T.VARCHAR, _T.VAR_STRING, _T.VARCHAR_COMPRESSED})


def _number(
    name: str, code: ColumnType, literal: Literal, family: str = "", size: int = 0, words: str = ""
) -> SqlType:
    aliases = tuple(words.split())
    return SqlType(name, family or name, frozenset({code}), literal, "0", "0", size, aliases)


def _quoted(name: str, codes: Iterable[int], implicit: str, filler: str) -> SqlType:
    return SqlType(name, name, frozenset(codes), Literal.QUOTED, implicit, filler)


def _text(name: str, codes: Iterable[int], size: int = 0, words: str = "") -> SqlType:
    aliases = tuple(words.split())
    return SqlType(name, "text", frozenset(codes), Literal.TEXT, "''", "''", size, aliases)


def _bytes(name: str, codes: Iterable[int], size: int = 0) -> SqlType:
    return SqlType(name, "bytes", frozenset(codes), Literal.BINARY, "''", "''", size)


def _special(name: str, size: int, zero: str, stand_in: int) -> SqlType:
    implicit = f"CONVERT({zero} USING utf8mb4)"
    stored = frozenset({_T.STRING})
    return SqlType(name, "special", stored, Literal.PARSED, implicit, zero, size, stand_in=stand_in)


def _geometry(name: str) -> SqlType:
    stored = frozenset({*_BLOBS, _T.GEOMETRY})
    return SqlType(name, "geometry", stored, Literal.GEOMETRY, "", "", stand_in=704)


SQL_TYPES: dict[str, SqlType] = {
    found.name: found
    for found in (
        _number("tinyint", _T.TINY, Literal.NUMBER, "integer", 1, "int1 bool boolean"),
        _number("smallint", _T.SHORT, Literal.NUMBER, "integer", 2, "int2"),
        _number("mediumint", _T.INT24, Literal.NUMBER, "integer", 3, "int3 middleint"),
        _number("int", _T.LONG, Literal.NUMBER, "integer", 4, "int4 integer"),
        _number("bigint", _T.LONGLONG, Literal.NUMBER, "integer", 8, "int8"),
        _number("decimal", _T.DECIMAL, Literal.NUMBER, words="dec numeric fixed"),
        _number("float", _T.FLOAT, Literal.FLOAT),
        _number("double", _T.DOUBLE, Literal.DOUBLE),
        SqlType("bit", "bit", frozenset({_T.BIT}), Literal.BIT, "0", "x'00'"),
        # Written as a text of four digits, since the number 0 and '0' have several meanings.
        _quoted("year", {_T.YEAR}, "'0000'", "'1970'"),
        _quoted("date", {_T.DATE, _T.NEWDATE}, "'0000-00-00'", "'1970-01-02'"),
        _quoted("time", {_T.TIME, _T.TIME_2}, "'00:00:00'", "'00:00:00'"),
        *(
            _quoted(name, codes, "'0000-00-00 00:00:00'", "'1970-01-02 00:00:00'")
            for name, codes in (
                ("datetime", {_T.DATETIME, _T.DATETIME_2}),
                ("timestamp", {_T.TIMESTAMP, _T.TIMESTAMP_2}),
            )
        ),
        _text("char", {_T.STRING}, words="character nchar national"),
        _text("varchar", _ANY_VARCHAR, words="varcharacter nvarchar"),
        _text("tinytext", _ANY_BLOB, 2**8 - 1),
        _text("text", _ANY_BLOB, 2**16 - 1),
        _text("mediumtext", _ANY_BLOB, 2**24 - 1),
        _text("longtext", _ANY_BLOB, 2**32 - 1),
        _bytes("binary", {_T.STRING}),
        _bytes("varbinary", _ANY_VARCHAR),
        _bytes("tinyblob", _ANY_BLOB, 2**8 - 1),
        _bytes("blob", _ANY_BLOB, 2**16 - 1),
        _bytes("mediumblob", _ANY_BLOB, 2**24 - 1),
        _bytes("longblob", _ANY_BLOB, 2**32 - 1),
        # If there is no default, servers use the first label, even in strict mode.
        SqlType("enum", "enum", frozenset({_T.ENUM}), Literal.ENUM, "", ""),
        SqlType("set", "set", frozenset({_T.SET}), Literal.TEXT, "''", "''"),
        SqlType(
            "json",
            "json",
            _ANY_BLOB | {_T.JSON},
            Literal.JSON,
            "CONVERT('null' USING utf8mb4)",
            "'{}'",
        ),
        _special("uuid", 36, "'00000000-0000-0000-0000-000000000000'", 701),
        _special("inet4", 15, "'0.0.0.0'", 702),
        _special("inet6", 39, "'::'", 703),
        SqlType(
            "vector",
            "vector",
            _ANY_VARCHAR | {_T.VECTOR},
            Literal.VECTOR,
            "",
            "",
            stand_in=705,
        ),
        *map(_geometry, ("geometry", "point", "linestring", "polygon")),
        *map(_geometry, ("multipoint", "multilinestring", "multipolygon")),
        # MariaDB's name for the type, and MySQL's.
        *map(_geometry, ("geometrycollection", "geomcollection")),
    )
}
"""By the first word of COLUMN_TYPE in ``information_schema.COLUMNS``."""


def sql_type(name: str) -> SqlType:
    """Return the type of this name; an unknown one has no family, and no binlog type stores it."""
    return SQL_TYPES.get(name) or SqlType(name, "", frozenset(), Literal.BINARY, "", "")


def sizes(family: str) -> dict[str, int]:
    """Return the sizes of a family's types, by name, except types with sizes of their own."""
    return {
        found.name: found.size
        for found in SQL_TYPES.values()
        if found.family == family and found.size
    }
