"""The order in which rows are written."""

from __future__ import annotations

import numpy as np
import pytest

from replicator.pipeline.apply.vectorised_net_effect import key_ranks
from replicator.rows.decoder.lines import lines_of

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
