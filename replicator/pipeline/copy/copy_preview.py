"""What a full copy would do, and the first rows of it as they would be written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replicator.binlog.errors import BinlogError
from replicator.downstream.rows.literals import field_value
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.column_types import Literal
from replicator.mysql.names import TableName, quote
from replicator.pipeline.copy.copy_plan import CopyChunk, TableCopy, chunk_query
from replicator.pipeline.copy.copy_reading import converted
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.rows.values.charsets import codec

MOST_CHARACTERS = 60
"""Of a value that is shown."""

_AS_BYTES = frozenset({Literal.BIT, Literal.BINARY, Literal.GEOMETRY, Literal.VECTOR})
_BARE = frozenset({Literal.NUMBER, Literal.FLOAT, Literal.DOUBLE})


@dataclass(frozen=True, slots=True)
class ShardPreview:
    """One shard: ``rows`` and ``size`` (bytes) as its server estimates them, and in how many
    ``chunks`` it would be copied by that."""

    source: str
    table: TableName
    rows: int
    size: int
    chunks: int


@dataclass(frozen=True, slots=True)
class TargetPreview:
    """One target: what it would be made by, and its first rows.

    ``planned``: a run would copy it. ``create``: the statements that make what is missing of it.
    ``columns`` and ``rows``: those of its first shard that has some, each value as a literal.
    ``problem``: why there is no plan.
    """

    target: TableName
    shards: tuple[ShardPreview, ...]
    planned: bool = True
    create: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    problem: str = ""


def first_rows(stream: SourceStream, copy: TableCopy, most: int) -> list[tuple[str, ...]]:
    """The first rows of a shard in the order of its key, as literals of its target's columns.

    Raises the driver's error, and BinlogError for text that has no counterpart.
    """
    order = b",".join(quote(column.name).encode() for column in copy.key)
    query = chunk_query(CopyChunk(copy, 0, None, None))
    query += (b" ORDER BY %s" % order if order else b"") + b" LIMIT %d" % most
    found = []
    for block, _ in converted(copy, stream.blocks(query)):
        lines = bytes(block).split(b"\n")[:-1]
        found += [shown_row(line, copy.columns) for line in lines]
    return found


def shown_row(line: bytes, columns: Sequence[TargetColumn]) -> tuple[str, ...]:
    """The values of a row line as literals for people; long ones are cut."""
    fields = line.split(b"\t") if columns else []
    return tuple(_shown(field, column) for field, column in zip(fields, columns, strict=True))


def _shown(field: bytes, column: TargetColumn) -> str:
    value = field_value(field)
    if value is None:
        return "NULL"
    if column.literal in _AS_BYTES:
        return f"x'{_cut(value.hex())}'"
    try:
        text = value.decode(codec(column.charset) if column.charset else "utf-8")
    except (BinlogError, UnicodeDecodeError):
        return f"x'{_cut(value.hex())}'"
    return text if column.literal in _BARE else "'" + _cut(text.replace("'", "''")) + "'"


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
