"""Columns of a shard for expression filters: their types, and their values from row lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from replicator.binlog.errors import BinlogError
from replicator.downstream.rows.literals import field_value
from replicator.mysql.column_types import Literal
from replicator.mysql.names import quote
from replicator.routing.expression.collation_folding import (
    GENERAL,
    PLAIN,
    SWEDISH,
    UNICODE,
    UNICODE_520,
    UNICODE_900,
    UNICODE_1400,
)
from replicator.routing.expression.evaluation import Value
from replicator.routing.expression.types import Collation, FilterColumn, Kind, ValueType
from replicator.rows.values.charsets import codec
from replicator.schema.structure.structure import Column, numbers_of

ReadField = Callable[[bytes], Value]

_BIGINT_DIGITS = 20
_MOST_SCALE = 30
_UTF8 = ("utf8mb4", "utf8mb3", "utf8")
_PADDED_KINDS = {
    "general_ci": GENERAL,
    "unicode_ci": UNICODE,
    "unicode_520_ci": UNICODE_520,
    "uca1400_ai_ci": UNICODE_1400,
    "bin": "",
}
_UNPADDED_KINDS = {
    "general_nopad_ci": GENERAL,
    "unicode_nopad_ci": UNICODE,
    "unicode_520_nopad_ci": UNICODE_520,
    "uca1400_nopad_ai_ci": UNICODE_1400,
    "nopad_bin": "",
    "0900_ai_ci": UNICODE_900,
    "0900_bin": "",
}
_EIGHT_BIT = {
    "latin1_swedish_ci": SWEDISH,
    "latin1_general_ci": PLAIN,
    "latin1_bin": "",
    "ascii_general_ci": PLAIN,
    "ascii_bin": "",
}


def filter_column(column: Column, *, mariadb: bool = False, doubtful: bool = False) -> FilterColumn:
    """Return a column of a shard for expression filters; ``mariadb``: of a MariaDB.

    ``doubtful``: whether the collation of its texts is uncertain.
    """
    kind = _type_of(column, mariadb)
    if doubtful and kind.kind is Kind.TEXT:
        charset = column.charset
        kind = replace(
            kind,
            kind=Kind.OTHER,
            why=(
                f"which collation {column.name} has is not known: a statement changed it whose"
                f" effect was seen on the target, and the target lacks collations of the source."
                f" Say which one is meant ({column.name} COLLATE {charset}_bin), or have the"
                " source tell it with its rows (binlog_row_metadata=MINIMAL)"
            ),
        )
    return FilterColumn(column.name, quote(column.name), kind)


def known_collation(name: str, *, mariadb: bool = False) -> Collation | None:
    """Return how a collation compares, if this is known exactly; otherwise None.

    MariaDB uses the names of MySQL's collations of Unicode 9 for its own of Unicode 14 (its page
    "Supported Character Sets and Collations").
    """
    charset, _, kind = name.partition("_")
    pads = True
    if name in _EIGHT_BIT:
        found = _EIGHT_BIT[name]
    elif charset in _UTF8 and kind in _PADDED_KINDS:
        found = _PADDED_KINDS[kind]
    elif charset in _UTF8 and kind in _UNPADDED_KINDS:
        found, pads = _UNPADDED_KINDS[kind], False
        if mariadb and found == UNICODE_900:
            found = UNICODE_1400
    else:
        return None
    return Collation(name, charset, codec(charset), found, pads)


def field_reader(column: FilterColumn, base_type: str) -> ReadField:
    """Return the function that converts a field of a row line.

    ``base_type``: the type of the shard's column. The function raises BinlogError or ValueError for
    a field that the column can't have.
    """
    kind = column.type.kind
    if column.type.collation is not None:
        return partial(_text, column.type.collation.codec)
    if base_type == "bit":
        return lambda field: int.from_bytes(_bytes(field), "big")
    match kind:
        case Kind.INTEGER | Kind.YEAR:
            return int
        case Kind.DECIMAL:
            return lambda field: int(field.replace(b".", b""))
        case Kind.DOUBLE:
            return float
        case Kind.DATE:
            return lambda field: field.decode()
        case Kind.DATETIME | Kind.TIMESTAMP:
            return _moment
        case Kind.TIME:
            return _microseconds
    return _bytes


def _bytes(field: bytes) -> bytes:
    return field_value(field) or b""


def _text(charset: str, field: bytes) -> Value:
    try:
        return _bytes(field).decode(charset)
    except UnicodeDecodeError as error:
        raise BinlogError(f"a text is none of its charset {charset}: {error}") from error


def _moment(field: bytes) -> Value:
    whole, _, fraction = field.decode().partition(".")
    return f"{whole}.{fraction:0<6}"


def _microseconds(field: bytes) -> Value:
    whole, _, fraction = field.decode().lstrip("-").partition(".")
    hours, minutes, seconds = map(int, whole.split(":"))
    found = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + int(f"{fraction:0<6}")
    return -found if field.startswith(b"-") else found


def _type_of(column: Column, mariadb: bool) -> ValueType:
    base, numbers = column.base_type, numbers_of(column)
    if column.sql_type.family == "integer":
        return ValueType(Kind.INTEGER, column.unsigned, whole=_BIGINT_DIGITS)
    if base == "bit":
        return ValueType(Kind.INTEGER, True, whole=_BIGINT_DIGITS)
    if base == "decimal":
        precision, scale = numbers if len(numbers) == 2 else (*(numbers or (10,)), 0)
        if scale > _MOST_SCALE:
            return _other(f"{column.name} has {scale} digits behind the point")
        return ValueType(Kind.DECIMAL, whole=precision - scale, scale=scale)
    if base in ("float", "double"):
        if len(numbers) == 2:
            return _other(
                f"{column.name} is {column.type}, whose values are compared with a tolerance"
            )
        return ValueType(Kind.DOUBLE)
    if column.sql_type.literal is Literal.QUOTED:
        return ValueType(Kind(base))
    if column.sql_type.family == "bytes":
        return ValueType(Kind.BINARY)
    if column.sql_type.literal in (Literal.TEXT, Literal.ENUM):
        return _text_type(column, mariadb)
    return _other(f"{column.name} is {column.type}")


def _text_type(column: Column, mariadb: bool) -> ValueType:
    if not column.charset or column.charset == "binary":
        return ValueType(Kind.BINARY)
    collation = known_collation(column.collation.lower(), mariadb=mariadb)
    if collation is None:
        return _other(f"how {column.collation} compares texts is not known here ({column.name})")
    return ValueType(Kind.TEXT, collation=collation)


def _other(why: str) -> ValueType:
    advice = "; such a column can only be asked whether it IS NULL"
    return ValueType(Kind.OTHER, why=f"{why}{advice}")
