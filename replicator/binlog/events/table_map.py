"""TABLE_MAP_EVENT: the wire types of a table's columns, and its optional metadata.

Source of the format: MySQL internals manual, "TABLE_MAP_EVENT", and the comments on optional
metadata in MySQL's rows_event.h; MariaDB KB, "TABLE_MAP_EVENT" and ``binlog_row_metadata``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, combinations
from typing import TypeVar

from replicator.binlog.errors import BinlogError
from replicator.mysql.column_types import BINLOG_TYPES, ColumnType, Metadata

_T = TypeVar("_T")

_NUMERIC = frozenset(found.code for found in BINLOG_TYPES.values() if found.numeric)
_CHARACTER = frozenset(found.code for found in BINLOG_TYPES.values() if found.character)
_COUNTED_BY_SOME = frozenset({ColumnType.GEOMETRY, ColumnType.VECTOR})
"""Types that are not text, but that some servers count among the text columns."""
MOST_COLUMNS = 4096
"""Maximum number of columns of a table in any server."""
_LABELLED = {ColumnType.ENUM, ColumnType.SET}


@dataclass(frozen=True, slots=True)
class OptionalMetadata:
    """The metadata that ``binlog_row_metadata`` adds; a field is None if the event has none.

    All fields are by column of the table: names; signedness (None for columns that are not
    numeric); collation ids (None for columns that are not text); ENUM and SET labels (None for
    others). ``primary_key`` has the indexes of the primary key's columns.
    """

    names: tuple[str, ...] | None = None
    unsigned: tuple[bool | None, ...] | None = None
    collations: tuple[int | None, ...] | None = None
    labels: tuple[tuple[bytes, ...] | None, ...] | None = None
    primary_key: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class TableMap:
    """A parsed table map, without flags and table id, so that equal structures have equal maps.

    Attributes:
        types: binlog type codes after unpacking MYSQL_TYPE_STRING (so ENUM is 247, SET 248, CHAR
            and BINARY 254).
        metadata: one integer per column: the byte length of CHAR, BINARY, VARCHAR and VARBINARY,
            the width of an ENUM's or SET's number or of a BLOB's length prefix, ``precision << 8 |
            scale`` of DECIMAL, ``bytes << 8 | bits`` of BIT, the fractional digits of temporal
            types, 0 for other types.
    """

    schema: str
    table: str
    types: tuple[int, ...]
    metadata: tuple[int, ...]
    nullable: tuple[bool, ...]
    optional: OptionalMetadata


# Kinds of optional metadata: enum Optional_metadata_field_type in MySQL's rows_event.h.
_SIGNEDNESS = 1
_DEFAULT_CHARSET = 2
_COLUMN_CHARSET = 3
_COLUMN_NAME = 4
_SET_LABELS = 5
_ENUM_LABELS = 6
_PRIMARY_KEY = 8
_PRIMARY_KEY_WITH_PREFIX = 9
_LABELLED_DEFAULT_CHARSET = 10
_LABELLED_COLUMN_CHARSET = 11

_BINARY = 63  # the collation id of binary strings


def parse_table_map(body: bytes) -> TableMap:
    """Parse a table map event without its 19-byte header and its checksum.

    Raises replicator.binlog.errors.BinlogError if the map is not understood.
    """
    name = ""
    try:
        schema, at = _identifier(body, 8)
        table, at = _identifier(body, at)
        name = f" of {schema}.{table}"
        count, at = packed_integer(body, at)
        if count > MOST_COLUMNS:
            raise BinlogError(f"it has {count} columns, and no server has more than {MOST_COLUMNS}")
        codes = _take(body, at, count)
        at += count
        size, at = packed_integer(body, at)
        types, metadata = _column_metadata(codes, _take(body, at, size))
        at += size
        nulls = _take(body, at, (count + 7) // 8)
        at += len(nulls)
        return TableMap(
            schema=schema,
            table=table,
            types=types,
            metadata=metadata,
            nullable=tuple(bool(nulls[i >> 3] >> (i & 7) & 1) for i in range(count)),
            optional=_optional(body[at:], types),
        )
    except (BinlogError, UnicodeDecodeError) as error:
        raise BinlogError(
            f"the table map{name} cannot be understood: {error}. Its rows cannot be read; "
            "check that the server's version is supported, and report this with the event"
        ) from error


def _take(data: bytes, at: int, length: int) -> bytes:
    if at + length > len(data):
        raise BinlogError(f"{length} bytes were expected at byte {at} of {len(data)}")
    return data[at : at + length]


def _identifier(data: bytes, at: int) -> tuple[str, int]:
    """Read a name: its length in one byte, its UTF-8 bytes, a NUL."""
    length = _take(data, at, 1)[0]
    return _take(data, at + 1, length).decode(), at + length + 2


def _column_metadata(codes: bytes, block: bytes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    types: list[int] = []
    metadata: list[int] = []
    at = 0
    for code in codes:
        kind, value = code, 0
        match BINLOG_TYPES[code].metadata if code in BINLOG_TYPES else None:
            case Metadata.NONE:
                pass
            case Metadata.BYTE:
                value = _take(block, at, 1)[0]
                at += 1
            case Metadata.LITTLE:
                value = int.from_bytes(_take(block, at, 2), "little")
                at += 2
            case Metadata.BIG:
                first, second = _take(block, at, 2)
                at += 2
                value = first << 8 | second
                if code != ColumnType.DECIMAL:
                    kind, value = _unpack_string(first, second)
        if kind not in BINLOG_TYPES:
            raise BinlogError(f"column {len(types) + 1} has the unknown type code {kind}")
        if not BINLOG_TYPES[kind].is_possible(value):
            raise BinlogError(
                f"column {len(types) + 1} has the metadata {value:#x}, which no column of type"
                f" {kind} has"
            )
        types.append(kind)
        metadata.append(value)
    if at != len(block):
        raise BinlogError(f"{len(block)} bytes of column metadata, {at} of them expected")
    return tuple(types), tuple(metadata)


def _unpack_string(first: int, second: int) -> tuple[int, int]:
    """Return the real type and the byte length.

    Lengths above 255 have their high bits inverted in bits 4 and 5 of the type, which are set in
    every possible type (``Field_string::save_field_metadata`` in MySQL's field.cc).
    """
    return first | 0x30, (first & 0x30 ^ 0x30) << 4 | second


def _optional(data: bytes, types: tuple[int, ...]) -> OptionalMetadata:
    names: tuple[str, ...] | None = None
    unsigned: tuple[bool | None, ...] | None = None
    collations: dict[int, int] = {}
    labels: dict[int, tuple[bytes, ...]] = {}
    primary_key: tuple[int, ...] | None = None
    at = 0
    while at < len(data):
        kind = data[at]
        length, at = packed_integer(data, at + 1)
        value = _take(data, at, length)
        at += length
        if kind == _SIGNEDNESS:
            unsigned = _signedness(value, types)
        elif kind in (_DEFAULT_CHARSET, _COLUMN_CHARSET):
            read = _default_charset if kind == _DEFAULT_CHARSET else _column_charset
            collations |= _text_collations(read, _integers(value), types)
        elif kind == _LABELLED_DEFAULT_CHARSET:
            collations |= _default_charset(_integers(value), _indexes(types, _LABELLED))
        elif kind == _LABELLED_COLUMN_CHARSET:
            collations |= _column_charset(_integers(value), _indexes(types, _LABELLED))
        elif kind == _COLUMN_NAME:
            names = tuple(name.decode() for name in _all(value, _string))
            _pair(tuple(range(len(types))), names, "names")
        elif kind in (_SET_LABELS, _ENUM_LABELS):
            wanted = {ColumnType.SET if kind == _SET_LABELS else ColumnType.ENUM}
            labels |= _pair(_indexes(types, wanted), _all(value, _label_list), "label lists")
        elif kind == _PRIMARY_KEY:
            primary_key = _integers(value)
        elif kind == _PRIMARY_KEY_WITH_PREFIX:
            primary_key = _integers(value)[::2]
    return OptionalMetadata(
        names=names,
        unsigned=unsigned,
        collations=tuple(collations.get(i) for i in range(len(types))) if collations else None,
        labels=tuple(labels.get(i) for i in range(len(types))) if labels else None,
        primary_key=primary_key,
    )


def _indexes(
    types: tuple[int, ...], wanted: set[ColumnType] | frozenset[ColumnType]
) -> tuple[int, ...]:
    return tuple(i for i, kind in enumerate(types) if kind in wanted)


def _pair(indexes: tuple[int, ...], values: tuple[_T, ...], what: str) -> dict[int, _T]:
    if len(indexes) != len(values):
        raise BinlogError(f"{len(values)} {what} for {len(indexes)} columns")
    return dict(zip(indexes, values, strict=True))


def _all(data: bytes, read: Callable[[bytes, int], tuple[_T, int]]) -> tuple[_T, ...]:
    values = []
    at = 0
    while at < len(data):
        value, at = read(data, at)
        values.append(value)
    return tuple(values)


def _integers(data: bytes) -> tuple[int, ...]:
    return _all(data, packed_integer)


def _string(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = packed_integer(data, at)
    return _take(data, at, length), at + length


def _label_list(data: bytes, at: int) -> tuple[tuple[bytes, ...], int]:
    count, at = packed_integer(data, at)
    labels = []
    for _ in range(count):
        label, at = _string(data, at)
        labels.append(label)
    return tuple(labels), at


def _signedness(bits: bytes, types: tuple[int, ...]) -> tuple[bool | None, ...] | None:
    """Read one bit for each numeric column, the highest bit of a byte first.

    MariaDB counts YEAR as a numeric type, always unsigned. Returns None if the bits do not show
    whether this server does so.
    """
    plain = _flags(bits, _indexes(types, _NUMERIC), len(types))
    if ColumnType.YEAR not in types:
        if plain is None:
            raise BinlogError(f"{len(bits)} bytes of signedness do not fit the numeric columns")
        return plain
    counted = _flags(bits, _indexes(types, _NUMERIC | {ColumnType.YEAR}), len(types))
    if counted is not None:
        if not all(
            flag for flag, kind in zip(counted, types, strict=True) if kind == ColumnType.YEAR
        ):
            counted = None
        else:
            counted = tuple(
                None if kind == ColumnType.YEAR else flag
                for flag, kind in zip(counted, types, strict=True)
            )
    if plain is None or counted is None or plain == counted:
        return counted if plain is None else plain
    return None


def _flags(bits: bytes, indexes: tuple[int, ...], count: int) -> tuple[bool | None, ...] | None:
    """Return the bits by column; None if there are more bits than these columns need."""
    if len(bits) != (len(indexes) + 7) // 8:
        return None
    spare = 8 * len(bits) - len(indexes)
    if bits and bits[-1] & (1 << spare) - 1:
        return None
    flags: list[bool | None] = [None] * count
    for n, index in enumerate(indexes):
        flags[index] = bool(bits[n >> 3] << (n & 7) & 0x80)
    return tuple(flags)


def _text_collations(
    read: Callable[[tuple[int, ...], tuple[int, ...]], dict[int, int]],
    values: tuple[int, ...],
    types: tuple[int, ...],
) -> dict[int, int]:
    """Return the collations of the text columns, by index.

    MariaDB counts GEOMETRY among them, MySQL VECTOR, always binary. Returns nothing if the values
    have several readings that differ.
    """
    text = _indexes(types, _CHARACTER)
    odd = _COUNTED_BY_SOME.intersection(types)
    if not odd:
        return read(values, text)
    readings = []
    for counted in chain.from_iterable(combinations(odd, n) for n in range(len(odd) + 1)):
        indexes = _indexes(types, _CHARACTER.union(counted))
        try:
            found = read(values, indexes)
        except BinlogError:
            continue
        if all(found[i] == _BINARY for i in indexes if types[i] in odd):
            readings.append({i: found[i] for i in text})
    if not readings:
        raise BinlogError(f"the collations {values} do not fit the columns")
    return readings[0] if all(reading == readings[0] for reading in readings) else {}


def _column_charset(values: tuple[int, ...], indexes: tuple[int, ...]) -> dict[int, int]:
    return _pair(indexes, values, "collations")


def _default_charset(values: tuple[int, ...], indexes: tuple[int, ...]) -> dict[int, int]:
    """Read a default collation, then pairs of a column's rank in its kind and its collation."""
    if len(values) % 2 == 0 or any(rank >= len(indexes) for rank in values[1::2]):
        raise BinlogError(f"the default collations {values} do not fit {len(indexes)} columns")
    collations = dict.fromkeys(indexes, values[0])
    for rank, collation in zip(values[1::2], values[2::2], strict=True):
        collations[indexes[rank]] = collation
    return collations


_WIDTHS = {252: 2, 253: 3, 254: 8}


def packed_integer(data: bytes, at: int) -> tuple[int, int]:
    """Return the length-encoded integer at ``at`` and the offset after it.

    Raises BinlogError if the bytes end too early or can't be an integer.
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
