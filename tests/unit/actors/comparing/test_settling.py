"""How long rows in doubt are read again."""

from __future__ import annotations

import pytest

from actors.comparing.target_run import (
    LEAST_READS,
    MOST_READS,
    first_ranges,
    reads_again,
    why_unsettled,
)
from replicator.pipeline.compare.compare_rows import KeyRange
from replicator.pipeline.compare.doubts import MISMATCHES


@pytest.mark.parametrize(
    ("reads", "late", "least", "again"),
    [
        (0, False, LEAST_READS, True),
        (MOST_READS - 1, False, LEAST_READS, True),
        (MOST_READS, False, LEAST_READS, False),
        (LEAST_READS - 1, True, LEAST_READS, True),
        (LEAST_READS, True, LEAST_READS, False),
        (0, True, 1, True),
        (1, True, 1, False),
    ],
)
def test_rows_that_always_change_are_not_read_for_minutes(
    reads: int, late: bool, least: int, again: bool
) -> None:
    assert reads_again(reads, late=late, least=least) == again


def test_a_wrong_value_that_stays_is_known_in_any_case() -> None:
    # The first further read finds the value, each one after it is a mismatch.
    assert LEAST_READS == 1 + MISMATCHES


def test_the_reason_says_what_helps() -> None:
    assert "`replicator wait`" in why_unsettled(["a"], 2, 30.0, more=True)
    busy = why_unsettled([], 3, 30.0, more=True)
    assert "read 3 times" in busy
    assert "`--settle 300`" in busy
    assert "--settle" not in why_unsettled([], 25, 30.0, more=False)


def test_a_job_reads_more_ranges_if_they_are_parts() -> None:
    whole, part = KeyRange(None, None), KeyRange(None, None, 1 / 16)
    assert first_ranges([whole] * 20, 8) == 8
    assert first_ranges([part] * 200, 8) == 128
    assert first_ranges([part] * 16 + [whole] * 20, 8) == 16 + 7
    assert first_ranges([whole], 0) == 1
