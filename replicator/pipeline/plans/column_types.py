"""What the name of a column type says about its values on the wire and in predicates."""

from __future__ import annotations

from replicator.binlog.events.column_types import ColumnType as Wire
from replicator.pipeline.plans.plan import Literal
from replicator.schema.structure.structure import Column

_BLOB = frozenset({Wire.BLOB, Wire.TINY_BLOB, Wire.MEDIUM_BLOB, Wire.LONG_BLOB})
_LONG = _BLOB | {Wire.BLOB_COMPRESSED}
_VARIABLE = frozenset({Wire.VARCHAR, Wire.VAR_STRING, Wire.VARCHAR_COMPRESSED})
_GEOMETRY_TYPES = (
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
    "geomcollection",
)

WIRE_TYPES: dict[str, frozenset[int]] = {
    "tinyint": frozenset({Wire.TINY}),
    "smallint": frozenset({Wire.SHORT}),
    "mediumint": frozenset({Wire.INT24}),
    "int": frozenset({Wire.LONG}),
    "bigint": frozenset({Wire.LONGLONG}),
    "float": frozenset({Wire.FLOAT}),
    "double": frozenset({Wire.DOUBLE}),
    "decimal": frozenset({Wire.DECIMAL}),
    "bit": frozenset({Wire.BIT}),
    "year": frozenset({Wire.YEAR}),
    "date": frozenset({Wire.DATE, Wire.NEWDATE}),
    "time": frozenset({Wire.TIME, Wire.TIME_2}),
    "datetime": frozenset({Wire.DATETIME, Wire.DATETIME_2}),
    "timestamp": frozenset({Wire.TIMESTAMP, Wire.TIMESTAMP_2}),
    "char": frozenset({Wire.STRING}),
    "binary": frozenset({Wire.STRING}),
    "varchar": _VARIABLE,
    "varbinary": _VARIABLE,
    "tinytext": _LONG,
    "text": _LONG,
    "mediumtext": _LONG,
    "longtext": _LONG,
    "tinyblob": _LONG,
    "blob": _LONG,
    "mediumblob": _LONG,
    "longblob": _LONG,
    "json": _LONG | {Wire.JSON},
    "enum": frozenset({Wire.ENUM}),
    "set": frozenset({Wire.SET}),
    "uuid": frozenset({Wire.STRING}),
    "inet4": frozenset({Wire.STRING}),
    "inet6": frozenset({Wire.STRING}),
    "vector": _VARIABLE | {Wire.VECTOR},
    **{name: _BLOB | {Wire.GEOMETRY} for name in _GEOMETRY_TYPES},
}
"""The wire types that a column can have, by the first word of its type."""

OLD_TEMPORAL = frozenset({Wire.TIME, Wire.DATETIME, Wire.TIMESTAMP})
"""Formats before MySQL 5.6 and MariaDB 10.1: the table map does not tell the fraction's digits."""

_LITERALS: dict[str, Literal] = {
    **dict.fromkeys(
        ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal"), Literal.NUMBER
    ),
    "float": Literal.FLOAT,
    "double": Literal.DOUBLE,
    "bit": Literal.BIT,
    **dict.fromkeys(("year", "date", "time", "datetime", "timestamp"), Literal.QUOTED),
    **dict.fromkeys(("uuid", "inet4", "inet6"), Literal.PARSED),
    "json": Literal.JSON,
    "vector": Literal.VECTOR,
    "enum": Literal.ENUM,
    **dict.fromkeys(_GEOMETRY_TYPES, Literal.GEOMETRY),
    **dict.fromkeys(
        ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "set"), Literal.TEXT
    ),
}

EXACT_LITERALS = frozenset(
    {Literal.NUMBER, Literal.BIT, Literal.QUOTED, Literal.PARSED, Literal.BINARY}
)
"""Values of these are equal exactly when their bytes are: no collation, no negative zero."""


def literal_of(column: Column) -> Literal:
    """How a column's values are written and compared."""
    return _LITERALS.get(column.base_type, Literal.BINARY)
