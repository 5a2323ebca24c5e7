"""Which task applies which buckets: each bucket once, and the work even."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.pipeline.apply.batch import spread

TARGETS = st.dictionaries(
    st.integers(0, 50), st.tuples(st.integers(0, 10**9), st.integers(1, 16)), min_size=1
)


@given(TARGETS, st.integers(1, 40))
def test_each_bucket_has_one_task(targets: dict[int, tuple[int, int]], tasks: int) -> None:
    sizes = {number: size for number, (size, _) in targets.items()}
    buckets = {number: count for number, (_, count) in targets.items()}
    shares = spread(sizes, buckets, tasks)
    assert len(shares) == tasks
    dealt = [
        (target, bucket) for share in shares for target, its in share.items() for bucket in its
    ]
    assert sorted(dealt) == sorted((t, b) for t, count in buckets.items() for b in range(count))
    assert all(its for share in shares for its in share.values()), "events for no bucket"


def test_a_single_target_is_spread_over_all_tasks() -> None:
    assert spread({7: 100}, {7: 4}, 2) == [{7: frozenset({0, 2})}, {7: frozenset({1, 3})}]


def test_targets_of_one_size_are_not_cut_up() -> None:
    shares = spread(dict.fromkeys(range(4), 100), dict.fromkeys(range(4), 4), 2)
    assert [len(share) for share in shares] == [2, 2]


def test_a_large_target_is_cut_up_and_a_small_one_is_not() -> None:
    shares = spread({1: 1_000_000, 2: 10}, {1: 4, 2: 4}, 2)
    assert [1 in share for share in shares] == [True, True]
    assert [2 in share for share in shares].count(True) == 1


@pytest.mark.parametrize("tasks", [1, 3])
def test_a_target_of_one_bucket_is_never_cut_up(tasks: int) -> None:
    shares = spread({1: 1_000_000}, {1: 1}, tasks)
    assert [share for share in shares if share] == [{1: frozenset({0})}]


def test_targets_that_are_applied_together_are_one_task_s() -> None:
    shares = spread({1: 10, 2: 1_000_000, 3: 10}, {1: 4, 2: 4, 3: 4}, 3, together={1, 2})
    (own,) = [share for share in shares if 1 in share]
    assert own[1] == own[2] == frozenset(range(4))
    assert all(2 not in share for share in shares if share is not own)
