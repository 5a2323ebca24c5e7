"""Reading the values of keys from shards, page by page, as digests that can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from replicator.mysql.connection.address import DatabaseAddress
from replicator.pipeline.copy.copy_plan import Bound
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.pipeline.duplicate_keys.key_equality import TargetWeights
from replicator.pipeline.duplicate_keys.key_plan import KeyColumn, KeyRead, last_place, page_query
from replicator.rows.values.charsets import transcoder

PAGE_ROWS = 200_000
"""Rows that one statement reads: it keeps a source from cleaning up no longer than that takes."""

SHOWN_BYTES = 120
"""Bytes of a key's fields that are kept, to show them."""

_PLAIN = 16
"""Bytes of a value that is its own digest, at most; digests are longer."""


@dataclass(frozen=True, slots=True)
class KeyServers:
    """Where the keys are read, by source, and where they are to be unique."""

    sources: Mapping[str, DatabaseAddress]
    target: DatabaseAddress


class KeyReader:
    """The connections that one thread, or one executor, reads keys by."""

    def __init__(self, servers: KeyServers) -> None:
        self._servers = servers
        self._streams: dict[str, SourceStream] = {}
        self._weights = TargetWeights(servers.target)

    def values(
        self, read: KeyRead, *, behind: Bound = None, limit: int = 0
    ) -> Iterator[tuple[bytes, bytes]]:
        """The values of a key in a member from a place on; all of them, or ``limit``.

        Each as a digest that is the same for equal ones, and the beginning of its row line. Raises
        the driver's error, and BinlogError for a text that has no counterpart in the target's
        charset.
        """
        rows = min(PAGE_ROWS, limit or PAGE_ROWS) if read.order else limit
        left = limit
        while True:
            count, last = 0, b""
            for block, number in self.stream(read.member.source).blocks(
                page_query(read, behind, rows)
            ):
                lines = bytes(block).split(b"\n")[:number]
                count, last = count + number, lines[-1]
                yield from self._digests(read, lines)
            left -= count
            if not read.order or count < rows or (limit and left <= 0):
                return
            rows = min(rows, left) if limit else rows
            behind = last_place(read, last)

    def places(self, read: KeyRead, query: bytes) -> list[tuple[bytes, ...]]:
        """The rows of a query to a member's source. Raises the driver's error."""
        lines = [
            line
            for block, number in self.stream(read.member.source).blocks(query)
            for line in bytes(block).split(b"\n")[:number]
        ]
        return [tuple(line.split(b"\t")) for line in lines]

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

    def _digests(self, read: KeyRead, lines: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
        fields: Sequence[Sequence[bytes]] = [lines]
        width = len(read.columns)
        if len(read.selected) > 1:
            rows = [line.split(b"\t")[:width] for line in lines]
            lines = [b"\t".join(row) for row in rows]
            fields = list(zip(*rows, strict=True))
        forms = list(map(self._forms, read.columns, fields))
        texts = forms[0] if width == 1 else map(_joined, zip(*forms, strict=True))
        for text, line in zip(texts, lines, strict=True):
            digest = text if len(text) <= _PLAIN else blake2b(text, digest_size=_PLAIN + 4).digest()
            yield digest, line[:SHOWN_BYTES]

    def _forms(self, column: KeyColumn, fields: Sequence[bytes]) -> list[bytes]:
        forms = list(map(column.form, fields))
        if column.transcode is not None:
            forms = list(map(transcoder(*column.transcode), forms))
        return self._weights.of(column.comparing, forms) if column.comparing else forms


def _joined(forms: tuple[bytes, ...]) -> bytes:
    """The columns of a value as one text, from which no other columns can come."""
    return b"".join([len(form).to_bytes(4, "big") + form for form in forms])
