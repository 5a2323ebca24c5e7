"""The comparisons that end a switch."""

from __future__ import annotations

import pytest

from actors.switching.switching import may_switch
from replicator.mysql.names import TableName
from replicator.pipeline.compare.findings import TargetComparison

X = TableName("shop", "x")


@pytest.mark.parametrize(
    ("found", "first", "last"),
    [
        (TargetComparison(X), True, True),
        (TargetComparison(X, unsettled=3, unsettled_reason="busy"), True, False),
        (TargetComparison(X, unsettled=3, missing=1), False, False),
        (TargetComparison(X, held=1), False, False),
        (TargetComparison(X, failure="no answer"), False, False),
    ],
)
def test_rows_that_the_application_changes_are_decided_when_it_can_not_write(
    found: TargetComparison, first: bool, last: bool
) -> None:
    assert may_switch(found, again=True) == first
    assert may_switch(found, again=False) == last
