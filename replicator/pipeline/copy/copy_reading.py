"""Reads the rows of a chunk from its source, as text or as typed values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from pymysql.err import MySQLError

from replicator.downstream.rows.bulk_statements import NOT_PREPARED, NotTypedError
from replicator.downstream.rows.literals import NULL_FIELD, field_value
from replicator.mysql.connection.prepared_statements import WireType
from replicator.mysql.errors import error_code
from replicator.pipeline.copy.binary_rows import UnknownTypeError
from replicator.pipeline.copy.copy_plan import CopyChunk, TableCopy, chunk_query
from replicator.pipeline.copy.copy_writing import Block
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.rows.values.charsets import transcoder
from replicator.rows.values.fields import escape


class SourceFailedError(Exception):
    """The source raised ``error`` while its rows were being written to the target."""

    def __init__(self, error: MySQLError) -> None:
        super().__init__(str(error))
        self.error = error


def read_text(stream: SourceStream, chunk: CopyChunk) -> Iterator[Block]:
    """Yield the blocks of a chunk's rows."""
    with _of_source():
        yield from stream.blocks(chunk_query(chunk))


def read_typed(
    stream: SourceStream, chunk: CopyChunk
) -> tuple[Sequence[WireType], Callable[[int], Iterator[Block]]]:
    """Return the types of a chunk's values, and a function from a block size to blocks of rows."""
    with or_not_typed():
        rows = stream.typed(chunk_query(chunk))

    def blocks(room: int) -> Iterator[Block]:
        with or_not_typed():
            yield from rows.blocks(room)

    return rows.types, blocks


@contextmanager
def _of_source() -> Iterator[None]:
    """Raise the source's errors as SourceFailedError, so that they don't count as the target's."""
    try:
        yield
    except MySQLError as error:
        raise SourceFailedError(error) from error


@contextmanager
def or_not_typed() -> Iterator[None]:
    """As `_of_source`; raises NotTypedError for an error that reading as text would not cause."""
    try:
        with _of_source():
            yield
    except UnknownTypeError as error:
        raise NotTypedError(str(error)) from error
    except SourceFailedError as failed:
        if error_code(failed.error) in NOT_PREPARED:
            raise NotTypedError(str(failed)) from failed
        raise


def converted(copy: TableCopy, blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the blocks with the text of some columns converted to the target's charset."""
    if not copy.transcodes:
        yield from blocks
        return
    changes = [(place, transcoder(*codecs)) for place, *codecs in copy.transcodes]
    for block, rows in blocks:
        lines = bytes(block).split(b"\n")[:-1]
        for number, line in enumerate(lines):
            fields = line.split(b"\t")
            for place, change in changes:
                if fields[place] != NULL_FIELD:
                    fields[place] = escape(change(field_value(fields[place]) or b""))
            lines[number] = b"\t".join(fields)
        yield memoryview(b"\n".join(lines) + b"\n"), rows
