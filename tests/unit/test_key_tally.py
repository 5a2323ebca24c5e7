"""Values that several rows share, counted in rows that come part by part."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from replicator.pipeline.key_tally import EXAMPLES, HOLDERS, KeyRows, in_order, joined, tally

Row = tuple[int, int, int, int]

ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(-2, 2), st.integers(-1, 1), st.integers(0, 3)),
    max_size=40,
)


def rows_of(rows: list[Row]) -> KeyRows:
    keys, highs, lows, members = (list(column) for column in zip(*rows, strict=True))
    return KeyRows(
        np.array(keys, np.int32),
        np.array(highs, np.int64),
        np.array(lows, np.int64),
        np.array(members, np.int32),
        [b"%d/%d" % (high, low) for _, high, low, _ in rows],
    )


@given(rows=ROWS, cuts=st.lists(st.integers(0, 40)))
def test_it_counts_as_one_would_by_hand(rows: list[Row], cuts: list[int]) -> None:
    ordered = in_order(rows_of(rows)) if rows else rows_of([(0, 0, 0, 0)]).part(0, 0)
    places = sorted({0, len(rows), *(cut for cut in cuts if cut <= len(rows))})
    parts = [ordered.part(*pair) for pair in pairwise(places)]
    found = tally(parts)
    assert set(found) == {row[0] for row in rows}
    for key, its in found.items():
        values = Counter(row[1:3] for row in rows if row[0] == key)
        shared = {value: count for value, count in values.items() if count > 1}
        assert its.looked_at == values.total()
        assert its.shared == len(shared)
        assert its.rows == sum(shared.values())
        assert its.by_member == Counter(r[3] for r in rows if r[0] == key and r[1:3] in shared)
        assert len(its.examples) == min(len(shared), EXAMPLES)
        for example in its.examples:
            high, low = map(int, example.shown.split(b"/"))
            holders = sorted(r[3] for r in rows if r[:3] == (key, high, low))
            assert example.rows == len(holders)
            assert list(example.members) == holders[:HOLDERS]


def test_parts_are_put_together_in_their_order() -> None:
    whole = joined([rows_of([(0, 1, 2, 3)]), rows_of([(1, 2, 3, 4), (1, 2, 3, 5)])])
    assert len(whole) == 3
    assert whole.member.tolist() == [3, 4, 5]
    assert whole.shown == [b"1/2", b"2/3", b"2/3"]
