"""Whether rows that differ are wrong, or only on their way: decided by several looks. Pure.

Each look reads the target, then the shards, and notes where the binlogs end. The next one comes
when the target has all up to there. So what the shards have at both looks, the target must have in
between; a column that it has otherwise then is a *strike*. A row that equals what its shard has at
one of the two looks is right.

Where nothing was written between two looks, one strike is certain. Otherwise a value may have gone
away and come back in between, which a target that is a little behind shows. So a column needs some
strikes in a row: a column that flips as fast as it can gets each with a chance of one in four.
Other columns of the row may change all the time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from replicator.downstream.rows.literals import field_value
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.column_types import Literal
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.compare.findings import ColumnExample, RowExample
from replicator.pipeline.copy.copy_plan import Bound

STRIKES = 8
"""In a row, for a column of a row whose source is written to."""

_LONGEST = 60
"""Characters of a value that are shown."""
_DIGEST_BYTES = 8
_COUNT = -1
"""Stands for a column where the numbers of rows differ."""

BinlogEnds = tuple[tuple[str, str, int], ...]
"""By source, where its binlog ends, as file and offset."""


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_BYTES).digest()


def key_digest(key: bytes) -> bytes:
    """A short name of a key line."""
    return _digest(key)


@dataclass(frozen=True, slots=True)
class ColumnMark:
    """A column that differs: the digest of what the shard has there, and the strikes so far."""

    column: int
    in_shard: bytes
    strikes: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the last look has seen of a key; ``in_shards`` is the digest of all the shards' rows."""

    key: bytes
    in_shards: bytes
    marks: tuple[ColumnMark, ...]

    def suffices(self, strikes: int) -> bool:
        """Whether the row is wrong, although its source is written to.

        ``strikes``: of a column. A row that is missing, or that only the target has, needs
        `STRIKES`.
        """
        return any(
            mark.strikes >= (STRIKES if mark.column == _COUNT else strikes) for mark in self.marks
        )


@dataclass(frozen=True, slots=True)
class Doubt:
    """Rows of a range that differ, perhaps on their way.

    ``rows``: how many. ``keys``: the key lines to look up; none where the whole range is to be
    looked at. ``ends``: where the binlogs ended behind the last look.
    """

    lower: Bound
    upper: Bound
    rows: int
    keys: tuple[bytes, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    ends: BinlogEnds = ()


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that differs: its lines as they are written, on the target and in its shard, where it
    is there.

    ``times``: how often it is there too few times (or, on the target only, too many times).
    ``columns``: the indexes of those that differ, where both have it. ``seen``: without a key, how
    many rows of the target were equal to it.
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
        """``missing`` on the target, ``extra`` there, or ``different``."""
        if self.on_target is None:
            return "missing"
        return "extra" if self.in_shard is None else "different"

    @property
    def digest(self) -> bytes:
        """The row, and how it differs."""
        return _digest(b"%r|%r|%r|%d" % (self.key, self.on_target, self.in_shard, self.times))


@dataclass(slots=True)
class RowGroup:
    """All rows with one key: as normal lines and as they are written, and the number of the shard.

    Without a key, all equal rows.
    """

    on_target: list[tuple[bytes, bytes]] = field(default_factory=list)
    in_shards: list[tuple[bytes, bytes, int]] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Whether the target has what the shards have."""
        return sorted(n for n, _ in self.on_target) == sorted(n for n, _, _ in self.in_shards)


def judged(
    digest: bytes, group: RowGroup, before: Evidence | None, *, applied: bool
) -> Evidence | None:
    """What is known of a key that differs now; None where it is right.

    ``before``: what the look before has seen, ``applied``: since when the target has all of it.
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
        strikes = mark.strikes + 1 if mark is not None and stayed and applied else 0
        marks.append(ColumnMark(column, value, strikes))
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
    """The rows of a group that only the target or only the shards have, in pairs where they can."""
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
    """A row for people: its key (without one, all of it), and the columns that differ."""
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
