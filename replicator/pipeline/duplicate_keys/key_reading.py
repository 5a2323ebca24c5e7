"""Reading the values of keys from shards, as digests that can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, pairwise

from replicator.pipeline.compare.compare_plan import rows_query
from replicator.pipeline.compare.compare_rows import Sessions, bounds_in, lines_of
from replicator.pipeline.copy.copy_plan import Bound
from replicator.pipeline.duplicate_keys.key_plan import KeyColumn, KeyRead
from replicator.pipeline.duplicate_keys.text_weights import TargetWeights

PAGE_ROWS = 200_000
"""Rows that one statement reads: it keeps a source from cleaning up no longer than that takes."""

SHOWN_BYTES = 120
"""Bytes of a key's fields that are kept, to show them."""

_PLAIN = 16
"""Bytes of a value that is its own digest, at most; digests are longer."""

Value = tuple[bytes, bytes]
"""A value of a key: a digest that is the same for equal ones, and the beginning of its row line."""


@dataclass(slots=True)
class KeyReader:
    """Reads keys by the connections of one thread, or one executor.

    Both methods raise the driver's error, and BinlogError for a text that has no counterpart in the
    target's charset; the sessions must be closed then.
    """

    sessions: Sessions
    _weights: TargetWeights = field(init=False)

    def __post_init__(self) -> None:
        self._weights = TargetWeights(self.sessions)

    def all(self, read: KeyRead) -> Iterator[Value]:
        """All values of a key in a member."""
        bounds: Iterator[Bound] = iter(())
        if read.table.cut:
            bounds = bounds_in(read.table, None, None, PAGE_ROWS, self.sessions)
        for lower, upper in pairwise(chain((None,), bounds, (None,))):
            yield from self._values(read, rows_query(read.table, lower, upper))

    def first(self, read: KeyRead, behind: Bound, most: int) -> Iterator[Value]:
        """The first values of a key in a member behind a bound."""
        return self._values(read, rows_query(read.table, behind, None, most))

    def _values(self, read: KeyRead, query: bytes) -> Iterator[Value]:
        for lines, _ in lines_of(read.table, query, self.sessions):
            written = list(map(read.table.written, lines))
            fields = [written]
            if len(read.columns) > 1:
                fields = list(map(list, zip(*(line.split(b"\t") for line in written), strict=True)))
            forms = list(map(self._forms, read.columns, fields))
            texts = forms[0] if len(forms) == 1 else map(_joined, zip(*forms, strict=True))
            for text, line in zip(texts, written, strict=True):
                if len(text) > _PLAIN:
                    text = blake2b(text, digest_size=_PLAIN + 4).digest()
                yield text, line[:SHOWN_BYTES]

    def _forms(self, column: KeyColumn, fields: Sequence[bytes]) -> list[bytes]:
        forms = list(map(column.form, fields))
        return self._weights.of(column.comparing, forms) if column.comparing else forms


def _joined(forms: tuple[bytes, ...]) -> bytes:
    """The columns of a value as one text, from which no other columns can come."""
    return b"".join([len(form).to_bytes(4, "big") + form for form in forms])
