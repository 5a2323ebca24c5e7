"""Samples of the values of a key, chosen to detect shards that share values.

Random rows of two large shards hardly ever match, however many values the shards share. So the same
ranges of the key are read in all members, each in its own order: from the first value on, from
places within the range of the smaller members, and from near the last value. If there are few rows,
all are read.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, groupby, pairwise
from operator import itemgetter

from pymysql.err import MySQLError

from replicator.binlog.errors import BinlogError
from replicator.downstream.rows.literals import field_value
from replicator.mysql.column_types import Literal
from replicator.mysql.errors import error_text
from replicator.mysql.names import Member
from replicator.pipeline.compare.compare_queries import bound_of, bound_query, rows_query
from replicator.pipeline.compare.compare_rows import CompareServers, Sessions, bounds_in, lines_of
from replicator.pipeline.copy.copy_plan import Bound
from replicator.pipeline.duplicate_keys.key_plan import KeyColumn, KeyRead
from replicator.pipeline.duplicate_keys.text_weights import TargetWeights
from replicator.rows.values.charsets import codec
from replicator.rows.values.fields import escape

PAGE_ROWS = 200_000
"""Rows that one statement reads. While a statement runs, its server can't purge old row
versions."""

SHOWN_BYTES = 120
"""Maximum number of displayed bytes of a key's fields."""

_PLAIN = 16
"""Length, in bytes, of the longest value that is its own digest; digests are longer."""

Value = tuple[bytes, bytes]
"""A value of a key: a digest that is the same for equal values, and the beginning of its row
line."""


@dataclass(slots=True)
class KeyReader:
    """Reads keys over the connections of one thread, or one executor.

    Both methods raise the driver's error, and BinlogError for a text that can't be converted to the
    target's charset. After an error, the sessions must be closed.
    """

    sessions: Sessions
    _weights: TargetWeights = field(init=False)

    def __post_init__(self) -> None:
        self._weights = TargetWeights(self.sessions)

    def all(self, read: KeyRead) -> Iterator[Value]:
        """Yield all values of a key in a member."""
        bounds: Iterator[Bound] = iter(())
        if read.table.cut:
            bounds = bounds_in(read.table, None, None, PAGE_ROWS, self.sessions)
        for lower, upper in pairwise(chain((None,), bounds, (None,))):
            yield from self._values(read, rows_query(read.table, lower, upper))

    def first(self, read: KeyRead, after: Bound, most: int) -> Iterator[Value]:
        """Yield the first values of a key in a member after a bound."""
        return self._values(read, rows_query(read.table, after, None, most))

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
    """Return the columns of a value as one text, which differs if any column differs."""
    return b"".join([len(form).to_bytes(4, "big") + form for form in forms])


EXAMPLES = 20
"""Number of shared values that are kept as examples."""

HOLDERS = 10
"""Number of rows with a shared value whose members are kept."""

REFERENCES = 3
"""Number of members whose ranges of values determine the places."""

PARTS = 4
"""Number of parts into which a range is divided, to read from the beginning of each."""

FARTHEST = 100_000
"""Maximum number of index entries that are skipped to find a place."""

FEWEST = 20
"""Minimum number of values that are read from a place."""

STATEMENTS = 2000
"""Maximum number of statements for the places and members of a key."""

Row = tuple[bytes, int, bytes]
"""A row that was read: the digest of its value, the number of its member, its line."""


@dataclass(frozen=True, slots=True)
class SharedValue:
    """A value that several rows have.

    Its text, the members of its first rows, the number of rows.
    """

    value: str
    members: tuple[Member, ...]
    rows: int


@dataclass(slots=True)
class KeyTally:
    """The result of reading the values of one key.

    Attributes:
        looked_at: number of values read.
        shared: number of values that several rows have.
        by_member: the number of rows with shared values of each member.
        whole: whether all values were read.
        failures: why members could not be read.
    """

    looked_at: int = 0
    shared: int = 0
    by_member: Counter[Member] = field(default_factory=Counter)
    examples: list[SharedValue] = field(default_factory=list)
    whole: bool = True
    failures: dict[Member, str] = field(default_factory=dict)

    def add_example(
        self, reads: Sequence[KeyRead], line: bytes, holders: Sequence[int], rows: int
    ) -> None:
        """Keep a shared value as an example, unless there are enough.

        ``line`` is the line of its first row, ``holders`` are numbers of members.
        """
        if len(self.examples) < EXAMPLES:
            members = tuple(reads[number].member for number in holders)
            self.examples.append(SharedValue(reads[holders[0]].readable(line), members, rows))

    def count(self, reads: Sequence[KeyRead], rows: Iterable[Row]) -> None:
        """Count rows of one key; ``reads``: the key's members, by their numbers."""
        for _, equal in groupby(sorted(rows), itemgetter(0)):
            _, members, lines = zip(*equal, strict=True)
            self.looked_at += len(members)
            if len(members) > 1:
                self.shared += 1
                self.by_member.update(reads[number].member for number in members)
                self.add_example(reads, lines[0], members[:HOLDERS], len(members))


