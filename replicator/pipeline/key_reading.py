"""Reading the values of keys from shards, page by page, as digests that can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from replicator.downstream.literals import NULL_FIELD
from replicator.mysql.address import DatabaseAddress
from replicator.pipeline.copy_plan import Bound
from replicator.pipeline.key_fields import KeyRule, form_of, shown_as
from replicator.pipeline.key_plan import KeyColumn, KeyRead, last_place, page_query
from replicator.pipeline.key_weights import TargetWeights
from replicator.pipeline.source_stream import SourceStream
from replicator.rows.charsets import transcoder

PAGE_ROWS = 200_000
"""Rows that one statement reads: it keeps a source from cleaning up no longer than that takes."""

SHOWN_BYTES = 120
"""Bytes of a key's fields that are kept, to show them."""

_DIGEST = 16
_INTEGERS = 1 << 63
_NUMBERS = frozenset({KeyRule.NUMBER, KeyRule.BITS})


@dataclass(frozen=True, slots=True)
class KeyServers:
    """Where the keys are read, by source, and where they are to be unique."""

    sources: Mapping[str, DatabaseAddress]
    target: DatabaseAddress


@dataclass(frozen=True, slots=True)
class KeyValues:
    """Values of one key: two halves of a digest each, and the beginning of their fields.

    A whole number is its own first half.
    """

    high: NDArray[np.int64]
    low: NDArray[np.int64]
    shown: list[bytes]


class KeyReader:
    """The connections that one thread, or one executor, reads keys by."""

    def __init__(self, servers: KeyServers) -> None:
        self._servers = servers
        self._streams: dict[str, SourceStream] = {}
        self._weights = TargetWeights(servers.target)

    def values(self, read: KeyRead, *, behind: Bound = None, limit: int = 0) -> Iterator[KeyValues]:
        """The values of a key in a member from a place on; all of them, or ``limit``.

        Values with a NULL are left out: they are equal to none. Raises the driver's error, and
        BinlogError for a text that has no counterpart in the target's charset.
        """
        left = limit
        while True:
            rows = PAGE_ROWS if read.order else 0
            if limit:
                rows = min(rows, left) if rows else left
            count, last = 0, b""
            for block, number in self.stream(read.source).blocks(page_query(read, behind, rows)):
                lines = bytes(block).split(b"\n")[:number]
                count, last = count + number, lines[-1]
                yield self._values(read, lines)
            left -= count
            if not rows or count < rows or not read.order or (limit and left <= 0):
                return
            behind = last_place(read, last)

    def stream(self, source: str) -> SourceStream:
        """The connection to a source. Raises the driver's error."""
        if source not in self._streams:
            self._streams[source] = SourceStream(self._servers.sources[source])
        return self._streams[source]

    def drop(self, source: str) -> None:
        """Give up a connection that was left in the middle of an answer."""
        stream = self._streams.pop(source, None)
        if stream is not None:
            stream.close()

    def close(self) -> None:
        """Drop all connections."""
        self._weights.close()
        for source in list(self._streams):
            self.drop(source)

    def _values(self, read: KeyRead, lines: Sequence[bytes]) -> KeyValues:
        fields = _fields(read, lines)
        shown = _shown(read, fields)
        if len(fields) == 1 and _is_plain_number(read.columns[0]):
            numbers = _numbers(fields[0])
            if numbers is not None:
                return KeyValues(numbers, np.zeros(len(numbers), np.int64), shown)
        forms = list(map(self._forms, read.columns, fields))
        texts = forms[0] if len(forms) == 1 else map(_joined, zip(*forms, strict=True))
        digests = [blake2b(text, digest_size=_DIGEST).digest() for text in texts]
        pairs = np.frombuffer(b"".join(digests), ">i8")
        pairs = pairs.astype(np.int64).reshape(-1, 2)
        if len(fields) == 1 and read.columns[0].rule in _NUMBERS:
            _put_numbers(forms[0], pairs)
        return KeyValues(pairs[:, 0], pairs[:, 1], shown)

    def _forms(self, column: KeyColumn, fields: Sequence[bytes]) -> list[bytes]:
        form = form_of(column.rule)
        forms = [form(field) for field in fields]
        if column.mapped is not None:
            upper = column.mapped.upper
            forms = [b"%d" % (int(number) | upper) for number in forms]
        if column.transcode is not None:
            change = transcoder(*column.transcode)
            forms = [change(text) for text in forms]
        if column.comparing is not None:
            return self._weights.of(column.comparing, forms)
        return forms


def _fields(read: KeyRead, lines: Sequence[bytes]) -> list[Sequence[bytes]]:
    """The fields of the rows without a NULL, column by column."""
    width = sum(bool(column.selected) for column in read.columns)
    if width == len(read.columns) == 1 and not read.apart:
        # A line is its only field.
        return [[line for line in lines if line != NULL_FIELD]]
    rows = [line.split(b"\t")[:width] for line in lines]
    rows = [row for row in rows if NULL_FIELD not in row]
    given: Iterator[Sequence[bytes]] = iter(list(zip(*rows, strict=True)) if rows else [()] * width)
    return [
        next(given) if column.selected else (column.constant,) * len(rows)
        for column in read.columns
    ]


def _shown(read: KeyRead, fields: Sequence[Sequence[bytes]]) -> list[bytes]:
    readable = [
        values if (show := shown_as(column.rule, column.charset)) is None else map(show, values)
        for column, values in zip(read.columns, fields, strict=True)
    ]
    if len(readable) == 1:
        return [value[:SHOWN_BYTES] for value in readable[0]]
    return [b", ".join(row)[:SHOWN_BYTES] for row in zip(*readable, strict=True)]


def _is_plain_number(column: KeyColumn) -> bool:
    return column.rule is KeyRule.NUMBER and column.mapped is None


def _numbers(fields: Sequence[bytes]) -> NDArray[np.int64] | None:
    """Whole numbers as they are; None where one is not, or has no room."""
    try:
        return np.fromiter(map(int, fields), np.int64, len(fields))
    except (ValueError, OverflowError):
        return None


def _put_numbers(forms: Sequence[bytes], pairs: NDArray[np.int64]) -> None:
    """Put whole numbers in the place of their digests, as `_numbers` has them."""
    for place, form in enumerate(forms):
        if form.removeprefix(b"-").isdigit() and -_INTEGERS <= (number := int(form)) < _INTEGERS:
            pairs[place] = number, 0


def _joined(forms: tuple[bytes, ...]) -> bytes:
    """The columns of a value as one text, from which no other columns can come."""
    return b"".join([len(form).to_bytes(4, "big") + form for form in forms])
