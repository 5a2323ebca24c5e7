"""A look at some of the values of a key, so chosen that shards which share values are found out.

Rows picked at random from two large shards hardly ever meet, however many they share. So the same
ranges of the key are read in all members: from the first value on, from places within the range of
the smaller members, and from near their last one. Where there are few rows all are read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from pymysql.err import MySQLError

from replicator.binlog.errors import BinlogError
from replicator.downstream.columns import Literal, TargetColumn
from replicator.mysql.errors import error_text
from replicator.mysql.names import folded
from replicator.pipeline.copy_plan import Bound
from replicator.pipeline.key_plan import KeyRead, place_query
from replicator.pipeline.key_reading import KeyReader, KeyServers
from replicator.pipeline.key_tally import KeyRows, KeyTally, in_order, joined, tally

REFERENCES = 3
"""Members whose range of values the places are taken from."""

PARTS = 4
"""Into how many parts a range is cut, to read from the beginning of each."""

FARTHEST = 100_000
"""Entries of an index that are passed over to find a place, at most."""

FEWEST = 20
"""Values that are read from a place, at least."""

STATEMENTS = 2000
"""Statements that the places and members of a key may take."""


@dataclass(frozen=True, slots=True)
class KeyMember:
    """How a key is read from a member, and about how many rows it has."""

    read: KeyRead
    rows: int


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in the order of an index: behind these values of these columns, or the beginning."""

    order: tuple[TargetColumn, ...] = ()
    values: Bound = None

    def fits(self, read: KeyRead) -> bool:
        """Whether a member is read in the same order."""
        if self.values is None:
            return True
        return [folded(c.name) for c in read.order] == [folded(c.name) for c in self.order]


@dataclass(slots=True)
class KeySample:
    """What was found. ``whole``: all values were looked at; ``failures`` by member."""

    found: KeyTally
    whole: bool = True
    failures: dict[int, str] = field(default_factory=dict)


def sample_key(members: Sequence[KeyMember], servers: KeyServers, size: int) -> KeySample:
    """Look at about ``size`` values of one key. Blocks."""
    reader = KeyReader(servers)
    sample = KeySample(KeyTally(members[0].read.key))
    try:
        whole = sum(member.rows for member in members) <= size
        rows = list(_all(reader, members, sample, size) if whole else ())
        if not sample.whole or not whole:
            sample.whole = False
            sample.failures.clear()
            rows = list(_ranges(reader, members, sample, size))
    finally:
        reader.close()
    if rows:
        ordered = in_order(joined(rows))
        sample.found.add(tally([ordered if sample.whole else _once(ordered)])[sample.found.key])
    return sample


def _once(rows: KeyRows) -> KeyRows:
    """Rows that were read from several places, once."""
    again = np.zeros(len(rows), np.bool_)
    again[1:] = True
    for column in (rows.high, rows.low, rows.member):
        again[1:] &= column[1:] == column[:-1]
    for i in map(int, np.flatnonzero(again)):
        again[i] = rows.shown[i] == rows.shown[i - 1]
    kept = np.flatnonzero(~again)
    return KeyRows(
        rows.key[kept],
        rows.high[kept],
        rows.low[kept],
        rows.member[kept],
        [rows.shown[i] for i in kept.tolist()],
    )


def _all(
    reader: KeyReader, members: Sequence[KeyMember], sample: KeySample, size: int
) -> Iterator[KeyRows]:
    """All values. The servers' numbers are estimates: where there are too many it is given up."""
    left = 3 * size
    for member in members:
        for rows in _read(reader, member.read, sample, None, left + 1):
            left -= len(rows)
            yield rows
        if left < 0:
            sample.whole = False
            return


def _ranges(
    reader: KeyReader, members: Sequence[KeyMember], sample: KeySample, size: int
) -> Iterator[KeyRows]:
    smallest = sorted(members, key=lambda member: member.rows)[:REFERENCES]
    parts = PARTS if len(members) * REFERENCES * PARTS <= STATEMENTS else 1
    near = size // (len(members) * REFERENCES * PARTS)
    places = [_Place()]
    for member in smallest:
        with contextlib.suppress(MySQLError):  # told when its values are read
            places += _places(reader, member, parts, near)
    limit = max(FEWEST, size // (len(members) * len(places)))
    for member in members:
        for place in places:
            read = member.read
            if place.fits(read) and read.member not in sample.failures:
                # The values are written as literals of the columns that they are from.
                read = replace(read, order=place.order) if place.order else read
                yield from _read(reader, read, sample, place.values, limit)


def _read(
    reader: KeyReader, read: KeyRead, sample: KeySample, place: Bound, limit: int
) -> Iterator[KeyRows]:
    try:
        for values in reader.values(read, behind=place, limit=limit):
            size = len(values.shown)
            yield KeyRows(
                np.full(size, read.key, np.int32),
                values.high,
                values.low,
                np.full(size, read.member, np.int32),
                values.shown,
            )
    except (MySQLError, BinlogError) as error:
        reader.drop(read.source)
        sample.failures[read.member] = error_text(error)


def _places(reader: KeyReader, member: KeyMember, parts: int, near: int) -> Iterator[_Place]:
    """Places in the range of a member's values, in the order of its index."""
    read = member.read
    if not read.order:
        return
    first, last = _place(reader, read, 0), _place(reader, read, near, from_end=True)
    if first is None:
        return
    if last is not None:
        yield _Place(read.order, last)
    if last is not None and len(read.order) == 1 and read.order[0].literal is Literal.NUMBER:
        with contextlib.suppress(ValueError):  # a DECIMAL
            low, high = int(first[0]), int(last[0])
            yield _Place(read.order, (b"%d" % (low - 1),))
            for n in range(1, parts):
                yield _Place(read.order, (b"%d" % (low + (high - low) * n // parts),))
            return
    yield from (
        _Place(read.order, place)
        for n in range(1, parts)
        if (place := _place(reader, read, min(member.rows, FARTHEST) * n // parts)) is not None
    )


def _place(reader: KeyReader, read: KeyRead, offset: int, *, from_end: bool = False) -> Bound:
    query = place_query(read, offset, from_end=from_end)
    lines = [
        line
        for block, number in reader.stream(read.source).blocks(query)
        for line in bytes(block).split(b"\n")[:number]
    ]
    return tuple(lines[0].split(b"\t")) if lines else None
