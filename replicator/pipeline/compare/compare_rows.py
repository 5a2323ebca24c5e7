"""One look at a range of a target and its shards, inside an executor.

While rows are written a difference may only mean that a change is on its way. So a look tells how
far the sources were when it ended, and a later look, given the differences of the former, tells
which of them are still the same: those that are no change on its way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from pymysql.err import MySQLError

from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.errors import error_text
from replicator.mysql.server.binlog_end import blocking_binlog_end
from replicator.pipeline.compare.compare_plan import (
    UNSUMMED,
    ComparedTable,
    ComparisonPlan,
    bound_of,
    bound_query,
    checksum_query,
    rows_query,
)
from replicator.pipeline.copy.copy_plan import Bound
from replicator.pipeline.copy.source_stream import TARGET_SETTINGS, SourceStream

LARGEST_RANGE = 64 << 20
"""Bytes of rows that are compared at a time; a range that has more is cut."""

DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True)
class CompareServers:
    """How to reach the servers."""

    target: DatabaseAddress
    sources: Mapping[str, DatabaseAddress]


@dataclass(frozen=True, slots=True)
class Look:
    """What to look at: a range of the comparison with this number.

    ``former``: the differences of the look before (`RowDifference.digest`), None for the first.
    """

    comparison: int
    lower: Bound
    upper: Bound
    former: frozenset[bytes] | None = None


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that differs: its normal lines on the target and in the shards, where it is there.

    ``times``: how often it is there too few times (or, on the target only, too many times).
    """

    key: bytes
    on_target: bytes | None
    in_shard: bytes | None
    shard: str = ""
    times: int = 1

    @property
    def kind(self) -> str:
        """``missing`` on the target, ``extra`` there, or ``different``."""
        if self.on_target is None:
            return "missing"
        return "extra" if self.in_shard is None else "different"

    @property
    def key_digest(self) -> bytes:
        """The row, whatever its values are."""
        return blake2b(self.key, digest_size=DIGEST_BYTES).digest()

    @property
    def digest(self) -> bytes:
        """The row, and how it differs."""
        state = b"%r|%r|%d" % (self.on_target, self.in_shard, self.times)
        return self.key_digest + blake2b(state, digest_size=DIGEST_BYTES).digest()


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look found.

    ``rows``: those of the target, ``by_shard`` those of each shard. ``differences``: of a first
    look all, of a later one those that stayed the same. ``pending``: the digests of differences
    that a further look has to decide. ``ends``: by source, where its binlog ended behind the look,
    as file and offset. ``failure``: why a server could not be read.
    """

    rows: int = 0
    by_shard: tuple[int, ...] = ()
    differences: tuple[RowDifference, ...] = ()
    pending: tuple[bytes, ...] = ()
    ends: tuple[tuple[str, str, int], ...] = ()
    failure: str = ""


@dataclass(slots=True)
class Sessions:
    """The connections of one Spark task; one to each server."""

    servers: CompareServers
    _streams: dict[str, SourceStream] = field(default_factory=dict)

    def to(self, source: str) -> SourceStream:
        """The connection to a source, or (empty) the target. Raises the driver's error."""
        if source not in self._streams:
            self._streams[source] = (
                SourceStream(self.servers.sources[source])
                if source
                else SourceStream(self.servers.target, settings=TARGET_SETTINGS)
            )
        return self._streams[source]

    def close(self) -> None:
        """Drop all connections."""
        while self._streams:
            self._streams.popitem()[1].close()


class _TooLargeError(Exception):
    """A range has more rows than are compared at a time; ``table`` is one that has many."""

    def __init__(self, table: ComparedTable, rows: int) -> None:
        super().__init__(table.name)
        self.table = table
        self.rows = rows


def look_at(
    comparison: ComparisonPlan, look: Look, sessions: Sessions, *, checksums: bool
) -> Looked:
    """Compare a range. Failures of the servers are told in the answer."""
    try:
        if checksums and comparison.checksums:
            equal = _equal_by_checksums(comparison, look, sessions)
            if equal is not None:
                return equal
        counts, differences = _compared(comparison, look.lower, look.upper, sessions)
        if look.former is not None:
            differences = _still(comparison, look, sessions, differences)
        ends = binlog_ends(comparison, sessions) if differences else ()
    except MySQLError as error:
        sessions.close()
        return Looked(failure=error_text(error))
    stayed = tuple(differences)
    pending: tuple[bytes, ...] = tuple(d.digest for d in differences)
    if look.former is not None:
        stayed = tuple(d for d in differences if d.digest in look.former)
        # A row that differed, and still does, but in another way: it is changed all the time.
        pending = tuple(d.digest for d in differences if d.digest not in look.former)
    return Looked(counts[0], tuple(counts[1:]), stayed, pending, ends)


def _still(
    comparison: ComparisonPlan,
    look: Look,
    sessions: Sessions,
    differences: Sequence[RowDifference],
) -> list[RowDifference]:
    """The differences that were there before, whose shards have the same rows afterwards, too."""
    assert look.former is not None
    keys = {digest[:DIGEST_BYTES] for digest in look.former}
    differences = [d for d in differences if d.key_digest in keys]
    if not differences:
        return []
    again = _compared(comparison, look.lower, look.upper, sessions)[1]
    shown = {d.digest for d in again}
    return [d for d in differences if d.digest in shown]


