"""The net effect of many row events, computed on arrays.

The result is the same as from `replicator.pipeline.apply.net_effect`, which handles keys that
several shards have, keys in safe mode, and tables without a key. All other keys are handled
together: the first touch of a key shows whether there was a row before, the last whether there is
one now.

A *touch* is the effect of a row event on one key: an update that changes the key is two touches
(`replicator.rows.decoder.row_block.RowBlock.touches`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from replicator.downstream.rows.writing import NetChanges
from replicator.kernels.compiled import (
    INPUT,
    INTEGER,
    INTEGERS,
    NOTHING,
    TABLE_OF_BITS,
    TRUTHS,
    Bytes,
    Integers,
    Number,
    Truths,
    compiled,
    inlined,
)
from replicator.mysql.names import Member
from replicator.pipeline.apply.net_effect import DELETE, INSERT, Entry, net_effect
from replicator.pipeline.plans.plan import PlanList, TablePlan
from replicator.rows.decoder.lines import Lines
from replicator.rows.decoder.row_block import RowBlock, RowChange


@dataclass(frozen=True, slots=True)
class TouchedKeys:
    """The keys of touches, in the order of their first occurrence, as arrays.

    Attributes:
        first: the first touch of each key.
        last: the last touch of each key.
        mixed: whether the touches of a key are of several kinds.
        of: the key of each touch.
    """

    of: Integers
    first: Integers
    last: Integers
    mixed: Truths


def touched_keys(keys: Lines, key: Integers, kind: Integers) -> TouchedKeys:
    """Group touches by their keys.

    Args:
        key: for each touch, the index of its key in ``keys``.
        kind: the kind of each touch; a key with touches of several kinds is mixed.
    """
    count = len(key)
    slots = np.full(1 << max(4, (2 * count).bit_length()), -1, np.int64)
    of, first, last = (np.empty(count, np.int64) for _ in range(3))
    mixed = np.zeros(count, np.bool_)
    found = _group(keys.text, keys.starts, key, kind, slots, of, first, last, mixed)
    return TouchedKeys(of, first[:found], last[:found], mixed[:found])


@inlined
def _hash(text: Bytes, start: Number, end: Number) -> Number:
    """FNV-1a (its page by Fowler, Noll and Vo), with the high bits mixed into the low ones."""
    value = np.uint64(0xCBF29CE484222325)
    for place in range(start, end):
        value = (value ^ np.uint64(text[place])) * np.uint64(0x100000001B3)
    return value ^ (value >> np.uint64(29))


@compiled(
    INTEGER, INPUT, INTEGERS, INTEGERS, INTEGERS, INTEGERS, INTEGERS, INTEGERS, INTEGERS, TRUTHS
)
def _group(
    text: Bytes,
    starts: Integers,
    key: Integers,
    kind: Integers,
    slots: Integers,
    of: Integers,
    first: Integers,
    last: Integers,
    mixed: Truths,
) -> Number:
    mask = np.uint64(slots.shape[0] - 1)
    found = 0
    for touch in range(key.shape[0]):
        start, end = starts[key[touch]], starts[key[touch] + 1]
        slot = _hash(text, start, end) & mask
        while True:
            group = slots[slot]
            if group < 0:
                group = found
                slots[slot] = group
                first[group] = touch
                found += 1
                break
            other = starts[key[first[group]]]
            same = starts[key[first[group]] + 1] - other == end - start
            if same:
                for place in range(end - start):
                    if text[start + place] != text[other + place]:
                        same = False
                        break
            if same:
                if kind[touch] != kind[first[group]]:
                    mixed[group] = True
                break
            slot = (slot + np.uint64(1)) & mask
        of[touch] = group
        last[group] = touch
    return found


UPDATE = int(RowChange.UPDATE)


Bits = NDArray[np.uint64]

FIELDS = 2
"""The number of fields of a key that determine the order."""

_MINUS, _ZERO, _NINE, _TAB, _NEWLINE = 45, 48, 57, 9, 10
_MOST_DIGITS = 18
_PREFIX = 8


@compiled(NOTHING, INPUT, INTEGERS, INTEGERS, TABLE_OF_BITS)
def _ranks(text: Bytes, starts: Integers, keys: Integers, ranks: Bits) -> None:
    """Compute for each key and each of its first fields its number, or its first bytes."""
    for index in range(keys.shape[0]):
        at, end = starts[keys[index]], starts[keys[index] + 1]
        for field in range(ranks.shape[0]):
            first = at
            negative = at < end and text[at] == _MINUS
            if negative:
                at += 1
            digits = at
            number = np.uint64(0)
            while at < end and _ZERO <= text[at] <= _NINE and at - digits < _MOST_DIGITS:
                number = number * np.uint64(10) + np.uint64(text[at] - _ZERO)
                at += 1
            if at == digits or text[at] not in (_TAB, _NEWLINE):
                at = first
                number = np.uint64(0)
                for _ in range(_PREFIX):
                    number <<= np.uint64(8)
                    if at < end and text[at] not in (_TAB, _NEWLINE):
                        number |= np.uint64(text[at])
                        at += 1
                while at < end and text[at] not in (_TAB, _NEWLINE):
                    at += 1
            elif negative:
                number = np.uint64(1 << 63) - number
            else:
                number |= np.uint64(1 << 63)
            ranks[field, index] = number
            at += 1


def key_ranks(lines: Lines, keys: Integers, fields: int) -> Bits:
    """Return numbers that sort nearly as the keys do, by the first ``fields`` of their fields.

    If rows are written in the order of the primary key, the server needs fewer pages. This affects
    only speed, so costly details are left out: collations, and all but the first bytes of a text.

    ``keys`` are indexes into ``lines``. The result has a line for each of the fields.
    """
    ranks = np.zeros((min(fields, FIELDS), len(keys)), np.uint64)
    _ranks(lines.text, lines.starts, keys, ranks)
    return ranks


class PlanNumbers:
    """The attributes of plans, as arrays with an entry for each plan of a batch.

    Attributes:
        source: the index of the plan's source in ``sources``.
        version: the target version of the plan's rows.
        of_parent: whether the rows are rows of a parent.
        keyed: whether the rows have a key.
        replaces: whether a row may replace another.
        member: a number of the shard.
        columns: a number of the list of target columns that the plan writes.
        group: a number of the attributes that rows written together have in common.
    """

    def __init__(self, plans: PlanList) -> None:
        kinds, kind = plans.kinds, plans.kind
        self.plans = plans
        self.sources = plans.sources
        self.source = _numbered([source for source, *_ in plans.names])
        self.version = plans.version
        self.of_parent = np.array([bool(plan.cascade) for plan in kinds], np.bool_)[kind]
        self.keyed = np.array([bool(plan.rows.key) for plan in kinds], np.bool_)[kind]
        self.replaces = np.array([plan.target.replace for plan in kinds], np.bool_)[kind]
        self.member = _numbered(plans.names)
        self.columns = _numbered([plan.target_columns for plan in kinds])[kind]
        groups = [
            (p.target_columns, p.key_columns, p.covers, p.restated, p.target.filled, p.target.held)
            for p in kinds
        ]
        self.group = _numbered(groups)[kind]
        self._made: dict[int, TablePlan] = {}

    def plan(self, number: int) -> TablePlan:
        """Return a plan, always as the same object, even if several threads request it."""
        made = self._made.get(number)
        if made is None:
            made = self._made.setdefault(number, self.plans.plan(number))
        return made


def net_changes(
    entries: RowBlock, plan: Integers, safe: Truths, numbers: PlanNumbers
) -> list[NetChanges]:
    """Return the changes for one bucket of one target. Raises DuplicateKeyError.

    ``plan`` has the number of each event's plan, ``safe`` whether the event is in safe mode.
    """
    keyed = numbers.keyed[plan[entries.event]]
    changes: list[NetChanges] = []
    if not keyed.all():
        changes += _keyless(entries.these(~keyed), plan, safe, numbers)
        entries = entries.these(keyed)
    if not len(entries):
        return changes
    touches = entries.touches()
    event = touches.event
    keys = touched_keys(entries.keys, touches.key, numbers.member[plan[event]])
    closer = keys.mixed.copy()
    if safe[event].any():
        closer[keys.of[safe[event]]] = True
    if closer.any():
        some = closer[keys.of]
        changes += _closely(touches.these(some), plan, safe, numbers)
    if not closer.all():
        changes += _together(touches, keys, ~closer, plan, numbers)
    return changes


def _keyless(
    entries: RowBlock, plan: Integers, safe: Truths, numbers: PlanNumbers
) -> list[NetChanges]:
    """Return the changes of tables without a key, by counts of rows.

    If rows are only inserted, all of them count.
    """
    if (entries.before < 0).all():
        come = plan[entries.event], entries.after
        return _changes(entries, numbers, _NO_ROWS, _NO_ROWS, come)
    return _closely(entries, plan, safe, numbers)


def _closely(
    touches: RowBlock, plan: Integers, safe: Truths, numbers: PlanNumbers
) -> list[NetChanges]:
    found = _one_by_one(touches)
    return net_effect(
        found, lambda event: numbers.plan(int(plan[event])), lambda event: bool(safe[event])
    )


def _one_by_one(touches: RowBlock) -> Iterator[Entry]:
    events = touches.event.tolist()
    lines, keys = touches.lines, touches.keys
    rows = zip(events, touches.before.tolist(), touches.after.tolist(), strict=True)
    for event, before, after in rows:
        yield (
            event,
            INSERT if before < 0 else DELETE if after < 0 else UPDATE,
            keys[before] if before >= 0 else None,
            keys[after] if after >= 0 else None,
            lines[before] if before >= 0 else None,
            lines[after] if after >= 0 else None,
        )


def _together(
    touches: RowBlock,
    keys: TouchedKeys,
    chosen: Truths,
    plan: Integers,
    numbers: PlanNumbers,
) -> list[NetChanges]:
    first, last = keys.first[chosen], keys.last[chosen]
    plans, first_plans = plan[touches.event[last]], plan[touches.event[first]]
    before, after, key = touches.before[first], touches.after[last], touches.key[last]
    existed, exists = before >= 0, after >= 0
    both = np.flatnonzero(existed & exists)
    # Changed and changed back: the row is already on the target.
    other_columns = numbers.columns[plans[both]] != numbers.columns[first_plans[both]]
    changed = both[other_columns | touches.lines.differ(before[both], after[both])]
    put_over = numbers.replaces[plans[changed]]
    anew = changed[~put_over]
    # Writes at random places of a large table cost the target one page each.
    ranks = key_ranks(touches.keys, key, len(numbers.plan(int(plans[0])).rows.key))[::-1]
    gone, over, come = (
        part[np.lexsort(ranks[:, part])]
        for part in (
            np.concatenate([np.flatnonzero(existed & ~exists), anew]),
            changed[put_over],
            np.concatenate([np.flatnonzero(exists & ~existed), anew]),
        )
    )
    return _changes(
        touches,
        numbers,
        (plans[gone], key[gone]),
        (plans[over], after[over]),
        (plans[come], after[come]),
        plans[anew],
    )


_Rows = tuple[Integers, Integers]
"""Rows by the number of their plan and their image."""

_NO_ROWS: _Rows = (np.empty(0, np.int64), np.empty(0, np.int64))


def _changes(
    entries: RowBlock,
    numbers: PlanNumbers,
    deleted: _Rows,
    overwritten: _Rows,
    inserted: _Rows,
    renewed: Integers = _NO_ROWS[0],
) -> list[NetChanges]:
    """Return the changes, grouped by the columns that they write.

    ``renewed``: the plans of rows that are deleted and inserted.
    """
    groups = [numbers.group[plans] for plans, _ in (deleted, overwritten, inserted)]
    changes = []
    for group in np.unique(np.concatenate(groups)).tolist():
        table = numbers.plan(int(np.flatnonzero(numbers.group == group)[0]))
        (_, gone), (_, over), (come_plans, come) = (
            (plans[mine], images[mine])
            for (plans, images), of in zip((deleted, overwritten, inserted), groups, strict=True)
            for mine in (of == group,)
        )
        changes.append(
            NetChanges(
                table.target_columns,
                table.key_columns,
                table.covers,
                table.restated,
                table.target.filled,
                table.target.held,
                deletes=entries.keys.take(gone),
                overwrites=entries.lines.take(over),
                inserts=entries.lines.take(come),
                members=_MembersOf(numbers.plans, come_plans),
                renewed=int(np.count_nonzero(numbers.group[renewed] == group)),
            )
        )
    return changes


def _numbered(values: Sequence[object]) -> Integers:
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)


@dataclass(frozen=True, slots=True)
class _MembersOf(Sequence[Member]):
    """The shards of many rows, by the plans with which they were read."""

    plans: PlanList
    plan: Integers

    def __len__(self) -> int:
        return len(self.plan)

    @overload
    def __getitem__(self, index: int) -> Member: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Member]: ...
    def __getitem__(self, index: int | slice) -> Member | Sequence[Member]:
        if isinstance(index, slice):
            return _MembersOf(self.plans, self.plan[index])
        return self.plans.member(int(self.plan[index]))
