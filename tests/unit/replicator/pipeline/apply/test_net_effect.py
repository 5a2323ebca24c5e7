"""The net effect of row events: single rules, and a comparison with applying row by row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.downstream.rows.writing import NetChanges
from replicator.mysql.column_types import Literal
from replicator.mysql.names import Member, TableName
from replicator.pipeline.apply.net_effect import DuplicateKeyError, Entry, net_effect
from replicator.pipeline.apply.vectorised_net_effect import PlanNumbers, key_ranks, net_changes
from replicator.pipeline.plans.plan import (
    PlanList,
    TablePlan,
    TargetColumn,
    TargetTable,
)
from replicator.rows.decoder.lines import lines_of
from replicator.rows.decoder.row_block import RowBlock, RowChange
from replicator.rows.values.column_format import ColumnFormat, RowFormat
from tests.support.streams.row_columns import plan_list

INSERT, UPDATE, DELETE = map(int, RowChange)
COLUMNS = (ColumnFormat("k", 3, 0), ColumnFormat("v", 3, 0))
TARGET = TargetTable(1, "s", "t", 1, replace=True)


def plan(member: str = "A", *, key: bool = True, replaceable: bool = True) -> TablePlan:
    return TablePlan(
        target=replace(TARGET, replace=replaceable),
        member=Member("a", TableName("s", member)),
        rows=RowFormat(COLUMNS, (0, 1), (0,) if key else (), hashed=()),
        target_columns=(TargetColumn("k", Literal.NUMBER), TargetColumn("v", Literal.NUMBER)),
    )


Row = tuple[int, int]
Step = tuple[TablePlan, Row | None, Row | None]
"""A change of one row: before and after."""


def line(row: Row | None) -> bytes | None:
    return None if row is None else b"%d\t%d" % row


def key(row: Row | None) -> bytes | None:
    return None if row is None else b"%d" % row[0]


def effect(
    steps: list[Step], *, safe_mode: bool = False, safe: Container[int] = ()
) -> list[NetChanges]:
    entries: list[Entry] = []
    for number, (_, old, new) in enumerate(steps):
        change = INSERT if old is None else DELETE if new is None else UPDATE
        entries.append((number, change, key(old), key(new), line(old), line(new)))
    in_safe_mode = [safe_mode or number in safe for number in range(len(steps))]
    try:
        expected = content(
            net_effect(entries, lambda number: steps[number][0], in_safe_mode.__getitem__)
        )
    except DuplicateKeyError as error:
        with pytest.raises(DuplicateKeyError, match=re.escape(str(error))):
            on_arrays(steps, in_safe_mode)
        raise
    changes = on_arrays(steps, in_safe_mode)
    assert content(changes) == expected
    return merged(changes)


def on_arrays(steps: list[Step], in_safe_mode: list[bool]) -> list[NetChanges]:
    """The same by `replicator.pipeline.apply.vectorised_net_effect`."""
    plans = list({id(step[0]): step[0] for step in steps}.values())
    images = [(p, row) for p, old, new in steps for row in (old, new) if row is not None]
    places = np.array([row is not None for _, *rows in steps for row in rows], np.bool_)
    numbers = np.where(places, np.cumsum(places) - 1, -1).reshape(len(steps), 2)
    entries = RowBlock(
        np.arange(len(steps)),
        np.ascontiguousarray(numbers[:, 0]),
        np.ascontiguousarray(numbers[:, 1]),
        lines_of([line(row) or b"" for _, row in images]),
        lines_of([(key(row) if p.rows.key else line(row)) or b"" for p, row in images]),
        np.zeros(len(images), np.uint32),
    )
    plan_of = np.array([[id(p) for p in plans].index(id(step[0])) for step in steps], np.int64)
    safe = np.array(in_safe_mode, np.bool_)
    return net_changes(entries, plan_of, safe, PlanNumbers(plan_list(plans)))


def merged(changes: Sequence[NetChanges]) -> list[NetChanges]:
    """One item for each list of columns, with lists."""
    found: dict[object, NetChanges] = {}
    for group in changes:
        identity = (group.columns, group.key_columns, group.covers)
        of = found.get(identity, NetChanges(*identity))
        found[identity] = replace(
            of,
            deletes=[*of.deletes, *group.deletes],
            overwrites=[*of.overwrites, *group.overwrites],
            upserts=[*of.upserts, *group.upserts],
            arrivals=[*of.arrivals, *group.arrivals],
            shared=[*of.shared, *group.shared],
            inserts=[*of.inserts, *group.inserts],
            members=[*of.members, *group.members],
            removals=of.removals | group.removals,
            renewed=of.renewed + group.renewed,
        )
    return [*found.values()]


def content(changes: Sequence[NetChanges]) -> Sequence[object]:
    """What is written, whatever order the rows of different keys come in."""
    return sorted(
        (
            repr((group.columns, group.key_columns, group.covers)),
            sorted(group.deletes),
            sorted(group.overwrites),
            sorted(group.upserts),
            sorted(group.arrivals),
            sorted(group.shared),
            sorted(zip(group.inserts, map(str, group.members), strict=True)),
            sorted(group.removals.items()),
            group.renewed,
        )
        for group in merged(changes)
        if group != NetChanges(group.columns, group.key_columns, group.covers)
    )


def one(steps: list[Step], *, safe_mode: bool = False) -> NetChanges:
    changes = effect(steps, safe_mode=safe_mode)
    p = steps[0][0]
    assert len(changes) <= 1
    return changes[0] if changes else NetChanges(p.target_columns, p.key_columns, p.covers)


A, B = plan("A"), plan("B")


def test_an_inserted_row_must_not_be_there() -> None:
    changes = one([(A, None, (1, 1)), (A, (1, 1), (1, 2))])
    assert (changes.deletes, changes.overwrites, changes.inserts) == ([], [], [b"1\t2"])
    assert changes.members == [A.member]


def test_what_a_shard_gets_in_safe_mode_arrives() -> None:
    """The row that is there may be another shard's; one that is only changed is the shard's own."""
    assert one([(A, None, (1, 1))], safe_mode=True).arrivals == [b"1"]
    assert one([(A, (2, 1), (1, 1))], safe_mode=True).arrivals == [b"1"]
    moved = one([(A, (1, 1), None), (B, None, (1, 3))], safe_mode=True)
    assert (moved.arrivals, moved.shared) == ([b"1"], [])
    assert one([(A, (1, 1), (1, 2))], safe_mode=True).arrivals == []
    assert one([(A, None, (1, 1)), (A, (1, 1), None)], safe_mode=True).arrivals == []
    assert one([(A, None, (1, 1))]).arrivals == []


def test_a_key_that_several_shards_get_in_one_batch_is_shared() -> None:
    """The target has no row with it that would show this."""
    for first in (None, (1, 1)):
        changes = one([(A, first, (1, 2)), (B, None, (1, 3))], safe_mode=True)
        assert (changes.upserts, changes.arrivals, changes.shared) == ([b"1\t3"], [], [b"1"])


def test_a_changed_row_is_overwritten() -> None:
    changes = one([(A, (1, 1), (1, 2)), (A, (1, 2), (1, 3))])
    assert (changes.deletes, changes.overwrites, changes.inserts) == ([], [b"1\t3"], [])


def test_a_changed_row_is_deleted_first_where_other_keys_may_collide() -> None:
    p = plan(replaceable=False)
    changes = one([(p, (1, 1), (1, 2))])
    assert (changes.deletes, changes.overwrites, changes.inserts) == ([b"1"], [], [b"1\t2"])


def test_a_row_that_came_and_went_leaves_nothing() -> None:
    changes = one([(A, None, (1, 1)), (A, (1, 1), None)])
    assert changes == NetChanges(A.target_columns, A.key_columns, covers=True)


def test_a_row_that_was_changed_back_is_left_alone() -> None:
    changes = one([(A, (1, 1), (1, 2)), (A, (1, 2), (1, 1))])
    assert (changes.deletes, changes.overwrites, changes.inserts) == ([], [], [])


def test_a_change_of_the_key_is_a_delete_and_an_insert() -> None:
    changes = one([(A, (1, 1), (2, 1))])
    assert (changes.deletes, changes.inserts) == ([b"1"], [b"2\t1"])


def test_a_row_may_appear_in_its_new_shard_before_it_goes_from_the_old_one() -> None:
    for steps in (
        [(B, None, (1, 2)), (A, (1, 1), None)],
        [(A, (1, 1), None), (B, None, (1, 2))],
    ):
        changes = one(steps)
        assert (changes.deletes, changes.overwrites, changes.inserts) == ([], [b"1\t2"], [])


def test_a_row_that_moved_as_it_was_is_left_alone() -> None:
    other_order = replace(B, target_columns=B.target_columns[::-1])
    for steps in ([(B, None, (1, 1)), (A, (1, 1), None)], [(A, (1, 1), None), (B, None, (1, 1))]):
        changes = one(steps)
        assert (changes.deletes, changes.overwrites, changes.inserts) == ([], [], [])
    assert one([(A, (1, 1), None), (other_order, None, (1, 1))]).overwrites == [b"1\t1"]


def test_a_key_in_two_shards_names_both() -> None:
    with pytest.raises(DuplicateKeyError) as caught:
        effect([(A, None, (1, 1)), (B, None, (1, 2))])
    assert caught.value.members == (A.member, B.member)
    assert caught.value.key == b"1"


def test_shards_whose_names_read_the_same_with_a_dot_between_are_two() -> None:
    one_way = replace(A, member=Member("a", TableName("x", "y.z")))
    other_way = replace(A, member=Member("a", TableName("x.y", "z")))
    with pytest.raises(DuplicateKeyError, match=re.escape("a: x.`y.z` and a: `x.y`.z both hold")):
        effect([(one_way, None, (1, 1)), (other_way, None, (1, 2))])


def test_a_shard_that_had_the_key_in_between_does_not_count() -> None:
    changes = one([(A, None, (1, 1)), (B, None, (1, 2)), (A, (1, 1), None)])
    assert changes.inserts == [b"1\t2"]
    assert changes.members == [B.member]


def test_safe_mode_overwrites_and_deletes_whatever_is_there() -> None:
    changes = one([(A, None, (1, 1)), (A, None, (2, 1)), (A, (2, 1), None)], safe_mode=True)
    assert (changes.deletes, changes.upserts, changes.inserts) == ([b"2"], [b"1\t1"], [])


def test_only_keys_that_an_event_in_safe_mode_touches_are_written_in_it() -> None:
    steps: list[Step] = [(A, None, (1, 1)), (A, None, (2, 1)), (A, (1, 1), (1, 2))]
    (changes,) = effect(steps, safe={0})
    assert (changes.upserts, changes.inserts) == ([b"1\t2"], [b"2\t1"])


def test_in_safe_mode_the_last_shard_wins() -> None:
    steps: list[Step] = [(B, None, (1, 2)), (A, None, (1, 1)), (B, (1, 2), (1, 3))]
    assert one(steps, safe_mode=True).upserts == [b"1\t3"]
    assert one([*steps, (B, (1, 3), None)], safe_mode=True).upserts == [b"1\t1"]


def test_rows_with_other_columns_are_written_apart() -> None:
    narrow = replace(
        B, rows=replace(B.rows, written=(0,)), target_columns=B.target_columns[:1], covers=False
    )
    groups = effect([(A, None, (1, 1)), (narrow, None, (2, 2))])
    assert [len(group.columns) for group in groups] == [2, 1]


def test_a_plan_is_one_object_also_where_another_thread_asks_for_it_meanwhile() -> None:
    numbers = PlanNumbers(plan_list([plan()]))
    plans = numbers.plans
    others = []

    class Slow:
        def plan(self, number: int) -> TablePlan:
            numbers.plans = plans
            others.append(numbers.plan(number))
            return plans.plan(number)

    numbers.plans = cast(PlanList, Slow())
    assert numbers.plan(0) is others[0]
    assert numbers.plan(0) is others[0]


def test_rows_without_a_key_are_counted() -> None:
    p = plan(key=False)
    changes = one([(p, None, (1, 1)), (p, None, (1, 1)), (p, (2, 2), None), (p, (3, 3), (1, 1))])
    assert changes.inserts == [b"1\t1"] * 3
    assert changes.removals == {b"2\t2": 1, b"3\t3": 1}


keys = st.integers(1, 4)
values = st.integers(1, 3)
members = st.sampled_from(["A", "B"])
actions = st.lists(st.tuples(members, st.sampled_from("iudk"), keys, keys, values), max_size=25)


Script = list[tuple[str, str, int, int, int]]
Tables = dict[str, dict[int, int]]


def history(
    start: dict[int, str], script: Script, p: dict[str, TablePlan]
) -> tuple[Tables, Tables, list[Step]]:
    """Valid steps of two shards: their rows before, their rows after, and the steps."""
    before: Tables = {"A": {}, "B": {}}
    for number, member in start.items():
        before[member][number] = 0
    now = {member: dict(rows) for member, rows in before.items()}
    steps: list[Step] = []
    for member, action, k, other, v in script:
        rows = now[member]
        if action == "i" and k not in rows:
            rows[k] = v
            steps.append((p[member], None, (k, v)))
        elif action == "d" and k in rows:
            steps.append((p[member], (k, rows.pop(k)), None))
        elif action == "u" and k in rows:
            steps.append((p[member], (k, rows[k]), (k, v)))
            rows[k] = v
        elif action == "k" and k in rows and other not in rows:
            steps.append((p[member], (k, rows[k]), (other, v)))
            del rows[k]
            rows[other] = v
    return before, now, steps


def written(table: dict[int, int], groups: list[NetChanges]) -> dict[int, int]:
    """The table after the changes, with the checks that the target makes."""
    table = dict(table)
    for group in groups:
        for text in group.deletes:
            assert int(text) in table, "a delete of a row that is not there"
            del table[int(text)]
    for group in groups:
        for text in group.overwrites:
            k, v = map(int, text.split(b"\t"))
            assert k in table, "an overwrite of a row that is not there"
            table[k] = v
    for group in groups:
        for text in group.inserts:
            k, v = map(int, text.split(b"\t"))
            assert k not in table, "a duplicate"
            table[k] = v
    return table


@given(st.dictionaries(keys, members), actions, st.booleans())
def test_the_same_as_row_by_row(start: dict[int, str], script: Script, replaceable: bool) -> None:
    plans = {m: plan(m, replaceable=replaceable) for m in "AB"}
    before, after, steps = history(start, script, plans)
    touched = {row[0] for _, old, new in steps for row in (old, new) if row}
    shared = after["A"].keys() & after["B"].keys() & touched
    # A shard that does not touch a key in the batch is not known to hold it.
    seen = {
        m: {row[0] for p, old, new in steps if p is plans[m] for row in (old, new) if row}
        for m in plans
    }
    if shared & seen["A"] & seen["B"]:
        with pytest.raises(DuplicateKeyError):
            effect(steps)
    elif not shared:
        table = written(before["A"] | before["B"], effect(steps))
        assert table == after["A"] | after["B"]


@given(st.dictionaries(keys, members), actions, st.data())
def test_safe_mode_reaches_the_end_from_any_state_in_between(
    start: dict[int, str], script: Script, data: st.DataObject
) -> None:
    _, _, steps = history(start, [s for s in script if s[0] == "A"], {"A": A, "B": B})
    table: dict[int, int] = {k: 0 for k, m in start.items() if m == "A"}
    states = [table]
    for _, old, new in steps:
        table = dict(table)
        if old:
            del table[old[0]]
        if new:
            table[new[0]] = new[1]
        states.append(table)
    found = dict(data.draw(st.sampled_from(states)))
    for group in effect(steps, safe_mode=True):
        for text in group.deletes:
            found.pop(int(text), None)
        for text in group.upserts:
            k, v = map(int, text.split(b"\t"))
            found[k] = v
        assert not group.inserts
    assert found == states[-1]


@given(
    st.lists(st.tuples(st.none() | st.tuples(keys, values), st.none() | st.tuples(keys, values)))
)
def test_copies_without_a_key_come_and_go_as_often_as_row_by_row(
    changes: list[tuple[Row | None, Row | None]],
) -> None:
    p = plan(key=False)
    steps = [(p, old, new) for old, new in changes if old or new]
    expected: Counter[bytes | None] = Counter()
    for _, old, new in steps:
        expected[line(old)] -= 1
        expected[line(new)] += 1
    del expected[None]
    got: Counter[bytes | None] = Counter()
    for group in effect(steps):
        got.update(group.inserts)
        got.subtract(group.removals)
    assert {k: n for k, n in expected.items() if n} == {k: n for k, n in got.items() if n}


ORDERS = (
    [b"-100", b"-7", b"0", b"3", b"20", b"100", b"999999999999999999"],
    [b"2024-01-02", b"2024-02-01", b"2025-01-01"],
    [b"", b"a", b"ab", b"abc", b"b"],
    [b"1\ta", b"1\tb", b"2\ta", b"10\ta"],
    [b"abc\t5", b"abc\t17", b"abd\t-1"],
    [b"-5\t9", b"-5\t10", b"7\t-3", b"7\t2"],
)


@pytest.mark.parametrize("keys", ORDERS, ids=lambda keys: keys[-1].decode())
def test_ranks_sort_as_the_keys_do(keys: list[bytes]) -> None:
    shuffled = keys[1::2] + keys[::2]
    ranks = key_ranks(lines_of(shuffled), np.arange(len(keys)), 1 + keys[0].count(b"\t"))
    assert [shuffled[index] for index in np.lexsort(ranks[::-1])] == keys


def test_fields_behind_the_second_are_not_looked_at() -> None:
    ranks = key_ranks(lines_of([b"1\t2\tx", b"1\t2\ta"]), np.arange(2), 3)
    assert ranks.shape == (2, 2)
    assert ranks[:, 0].tolist() == ranks[:, 1].tolist()


def test_only_some_keys_are_asked_for() -> None:
    ranks = key_ranks(lines_of([b"5", b"4", b"3"]), np.array([2, 0]), 1)
    assert ranks[0, 0] < ranks[0, 1]
