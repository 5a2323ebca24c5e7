"""Reads rows of a target and its shards once, in an executor, and compares them.

The first read of a range finds the keys that differ, by checksums and then by digests of the rows.
While rows are written, a difference may only mean that a change is not applied yet. So the keys are
returned as doubts, and further reads of the rows themselves decide
(`replicator.pipeline.compare.doubts`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise

from pymysql.err import MySQLError

from replicator.downstream.meta.held_shards import NOTHING_HELD, HeldShards
from replicator.downstream.rows.key_lookup import KEYS_PER_QUERY
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.errors import error_text
from replicator.mysql.server.binlog_end import blocking_binlog_end
from replicator.pipeline.compare.compare_plan import ComparedTable, ComparisonPlan
from replicator.pipeline.compare.compare_queries import (
    UNSUMMED,
    bound_of,
    bound_query,
    checksum_query,
    digests_query,
    key_rows_queries,
    rows_query,
)
from replicator.pipeline.compare.doubts import (
    MISMATCHES,
    BinlogEnds,
    Doubt,
    Evidence,
    RowDifference,
    RowGroup,
    differences_of,
    judged,
    key_digest,
)
from replicator.pipeline.copy.copy_plan import Bound
from replicator.pipeline.copy.source_stream import TARGET_SETTINGS, SourceStream

LARGEST_RANGE = 64 << 20
"""Maximum bytes of rows that are compared at a time; a larger range is split."""

KEYS_IN_DOUBT = 500
"""Maximum number of keys of a range that are read again one by one; if more differ, the range is
split."""

SMALL_RANGE = 2000
"""Maximum number of rows of a range that is read again as a whole, if most of it differs."""

PARTS = 16
"""Number of parts into which a range with many differing rows is cut. These rows are often close
together, so most parts are equal: a server reads these parts only once more. The other parts are
cut again."""

WrittenRow = tuple[bytes, bytes]
"""A normal row line, and the line as it is written to the target."""

MOST_CUTS = 10_000
"""Maximum number of parts into which a range is split at a time."""

LONGEST_REST = 2.0
"""Maximum seconds of a pause; a query that took longer has probably waited for a lock."""


@dataclass(frozen=True, slots=True)
class CompareServers:
    """The addresses of the servers.

    Attributes:
        rest: how many seconds a Spark task pauses for each second of a query. gh-ost calls this the
            nice ratio.
    """

    target: DatabaseAddress
    sources: Mapping[str, DatabaseAddress]
    rest: float = 0.0


@dataclass(frozen=True, slots=True)
class KeyRange:
    """A range to read for the first time.

    ``share``: the size of the range, as a part of a whole range.
    """

    lower: Bound
    upper: Bound
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class RangeComparison:
    """The result of the first read of a range.

    Attributes:
        rows: number of rows of the target.
        by_shard: number of rows of each shard.
        doubt: the keys that differ.
        checksum: the sum of the rows' checksums on the target; None if it was not needed.
        cuts: bounds at which to split a range that is too large; then all other fields are empty.
        failure: why a server could not be read.
    """

    rows: int = 0
    by_shard: tuple[int, ...] = ()
    doubt: Doubt | None = None
    checksum: int | None = None
    cuts: tuple[tuple[bytes, ...], ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True)
class DoubtComparison:
    """The result of a further read.

    Attributes:
        differ: rows that differ for certain.
        held: how many differing rows wait, because their shard is held.
        left: rows that are still in doubt.
        failure: why a server could not be read.
    """

    differ: tuple[RowDifference, ...] = ()
    held: int = 0
    left: tuple[Doubt, ...] = ()
    failure: str = ""


@dataclass(slots=True)
class Sessions:
    """The connections of one Spark task, one to each server."""

    servers: CompareServers
    _streams: dict[str, SourceStream] = field(default_factory=dict)
    _last: str = ""
    _asked: float = 0.0

    def to(self, source: str) -> SourceStream:
        """Return the connection to a source, or to the target if empty.

        Raises the driver's error.
        """
        if self.servers.rest:
            worked = time.monotonic() - self._asked if self._asked else 0.0
            time.sleep(min(self.servers.rest * worked, LONGEST_REST))
            self._asked = time.monotonic()
        self._last = source
        if source not in self._streams:
            self._streams[source] = (
                SourceStream(self.servers.sources[source])
                if source
                else SourceStream(self.servers.target, settings=TARGET_SETTINGS)
            )
        return self._streams[source]

    def failure(self, error: MySQLError) -> str:
        """Return an error of the last used server, with its name. Closes all connections."""
        self.close()
        where = f"source {self._last}" if self._last else "the target"
        return f"{where}: {error_text(error)}"

    def close(self) -> None:
        """Close all connections."""
        while self._streams:
            self._streams.popitem()[1].close()


class _TooLargeError(Exception):
    """A range has more rows than can be compared at a time; ``table`` has too many."""

    def __init__(self, table: ComparedTable, rows: int) -> None:
        super().__init__(table.name)
        self.table = table
        self.rows = rows


def compare_range(
    comparison: ComparisonPlan,
    key_range: KeyRange,
    sessions: Sessions,
    *,
    checksums: bool,
    most: int,
) -> RangeComparison:
    """Compare a range, or split it if a table has more than ``most`` rows in it.

    A server's error is returned as `RangeComparison.failure`.
    """
    try:
        try:
            return _compared_range(comparison, key_range, sessions, checksums=checksums, most=most)
        except _TooLargeError as large:
            every = min(most, max(1, large.rows // 2))
            cuts = _cuts(large.table, key_range.lower, key_range.upper, every, sessions)
        if cuts:
            return RangeComparison(cuts=cuts)
        return _compared_range(comparison, key_range, sessions, checksums=checksums, most=0)
    except MySQLError as error:
        return RangeComparison(failure=sessions.failure(error))


def _compared_range(
    comparison: ComparisonPlan,
    key_range: KeyRange,
    sessions: Sessions,
    *,
    checksums: bool,
    most: int,
) -> RangeComparison:
    """Compare a range; with ``most`` 0, of any size. Raises _TooLargeError."""
    digests = checksums and comparison.checksums
    if digests:
        sums = _sums(comparison, key_range, sessions, most)
        (rows, summed), others = sums[0], sums[1:]
        digests = all(of_table < UNSUMMED for _, of_table in sums)
        if digests and (rows, summed) == (sum(r for r, _ in others), sum(s for _, s in others)):
            return RangeComparison(rows, tuple(rows for rows, _ in others), checksum=summed)
    if digests and comparison.key and not comparison.forms:
        counts, keys = _by_digests(comparison, key_range, sessions)
    else:
        counts, keys = _by_rows(comparison, key_range, sessions, most)
    by_shard = tuple(counts[1:])
    if not keys:
        return RangeComparison(counts[0], by_shard)
    many = not comparison.key or len(keys) > KEYS_IN_DOUBT
    if many and most and max(counts) > SMALL_RANGE:
        largest = counts.index(max(counts))
        table = (comparison.target, *comparison.shards)[largest]
        every = max(SMALL_RANGE // 2, max(counts) // PARTS)
        cuts = _cuts(table, key_range.lower, key_range.upper, every, sessions)
        if cuts:
            return RangeComparison(cuts=cuts)
    by_key = comparison.key and (comparison.target.where or not many)
    asked = tuple(sorted(keys)) if by_key else ()
    ends = binlog_ends(comparison, sessions)
    doubt = Doubt(key_range.lower, key_range.upper, len(keys), asked, ends=ends)
    return RangeComparison(counts[0], by_shard, doubt)


def compare_doubt(
    comparison: ComparisonPlan,
    doubt: Doubt,
    sessions: Sessions,
    *,
    applied: bool,
    held: HeldShards = NOTHING_HELD,
    mismatches: int = MISMATCHES,
) -> DoubtComparison:
    """Read rows in doubt once more.

    A server's error is returned as `DoubtComparison.failure`.

    Args:
        applied: whether the target has all changes that the sources had at the previous read,
            except for rows of held shards.
        held: the shards whose rows wait.
        mismatches: as for `Evidence.suffices`.
    """
    try:
        try:
            return _compared_doubt(
                comparison, doubt, sessions, applied, held, mismatches, limited=True
            )
        except _TooLargeError as large:
            parts = _parts(doubt, large, sessions)
        if parts:
            return DoubtComparison(left=parts)
        return _compared_doubt(
            comparison, doubt, sessions, applied, held, mismatches, limited=False
        )
    except MySQLError as error:
        return DoubtComparison(failure=sessions.failure(error))


def _compared_doubt(
    comparison: ComparisonPlan,
    doubt: Doubt,
    sessions: Sessions,
    applied: bool,
    held: HeldShards,
    mismatches: int,
    *,
    limited: bool,
) -> DoubtComparison:
    # The target is read first: if its shard has the same value before and after this read, the
    # target must have it.
    groups = row_groups(comparison, doubt, sessions, limit=LARGEST_RANGE if limited else 0)
    ends = binlog_ends(comparison, sessions)
    quiet = applied and ends == doubt.ends
    before = {evidence.key: evidence for evidence in doubt.evidence}
    first = not doubt.evidence
    unique = {place for places in comparison.further for place in places}
    differ: list[RowDifference] = []
    waiting = 0
    left: list[Evidence] = []
    keys: list[bytes] = []
    for key, group in groups.items():
        digest = key_digest(key)
        if not first and digest not in before:
            continue
        evidence = judged(digest, group, before.get(digest), applied=applied)
        if evidence is None:
            continue
        found = list(differences_of(comparison, key, group))
        others = [difference for difference in found if not held.holds(difference.shard)]
        # If the shard of a row is held, no further read can decide: the row waits.
        if quiet or evidence.suffices(mismatches, unique) or (applied and not others):
            differ += others
            waiting += sum(d.times for d in found) - sum(d.times for d in others)
        else:
            left.append(evidence)
            keys.append(key)
    if not left:
        return DoubtComparison(tuple(differ), waiting)
    asked = tuple(keys) if doubt.keys else ()
    still = replace(doubt, rows=len(left), keys=asked, evidence=tuple(left), ends=ends)
    return DoubtComparison(tuple(differ), waiting, (still,))


def row_groups(
    comparison: ComparisonPlan, doubt: Doubt, sessions: Sessions, *, limit: int = 0
) -> dict[bytes, RowGroup]:
    """Return the rows of a doubt by key, without the keys whose rows are equal.

    ``limit``: maximum number of bytes of one table's rows; 0 for no limit. Raises _TooLargeError,
    and the driver's error.
    """

    def rows_of(table: ComparedTable) -> list[WrittenRow]:
        if doubt.keys:
            return rows_with_keys(comparison, table, doubt.keys, sessions, limit=limit)
        query = rows_query(table, doubt.lower, doubt.upper)
        return _rows(comparison, table, [query], sessions, limit)

    target = rows_of(comparison.target)
    shards = {number: rows_of(shard) for number, shard in enumerate(comparison.shards)}
    return unequal_groups(comparison, target, shards, frozenset(doubt.keys))


def unequal_groups(
    comparison: ComparisonPlan,
    target: Iterable[WrittenRow],
    shards: Mapping[int, Iterable[WrittenRow]],
    asked: frozenset[bytes],
) -> dict[bytes, RowGroup]:
    """Return rows by key, without the keys whose rows are equal.

    Args:
        shards: rows of the shards, by number.
        asked: the keys to compare; empty for all. By its collation, a server also returns rows with
            other keys; these are skipped.
    """
    groups: dict[bytes, RowGroup] = {}

    def group_of(normal: bytes) -> RowGroup | None:
        key = comparison.key_of(normal)
        return groups.setdefault(key, RowGroup()) if not asked or key in asked else None

    for row in target:
        if (group := group_of(row[0])) is not None:
            group.on_target.append(row)
    for number, rows in shards.items():
        for normal, written in rows:
            if (group := group_of(normal)) is not None:
                group.in_shards.append((normal, written, number))
    return {key: group for key, group in groups.items() if not group.equal}


def rows_with_keys(
    comparison: ComparisonPlan,
    table: ComparedTable,
    keys: Iterable[bytes],
    sessions: Sessions,
    *,
    per_query: int = KEYS_PER_QUERY,
    limit: int = 0,
) -> list[WrittenRow]:
    """Return the rows of a table with these keys of the target; ``limit`` as for `row_groups`."""
    return _rows(comparison, table, key_rows_queries(table, keys, per_query), sessions, limit)


def lines_with_keys(
    comparison: ComparisonPlan,
    table: ComparedTable,
    keys: Iterable[bytes],
    sessions: Sessions,
    per_query: int,
) -> Counter[bytes]:
    """Count the lines of the rows with these keys, as the server writes them."""
    found: Counter[bytes] = Counter()
    for query in key_rows_queries(table, keys, per_query):
        for lines, _ in lines_of(table, query, sessions):
            if table.transcodes:
                lines = [table.written(line) for line in lines]
            found.update(lines)
    return found


def _rows(
    comparison: ComparisonPlan,
    table: ComparedTable,
    queries: Iterable[bytes],
    sessions: Sessions,
    limit: int,
) -> list[WrittenRow]:
    found: list[WrittenRow] = []
    size = 0
    for query in queries:
        for lines, length in lines_of(table, query, sessions):
            size += length
            if limit and size > limit and len(found) > 1:
                # Close the sessions, since the rest of the result is not read.
                sessions.close()
                raise _TooLargeError(table, len(found))
            for line in lines:
                written = table.written(line)
                found.append((comparison.normal(written), written))
    return found


def _parts(doubt: Doubt, large: _TooLargeError, sessions: Sessions) -> tuple[Doubt, ...]:
    """Split a doubt into smaller ones; empty if it can't be split."""
    if doubt.keys:
        half = len(doubt.keys) // 2
        halves = (doubt.keys[:half], doubt.keys[half:]) if half else ()
        return tuple(replace(doubt, rows=len(keys), keys=keys) for keys in halves)
    every = max(1, large.rows // 2)
    bounds = (
        doubt.lower,
        *_cuts(large.table, doubt.lower, doubt.upper, every, sessions),
        doubt.upper,
    )
    if len(bounds) == 2:
        return ()
    return tuple(
        replace(doubt, lower=lower, upper=upper, rows=every) for lower, upper in pairwise(bounds)
    )


def _cuts(
    table: ComparedTable, lower: Bound, upper: Bound, every: int, sessions: Sessions
) -> tuple[tuple[bytes, ...], ...]:
    return tuple(islice(bounds_in(table, lower, upper, every, sessions), MOST_CUTS))


def bounds_in(
    table: ComparedTable, lower: Bound, upper: Bound, every: int, sessions: Sessions
) -> Iterator[tuple[bytes, ...]]:
    """Yield the key of each ``every``-th row of a table in a range. Raises the driver's error."""
    behind = lower
    while True:
        rows = sessions.to(table.source).rows(bound_query(table, behind, upper, every))
        if not rows:
            return
        behind = bound_of(table, rows[0])
        if behind == upper:
            return
        yield behind


def _sums(
    comparison: ComparisonPlan, key_range: KeyRange, sessions: Sessions, most: int
) -> list[tuple[int, int]]:
    sums = []
    for table in (comparison.target, *comparison.shards):
        query = checksum_query(comparison, table, key_range.lower, key_range.upper)
        ((*found,),) = sessions.to(table.source).rows(query)
        rows, summed = (int(str(_plain(value))) for value in found)
        if most and rows > most:
            raise _TooLargeError(table, 2 * most)
        sums.append((rows, summed))
    return sums


def _plain(value: object) -> object:
    return value.decode() if isinstance(value, bytes) else value


def _by_digests(
    comparison: ComparisonPlan, key_range: KeyRange, sessions: Sessions
) -> tuple[list[int], set[bytes]]:
    """Return each table's number of rows, and the differing keys, from the servers' digests."""

    def of_table(table: ComparedTable) -> Iterator[Sequence[bytes]]:
        query = digests_query(comparison, table, key_range.lower, key_range.upper)
        for lines, _ in lines_of(table, query, sessions):
            yield lines

    return _differing(comparison, of_table, lambda line: line.rpartition(b"\t")[0])


def _by_rows(
    comparison: ComparisonPlan, key_range: KeyRange, sessions: Sessions, most: int
) -> tuple[list[int], set[bytes]]:
    """Return each table's number of rows, and the differing keys, from the rows themselves."""

    def of_table(table: ComparedTable) -> Iterator[Sequence[bytes]]:
        size = count = 0
        query = rows_query(table, key_range.lower, key_range.upper)
        for lines, length in lines_of(table, query, sessions):
            size += length
            count += len(lines)
            if most and count > 1 and (size > LARGEST_RANGE or count > most):
                sessions.close()
                raise _TooLargeError(table, count)
            if table.transcodes or comparison.forms:
                yield [comparison.normal(table.written(line)) for line in lines]
            else:
                yield lines

    return _differing(comparison, of_table, comparison.key_of)


def _differing(
    comparison: ComparisonPlan,
    of_table: Callable[[ComparedTable], Iterator[Sequence[bytes]]],
    key_of: Callable[[bytes], bytes],
) -> tuple[list[int], set[bytes]]:
    # The shards are read first, so that the target's rows are at least as new, unless they are
    # held.
    shards: Counter[bytes] = Counter()
    counts = []
    for shard in comparison.shards:
        before = shards.total()
        for lines in of_table(shard):
            shards.update(lines)
        counts.append(shards.total() - before)
    target: Counter[bytes] = Counter()
    for lines in of_table(comparison.target):
        target.update(lines)
    differing = (shards - target) + (target - shards)
    return [target.total(), *counts], {key_of(line) for line in differing}


def lines_of(
    table: ComparedTable, query: bytes, sessions: Sessions
) -> Iterator[tuple[list[bytes], int]]:
    """Yield the lines of a result block by block, with the size of each block in bytes.

    Raises the driver's error. The sessions must be closed if the result is not read to its end.
    """
    for block, rows in sessions.to(table.source).blocks(query):
        yield bytes(block).split(b"\n")[:rows], len(block)


def binlog_ends(comparison: ComparisonPlan, sessions: Sessions) -> BinlogEnds:
    """Return the present end of each source's binlog. Raises the driver's error."""
    ends = []
    for source in dict.fromkeys(shard.source for shard in comparison.shards):
        end = blocking_binlog_end(sessions.to(source))
        if end is not None:
            ends.append((source, end.file, end.offset))
    return tuple(ends)
