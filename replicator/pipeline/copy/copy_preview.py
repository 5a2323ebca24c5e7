"""A preview of a full copy: its shards, chunks and statements, and the first rows to be written."""

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
"""Maximum number of characters of a displayed value."""

_AS_BYTES = frozenset({Literal.BIT, Literal.BINARY, Literal.GEOMETRY, Literal.VECTOR})
_BARE = frozenset({Literal.NUMBER, Literal.FLOAT, Literal.DOUBLE})


@dataclass(frozen=True, slots=True)
class ShardPreview:
    """One shard, with its server's estimates.

    Attributes:
        rows: estimated number of rows.
        size: estimated bytes.
        chunks: number of chunks that would be copied, by these estimates.
    """

    source: str
    table: TableName
    rows: int
    size: int
    chunks: int


@dataclass(frozen=True, slots=True)
class TargetPreview:
    """One target: the statements that would create it, and its first rows.

    Attributes:
        planned: whether a run would copy it.
        create: the statements that create its missing parts.
        columns: columns of the first shard that has rows.
        rows: rows of that shard, each value as a literal.
        problem: the reason why there is no plan.
    """

    target: TableName
    shards: tuple[ShardPreview, ...]
    planned: bool = True
    create: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    problem: str = ""


def first_rows(stream: SourceStream, copy: TableCopy, most: int) -> list[tuple[str, ...]]:
    """Return the first rows of a shard in the order of its key, as literals of target columns.

    Raises the driver's error, and BinlogError for text that the target's charset does not have.
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
    """Return the values of a row line as literals for people; long ones are cut."""
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
