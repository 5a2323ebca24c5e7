"""Decides, by several reads, whether differing rows are wrong, or only not applied yet.

Each read fetches the target's rows, then the shards' rows, then the ends of the binlogs. The next
read begins when the target has applied everything up to these ends. If a shard has the same value
at both reads, the target must therefore have it in between. A column that has another value at the
second read counts as one mismatch. A row that equals its shard's row of either read is right.

If nothing was written between two reads, one mismatch is proof. Otherwise a value may have changed
and changed back in between, and a target that lags a little shows the value of that time. So a
column needs several mismatches in a row. For a column that changes back and forth as fast as
possible, each of them has a probability of one in four. Changes of other columns do not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from replicator.downstream.rows.literals import field_value
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.column_types import Literal
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.compare.findings import ColumnExample, RowExample
from replicator.pipeline.copy.copy_plan import Bound

MISMATCHES = 8
"""Mismatches in a row after which a column is wrong although its source is written to."""

_LONGEST = 60
"""Maximum characters of a value in an example."""
_DIGEST_BYTES = 8
_COUNT = -1
"""The column number that stands for the number of rows."""

BinlogEnds = tuple[tuple[str, str, int], ...]
"""The end of each source's binlog: source, file and offset."""


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_BYTES).digest()


def key_digest(key: bytes) -> bytes:
    """Return a short digest that names a key line."""
    return _digest(key)


@dataclass(frozen=True, slots=True)
class ColumnMark:
    """A differing column.

    Attributes:
        column: index of the column, or `_COUNT`.
        in_shard: the digest of the shard's value.
        mismatches: mismatches in a row so far.
    """

    column: int
    in_shard: bytes
    mismatches: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """The result of the last read of one key that differs.

    Attributes:
        key: the digest of the key line.
        in_shards: the digest of the rows of all shards.
        marks: the differing columns.
    """

    key: bytes
    in_shards: bytes
    marks: tuple[ColumnMark, ...]

    def suffices(self, mismatches: int, unique: Collection[int] = ()) -> bool:
        """Return whether the row is wrong although its source is written to.

        Args:
            mismatches: mismatches that a column needs. A missing or extra row needs `MISMATCHES`.
            unique: the columns of further unique keys. If the row differs in one of these, this
                column needs `MISMATCHES`: another row may have the value until changes are applied.
        """
        certain = [mark for mark in self.marks if mark.column == _COUNT or mark.column in unique]
        if certain:
            return all(mark.mismatches >= MISMATCHES for mark in certain)
        return any(mark.mismatches >= mismatches for mark in self.marks)