def sample_key(reads: Sequence[KeyRead], servers: CompareServers, size: int) -> KeyTally:
    """Read about ``size`` values of one key from its members. Blocks."""
    tally = KeyTally()
    with contextlib.closing(Sessions(servers)) as sessions:
        sample = _Sample(reads, sessions, KeyReader(sessions), tally.failures)
        rows = sample.all(size) if sum(read.estimate for read in reads) <= size else None
        if rows is None:
            tally.whole = False
            tally.failures.clear()
            # A set, since places may be so near to each other that a row was read from several.
            rows = list(set(sample.ranges(size)))
    tally.count(reads, rows)
    return tally


@dataclass(frozen=True, slots=True)
class _Sample:
    reads: Sequence[KeyRead]
    sessions: Sessions
    reader: KeyReader
    failures: dict[Member, str]

    def all(self, size: int) -> list[Row] | None:
        """Return all values.

        Return None if the servers' estimates of the number of rows were far too low.
        """
        rows: list[Row] = []
        for number, read in enumerate(self.reads):
            rows += self._rows(number, read, None, 3 * size + 1 - len(rows))
            if len(rows) > 3 * size:
                return None
        return rows

    def ranges(self, size: int) -> Iterator[Row]:
        """Yield the values of all members from the same places on."""
        count = len(self.reads)
        parts = PARTS if count * REFERENCES * PARTS <= STATEMENTS else 1
        places: list[tuple[KeyRead, Bound]] = [(self.reads[0], None)]
        for read in sorted(self.reads, key=lambda read: read.estimate)[:REFERENCES]:
            with contextlib.suppress(MySQLError):  # Reported when its values are read.
                near = size // (count * REFERENCES * PARTS)
                places += [(read, place) for place in self._places(read, parts, near)]
        limit = max(FEWEST, size // (count * len(places)))
        for number, read in enumerate(self.reads):
            for of, place in places:
                behind = _place_in(read, of, place)
                if read.member not in self.failures and (behind is not None or place is None):
                    yield from self._rows(number, read, behind, limit)

    def _rows(self, number: int, read: KeyRead, after: Bound, limit: int) -> Iterator[Row]:
        try:
            for digest, line in self.reader.first(read, after, limit):
                yield digest, number, line
        except (MySQLError, BinlogError) as error:
            self.sessions.close()
            self.failures[read.member] = error_text(error)

    def _places(self, read: KeyRead, parts: int, near: int) -> Iterator[tuple[bytes, ...]]:
        first = self._place(read, 0) if read.table.cut else None
        if first is None:
            return
        last = self._place(read, near, from_end=True)
        if last is not None:
            yield last
            if len(read.table.cut) == 1 and read.table.cut[0].literal is Literal.NUMBER:
                with contextlib.suppress(ValueError):  # a DECIMAL
                    low, high = int(first[0]), int(last[0])
                    starts = [low - 1, *(low + (high - low) * n // parts for n in range(1, parts))]
                    yield from ((b"%d" % start,) for start in starts)
                    return
        for n in range(1, parts):
            place = self._place(read, min(read.estimate, FARTHEST) * n // parts)
            if place is not None:
                yield place

    def _place(
        self, read: KeyRead, offset: int, *, from_end: bool = False
    ) -> tuple[bytes, ...] | None:
        query = bound_query(read.table, None, None, offset + 1, from_end=from_end)
        rows = self.sessions.to(read.member.source).rows(query)
        return bound_of(read.table, rows[0]) if rows else None


def _place_in(read: KeyRead, of: KeyRead, place: Bound) -> Bound:
    """Convert a place in the values of ``of`` to another member's charsets; None if impossible."""
    own, its = read.table.cut, of.table.cut
    if place is None or [c.literal for c in own] != [c.literal for c in its]:
        return None
    found = []
    for to, since, value in zip(own, its, place, strict=True):
        text = since.charset and to.charset and since.charset != to.charset
        try:
            found.append(_transcoded(value, since.charset, to.charset) if text else value)
        except (BinlogError, UnicodeError):
            return None
    return tuple(found)


def _transcoded(field: bytes, since: str, to: str) -> bytes:
    value = field_value(field) or b""
    return escape(value.decode(codec(since)).encode(codec(to)))