def _equal_by_checksums(
    comparison: ComparisonPlan, look: Look, sessions: Sessions
) -> Looked | None:
    """What was looked at, where it is equal; None where only the rows can tell."""
    sums = []
    for table in (comparison.target, *comparison.shards):
        query = checksum_query(comparison, table, look.lower, look.upper)
        ((*found,),) = sessions.to(table.source).rows(query)
        rows, summed = (int(str(_plain(value))) for value in found)
        if summed >= UNSUMMED:
            return None
        sums.append((rows, summed))
    by_shard = tuple(rows for rows, _ in sums[1:])
    if sums[0] != (sum(by_shard), sum(summed for _, summed in sums[1:])):
        return None
    return Looked(sums[0][0], by_shard)


def _plain(value: object) -> object:
    return value.decode() if isinstance(value, bytes) else value


def _compared(
    comparison: ComparisonPlan, lower: Bound, upper: Bound, sessions: Sessions
) -> tuple[list[int], list[RowDifference]]:
    """Rows of the target and of each shard, and the differences, of a range of any size."""
    try:
        return _compared_once(comparison, lower, upper, sessions)
    except _TooLargeError as large:
        bound = _middle(large, lower, upper, sessions)
        if bound is None:
            return _compared_once(comparison, lower, upper, sessions, limited=False)
    counts, differences = _compared(comparison, lower, bound, sessions)
    more, others = _compared(comparison, bound, upper, sessions)
    summed = [a + b for a, b in zip(counts, more, strict=True)]
    return summed, differences + others


def _middle(large: _TooLargeError, lower: Bound, upper: Bound, sessions: Sessions) -> Bound:
    table = large.table
    rows = sessions.to(table.source).rows(bound_query(table, lower, upper, max(1, large.rows // 2)))
    if not rows:
        return None
    bound = bound_of(table, rows[0])
    return None if bound == upper else bound


def _compared_once(
    comparison: ComparisonPlan,
    lower: Bound,
    upper: Bound,
    sessions: Sessions,
    *,
    limited: bool = True,
) -> tuple[list[int], list[RowDifference]]:
    # The shards first: what the target has is then at least as new, unless it waits.
    limit = LARGEST_RANGE if limited and comparison.ranged else 0
    shards = []
    size = 0
    for shard in comparison.shards:
        lines, size = _lines(comparison, shard, lower, upper, sessions, size, limit)
        shards.append(lines)
    target, _ = _lines(comparison, comparison.target, lower, upper, sessions, 0, limit)
    every: Counter[bytes] = Counter()
    for lines in shards:
        every.update(lines)
    missing, extra = every - target, target - every
    counts = [target.total(), *(lines.total() for lines in shards)]
    return counts, list(paired(comparison, missing, extra, shards))


def _lines(
    comparison: ComparisonPlan,
    table: ComparedTable,
    lower: Bound,
    upper: Bound,
    sessions: Sessions,
    size: int,
    limit: int,
) -> tuple[Counter[bytes], int]:
    """The normal lines of a range, and ``size`` with their bytes added."""
    found: Counter[bytes] = Counter()
    plain = not comparison.forms and not table.transcodes
    for block, rows in sessions.to(table.source).blocks(rows_query(table, lower, upper)):
        lines = bytes(block).split(b"\n")[:rows]
        found.update(lines if plain else [comparison.normal(table, line) for line in lines])
        size += len(block)
        if limit and size > limit and found.total() > 1:
            # The answer is not read to its end.
            sessions.close()
            raise _TooLargeError(table, found.total())
    return found, size


def paired(
    comparison: ComparisonPlan,
    missing: Counter[bytes],
    extra: Counter[bytes],
    shards: Sequence[Counter[bytes]],
) -> Iterator[RowDifference]:
    """The differences that rows make which only the shards have (``missing``), or only the target
    (``extra``): normal lines, with how often. ``shards``: all lines of each shard."""
    names = [str(shard) for shard in comparison.shards]
    by_key = {comparison.key_of(line): line for line in extra} if comparison.key else {}
    for line, times in missing.items():
        key = comparison.key_of(line)
        shard = next(name for name, lines in zip(names, shards, strict=True) if line in lines)
        other = by_key.pop(key, None)
        if other is not None:
            del extra[other]
        yield RowDifference(key, other, line, shard, times)
    for line, times in extra.items():
        yield RowDifference(comparison.key_of(line), line, None, "", times)


def binlog_ends(comparison: ComparisonPlan, sessions: Sessions) -> tuple[tuple[str, str, int], ...]:
    """By source, where its binlog ends now: file and offset. Raises the driver's error."""
    ends = []
    for source in dict.fromkeys(shard.source for shard in comparison.shards):
        end = blocking_binlog_end(sessions.to(source))
        if end is not None:
            ends.append((source, end.file, end.offset))
    return tuple(ends)
