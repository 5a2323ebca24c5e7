"""How names of tables are shown: no two alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.mysql.names import TableName

parts = st.text(st.sampled_from("a.`: "), min_size=1, max_size=6)
names = st.builds(TableName, parts, parts)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (TableName("shop", "order 1"), "shop.order 1"),
        (TableName("x", "y.z"), "x.`y.z`"),
        (TableName("x.y", "z"), "`x.y`.z"),
        (TableName("`x", "y`"), "```x`.`y```"),
    ],
)
def test_a_part_is_quoted_where_it_could_be_taken_for_two(name: TableName, shown: str) -> None:
    assert str(name) == shown


@given(st.lists(names, max_size=20, unique=True))
def test_no_two_names_are_shown_alike(found: list[TableName]) -> None:
    assert len({str(name) for name in found}) == len(found)
