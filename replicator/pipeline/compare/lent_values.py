"""Temporary values of unique keys for rows that have values which corrected rows need.

A row that is corrected may need a unique value of another wrong row, which needs the value of a
third row, and so on: if two shards number their rows, one chain may include all rows of the target.
Such a chain is not corrected in one transaction. Instead, the next row of the chain gets a value
that a corrected row frees. It stays wrong in the same columns, no row disappears, and it is
corrected later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from replicator.downstream.rows.literals import NULL_FIELD
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.compare.doubts import RowDifference

Values = tuple[bytes, ...]
"""The fields of a row in the columns of one unique key."""


@dataclass(frozen=True, slots=True)
class LentValues:
    """The rows to write.

    Attributes:
        rows: the rows that are corrected, and the rows that get values of these, all with the lines
            to write as ``in_shard``.
        borrowers: by key, the row lines of the rows that get values.
    """

    rows: list[RowDifference]
    borrowers: Mapping[bytes, bytes]


def lend_values(
    comparison: ComparisonPlan, wrong: Sequence[RowDifference], asked: Set[bytes]
) -> LentValues | None:
    """Give the rows that are not to be corrected values that the corrected rows free.

    A row gets other values only in columns that are wrong anyway. Returns None if there are too few
    values, or if values that differ as bytes may be equal for the target's server.

    Args:
        wrong: the wrong rows, each with a different key.
        asked: the keys to correct.
    """
    places = [at for unique in comparison.further for at in unique]
    forms = {at for at, _ in comparison.forms}
    if comparison.computed or len(places) != len(set(places)) or forms.intersection(places):
        return None
    if any(comparison.columns[at].collation for at in places):
        return None
    others = [one for one in wrong if one.key not in asked and one.kind == "different"]
    written = {one.key: (one.in_shard or b"").split(b"\t") for one in others}
    for unique in comparison.further:
        borrowers = [one for one in others if not set(unique).isdisjoint(one.columns)]
        lent = _lent(unique, borrowers, wrong)
        if lent is None:
            return None
        for key, values in lent.items():
            for at, value in zip(unique, values, strict=True):
                written[key][at] = value
    lines = {key: b"\t".join(fields) for key, fields in written.items()}
    changed = {one.key: lines[one.key] for one in others if lines[one.key] != one.in_shard}
    rows = [replace(one, in_shard=changed.get(one.key, one.in_shard)) for one in wrong]
    return LentValues([one for one in rows if one.in_shard != one.on_target], changed)


def _lent(
    unique: tuple[int, ...], borrowers: Sequence[RowDifference], wrong: Sequence[RowDifference]
) -> dict[bytes, Values] | None:
    """Return for each borrower the values of one unique key; None if there are too few."""

    def values(line: bytes) -> Values:
        fields = line.split(b"\t")
        return tuple(fields[at] for at in unique)

    borrowing = {one.key for one in borrowers}
    needed = {values(one.in_shard) for one in wrong if one.in_shard and one.key not in borrowing}
    had = {one.key: values(one.on_target) for one in wrong if one.on_target is not None}
    free = dict.fromkeys(old for old in had.values() if old not in needed)
    # A row whose value no other row needs keeps it. NULLs never conflict.
    lent = {
        one.key: had[one.key]
        for one in borrowers
        if had[one.key] in free or NULL_FIELD in had[one.key]
    }
    for old in lent.values():
        free.pop(old, None)
    by_columns: dict[tuple[int, ...], defaultdict[Values, list[Values]]] = {}
    for one in borrowers:
        if one.key in lent:
            continue
        right = tuple(n for n, at in enumerate(unique) if at not in one.columns)
        if right not in by_columns:
            by_columns[right] = defaultdict(list)
            for value in free:
                by_columns[right][tuple(value[n] for n in right)].append(value)
        fitting = by_columns[right][tuple(had[one.key][n] for n in right)]
        while fitting and fitting[-1] not in free:
            fitting.pop()
        if not fitting:
            return None
        lent[one.key] = fitting.pop()
        del free[lent[one.key]]
    return lent
