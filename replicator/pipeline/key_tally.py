"""Counting values of keys that several rows share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

EXAMPLES = 20
"""Shared values that are kept as examples."""

HOLDERS = 10
"""Rows of a shared value whose members are kept."""


@dataclass(frozen=True, slots=True)
class SharedValue:
    """A value of a key that several rows have: its fields, the members of the first rows, how
    many rows."""

    shown: bytes
    members: tuple[int, ...]
    rows: int


@dataclass(slots=True)
class KeyTally:
    """What was found of one key: values looked at, values that several rows share, rows of these.

    ``by_member``: those rows by member.
    """

    key: int
    looked_at: int = 0
    shared: int = 0
    rows: int = 0
    by_member: Counter[int] = field(default_factory=Counter)
    examples: list[SharedValue] = field(default_factory=list)

    def add(self, other: KeyTally) -> None:
        """Take over what was found in other values of the key."""
        self.looked_at += other.looked_at
        self.shared += other.shared
        self.rows += other.rows
        self.by_member += other.by_member
        self.examples = (self.examples + other.examples)[:EXAMPLES]


@dataclass(frozen=True, slots=True)
class KeyRows:
    """Rows in the order of (key, high, low): the key, halves of the digest, the member, fields."""

    key: NDArray[np.int32]
    high: NDArray[np.int64]
    low: NDArray[np.int64]
    member: NDArray[np.int32]
    shown: Sequence[bytes]

    def __len__(self) -> int:
        return len(self.key)

    def part(self, start: int, end: int) -> KeyRows:
        """The rows from ``start`` up to, and without, ``end``."""
        cut = slice(start, end)
        return KeyRows(
            self.key[cut], self.high[cut], self.low[cut], self.member[cut], self.shown[cut]
        )


def joined(parts: Sequence[KeyRows]) -> KeyRows:
    """Several runs of rows as one."""
    return KeyRows(
        np.concatenate([part.key for part in parts]),
        np.concatenate([part.high for part in parts]),
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.member for part in parts]),
        [shown for part in parts for shown in part.shown],
    )


def in_order(rows: KeyRows) -> KeyRows:
    """Rows in the order that `tally` needs."""
    order = np.lexsort((rows.member, rows.low, rows.high, rows.key))
    return KeyRows(
        rows.key[order],
        rows.high[order],
        rows.low[order],
        rows.member[order],
        [rows.shown[i] for i in order],
    )


def tally(parts: Iterable[KeyRows]) -> dict[int, KeyTally]:
    """Count, by key, in rows that come part by part in their order.

    Only one part is in memory, and the rows that share the last value of it.
    """
    found: dict[int, KeyTally] = {}
    held: list[KeyRows] = []
    for part in parts:
        if not len(part):
            continue
        if held and not _same_value(held[-1], part):
            _count(joined(held), found)
            held = []
        start = _starts(part)[-1]
        if start:
            _count(joined([*held, part.part(0, int(start))]), found)
            held = []
        held.append(part.part(int(start), len(part)))
    if held:
        _count(joined(held), found)
    return found


def _same_value(before: KeyRows, behind: KeyRows) -> bool:
    last = (before.key[-1], before.high[-1], before.low[-1])
    return bool(last == (behind.key[0], behind.high[0], behind.low[0]))


def _starts(rows: KeyRows) -> NDArray[np.int64]:
    """Where each value begins."""
    changed = np.zeros(len(rows), np.bool_)
    changed[0] = True
    for column in (rows.key, rows.high, rows.low):
        changed[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(changed)


def _count(rows: KeyRows, found: dict[int, KeyTally]) -> None:
    starts = _starts(rows)
    lengths = np.diff(np.append(starts, len(rows)))
    keys = rows.key[starts]
    for key in np.unique(keys).tolist():
        of_key = keys == key
        shared = of_key & (lengths > 1)
        mask = np.repeat(shared, lengths)
        members, counts = np.unique(rows.member[mask], return_counts=True)
        found.setdefault(key, KeyTally(key)).add(
            KeyTally(
                key,
                looked_at=int(lengths[of_key].sum()),
                shared=int(shared.sum()),
                rows=int(lengths[shared].sum()),
                by_member=Counter(dict(zip(members.tolist(), counts.tolist(), strict=True))),
                examples=[
                    SharedValue(
                        rows.shown[starts[i]],
                        tuple(rows.member[starts[i] :][: min(lengths[i], HOLDERS)].tolist()),
                        int(lengths[i]),
                    )
                    for i in np.flatnonzero(shared)[:EXAMPLES].tolist()
                ],
            )
        )