@dataclass(frozen=True, slots=True)
class Doubt:
    """Rows of a range that differ, possibly only because a change is not applied yet.

    Attributes:
        rows: number of rows.
        keys: the key lines to read again; empty to read the whole range again.
        evidence: the results of the last read.
        ends: the ends of the binlogs after the last read.
    """

    lower: Bound
    upper: Bound
    rows: int
    keys: tuple[bytes, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    ends: BinlogEnds = ()


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that differs.

    Attributes:
        key: the key line.
        on_target: the target's row line as it is written; None if the target lacks the row.
        in_shard: the shard's row line as it is written; None if only the target has the row.
        shard: the shard; empty if only the target has the row.
        times: number of equal rows that the target lacks, or that only the target has.
        columns: the indexes of the differing columns, if both sides have the row.
        seen: if there is no key, the number of equal rows on the target.
    """

    key: bytes
    on_target: bytes | None
    in_shard: bytes | None
    shard: str = ""
    times: int = 1
    columns: tuple[int, ...] = ()
    seen: int = 0

    @property
    def kind(self) -> str:
        """``missing`` on the target, ``extra`` on the target, or ``different``."""
        if self.on_target is None:
            return "missing"
        return "extra" if self.in_shard is None else "different"

    @property
    def digest(self) -> bytes:
        """A digest of the row and of its difference."""
        return _digest(b"%r|%r|%r|%d" % (self.key, self.on_target, self.in_shard, self.times))


@dataclass(slots=True)
class RowGroup:
    """All rows with one key, or without a key all equal rows.

    Attributes:
        on_target: for each row of the target, its normal line and its line as it is written.
        in_shards: the same for each row of a shard, with the number of the shard.
    """

    on_target: list[tuple[bytes, bytes]] = field(default_factory=list)
    in_shards: list[tuple[bytes, bytes, int]] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Whether the target has the same rows as the shards."""
        return sorted(n for n, _ in self.on_target) == sorted(n for n, _, _ in self.in_shards)


def judged(
    digest: bytes, group: RowGroup, before: Evidence | None, *, applied: bool
) -> Evidence | None:
    """Return the evidence about a key whose rows differ now; None if they are right.

    Args:
        digest: the digest of the key line.
        group: the rows with the key.
        before: the evidence of the previous read.
        applied: whether the target has all changes that the sources had at the previous read.
    """
    target = [normal for normal, _ in group.on_target]
    shards = sorted(normal for normal, _, _ in group.in_shards)
    if before is not None and _all(sorted(target)) == before.in_shards:
        return None
    earlier = {mark.column: mark for mark in before.marks} if before else {}
    marks = []
    for column, value in _differing(target, shards):
        mark = earlier.get(column)
        stayed = mark is not None and mark.in_shard == value
        mismatches = mark.mismatches + 1 if mark is not None and stayed and applied else 0
        marks.append(ColumnMark(column, value, mismatches))
    return Evidence(digest, _all(shards), tuple(marks))


def _differing(target: list[bytes], shards: list[bytes]) -> Iterator[tuple[int, bytes]]:
    if len(target) != 1 or len(shards) != 1:
        yield _COUNT, _digest(b"%d" % len(shards))
        return
    pairs = zip(target[0].split(b"\t"), shards[0].split(b"\t"), strict=True)
    for column, (there, here) in enumerate(pairs):
        if there != here:
            yield column, _digest(here)


def _all(lines: list[bytes]) -> bytes:
    return _digest(b"\n".join(lines))


def differences_of(
    comparison: ComparisonPlan, key: bytes, group: RowGroup
) -> Iterator[RowDifference]:
    """Yield the rows that only the target or only the shards have.

    If there is a key, a row of the target and a row of a shard are combined into one ``different``
    row, until the rows of one side are used up.
    """
    names = [str(shard) for shard in comparison.shards]
    missing = Counter(normal for normal, _, _ in group.in_shards)
    extra = Counter(normal for normal, _ in group.on_target)
    missing, extra = missing - extra, extra - missing
    there = dict(group.on_target)
    here = {normal: (written, names[shard]) for normal, written, shard in group.in_shards}
    pairing = bool(comparison.key)
    for normal, times in missing.items():
        written, shard = here[normal]
        if pairing and extra:
            other = next(iter(extra))
            del extra[other]
            pairs = zip(other.split(b"\t"), normal.split(b"\t"), strict=True)
            columns = tuple(n for n, (old, new) in enumerate(pairs) if old != new)
            yield RowDifference(key, there[other], written, shard, columns=columns)
            times -= 1
        if times:
            yield RowDifference(key, None, written, shard, times)
    for normal, times in extra.items():
        yield RowDifference(key, there[normal], None, times=times)


def example_of(comparison: ComparisonPlan, difference: RowDifference) -> RowExample:
    """Return an example of a differing row for people.

    It has the differing columns, and the key; without a key, the whole row.
    """
    line = difference.on_target or difference.in_shard or b""
    fields = line.split(b"\t")
    places = comparison.key or range(len(comparison.columns))
    key = ", ".join(_shown(comparison.columns[at], fields[at]) for at in places)
    columns = []
    if difference.on_target is not None and difference.in_shard is not None:
        there, here = difference.on_target.split(b"\t"), difference.in_shard.split(b"\t")
        for at in difference.columns:
            column = comparison.columns[at]
            shown = _quoted(column, here[at]), _quoted(column, there[at])
            columns.append(ColumnExample(column.name, *shown))
    return RowExample(difference.kind, difference.shard, key, tuple(columns))


def _quoted(column: TargetColumn, field: bytes) -> str:
    shown = _shown(column, field)
    return shown if shown == "NULL" or shown.startswith("0x") else repr(shown)


def _shown(column: TargetColumn, field: bytes) -> str:
    value = field_value(field)
    if value is None:
        return "NULL"
    binary = column.literal in (Literal.BINARY, Literal.BIT, Literal.GEOMETRY, Literal.VECTOR)
    text = "0x" + value.hex().upper() if binary else value.decode("utf-8", "backslashreplace")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
