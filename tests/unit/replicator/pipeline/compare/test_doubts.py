"""Rows that differ: whether several looks tell that they are wrong, or only on their way."""

from __future__ import annotations

import random

from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.column_types import Literal
from replicator.mysql.names import TableName
from replicator.pipeline.compare.compare_plan import ComparedTable, ComparisonPlan
from replicator.pipeline.compare.doubts import (
    MISMATCHES,
    Evidence,
    RowGroup,
    differences_of,
    judged,
    key_digest,
)

KEY = key_digest(b"1")


def group(target: bytes | None, *shards: bytes) -> RowGroup:
    on_target = [] if target is None else [(target, target)]
    return RowGroup(on_target, [(line, line, number) for number, line in enumerate(shards)])


def looks(*groups: RowGroup, applied: bool = True) -> Evidence | None:
    """What is known after looks at a key in turn; None once it was right."""
    evidence = None
    for found in groups:
        evidence = judged(KEY, found, evidence, applied=applied)
        if evidence is None:
            return None
    return evidence


def mismatches(evidence: Evidence | None) -> int:
    return max((mark.mismatches for mark in evidence.marks), default=0) if evidence else -1


def test_a_row_that_is_wrong_at_every_look_suffices_after_some() -> None:
    wrong = [group(b"1\t5", b"1\t6")] * MISMATCHES
    assert mismatches(looks(*wrong)) == MISMATCHES - 1
    last = looks(*wrong, wrong[0])
    assert last is not None
    assert last.suffices(MISMATCHES)


def test_a_changed_row_may_need_fewer_looks_than_a_missing_one() -> None:
    changed = looks(*[group(b"1\t5", b"1\t6")] * 2)
    missing = looks(*[group(None, b"1\t6")] * 2)
    assert changed is not None
    assert missing is not None
    assert (changed.suffices(1), missing.suffices(1)) == (True, False)


def test_a_row_needs_certainty_in_each_unique_column_in_which_it_differs() -> None:
    steady = [group(b"1\twrong\t5", b"1\tright\t6")] * (MISMATCHES + 1)
    changing = [
        group(b"1\twrong\t%d" % (n - 1), b"1\tright\t%d" % n) for n in range(MISMATCHES + 1)
    ]
    for some, suffices in ((steady, True), (steady[:3], False), (changing, False)):
        found = looks(*some)
        assert found is not None
        assert found.suffices(1)
        assert found.suffices(1, unique={2}) is suffices


def test_a_wrong_column_counts_while_another_changes() -> None:
    changing = [
        group(b"1\twrong\t%d" % (n - 1), b"1\tright\t%d" % n) for n in range(MISMATCHES + 1)
    ]
    # At each look but the first the target would have what the shard had before, but for a column.
    found = looks(*changing)
    assert found is not None
    assert found.suffices(MISMATCHES)
    assert [mark.column for mark in found.marks if mark.mismatches] == [1]


def test_a_row_that_equals_what_the_shard_had_before_is_right() -> None:
    assert looks(group(b"1\t4", b"1\t5"), group(b"1\t5", b"1\t6")) is None


def test_a_row_that_only_changes_is_never_enough() -> None:
    chasing = [group(b"1\t%d" % (10 * n - 13), b"1\t%d" % (10 * n)) for n in range(50)]
    assert mismatches(looks(*chasing)) == 0


def test_nothing_counts_while_the_task_has_not_applied_it() -> None:
    wrong = [group(b"1\t5", b"1\t6")] * (2 * MISMATCHES)
    assert mismatches(looks(*wrong, applied=False)) == 0


def test_rows_that_are_missing_or_too_much_count_whatever_they_are() -> None:
    missing = [group(None, b"1\t%d" % n) for n in range(MISMATCHES + 1)]
    extra = [group(b"1\t%d" % n) for n in range(MISMATCHES + 1)]
    for some in (missing, extra):
        found = looks(*some)
        assert found is not None
        assert found.suffices(MISMATCHES)


def test_columns_that_flip_as_fast_as_they_can_are_no_alarm() -> None:
    """Each look sees other values, and a target that is a step behind."""
    chance = random.Random(7)
    for _ in range(2000):
        evidence = None
        for _ in range(3 * MISMATCHES):
            target, shard = (b"1\t%d" % chance.randrange(2) for _ in range(2))
            if target == shard:
                break
            evidence = judged(KEY, group(target, shard), evidence, applied=True)
            if evidence is None:
                break
            assert not evidence.suffices(MISMATCHES)


def compared(*key: int) -> ComparisonPlan:
    columns = tuple(TargetColumn(name, Literal.NUMBER) for name in "ab")
    tables = [ComparedTable(source, TableName("db", "t"), ()) for source in ("", "x", "y")]
    return ComparisonPlan(tables[0], tuple(tables[1:]), columns, key, (), (), checksums=True)


def test_rows_of_one_key_are_paired() -> None:
    plan = compared(0)
    (different,) = differences_of(plan, b"1", group(b"1\t5", b"1\t6"))
    assert (different.kind, different.columns, different.shard) == ("different", (1,), "x: db.t")
    second = group(b"1\t5", b"1\t5", b"1\t7")
    (missing,) = differences_of(plan, b"1", second)
    assert (missing.kind, missing.in_shard, missing.shard) == ("missing", b"1\t7", "y: db.t")


def test_rows_without_a_key_are_counted() -> None:
    same = group(b"1\t5", b"1\t5", b"1\t5")
    (missing,) = differences_of(compared(), b"1\t5", same)
    assert (missing.kind, missing.times) == ("missing", 1)
