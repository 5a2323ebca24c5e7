"""How long rows in doubt are read again."""

from __future__ import annotations

import pytest

from actors.comparing.target_run import LEAST_LOOKS, LOOKS, looks_again, why_undecided
from replicator.pipeline.compare.doubts import STRIKES


@pytest.mark.parametrize(
    ("looks", "late", "least", "again"),
    [
        (0, False, LEAST_LOOKS, True),
        (LOOKS - 1, False, LEAST_LOOKS, True),
        (LOOKS, False, LEAST_LOOKS, False),
        (LEAST_LOOKS - 1, True, LEAST_LOOKS, True),
        (LEAST_LOOKS, True, LEAST_LOOKS, False),
        (0, True, 1, True),
        (1, True, 1, False),
    ],
)
def test_rows_that_always_change_are_not_read_for_minutes(
    looks: int, late: bool, least: int, again: bool
) -> None:
    assert looks_again(looks, late=late, least=least) == again


def test_a_wrong_value_that_stays_is_known_in_any_case() -> None:
    # The first further read finds the value, each one after it is a mismatch.
    assert LEAST_LOOKS == 1 + STRIKES


def test_the_reason_says_what_helps() -> None:
    assert "`replicator wait`" in why_undecided(["a"], 2, 30.0, more=True)
    busy = why_undecided([], 3, 30.0, more=True)
    assert "read 3 times" in busy
    assert "`--settle 300`" in busy
    assert "--settle" not in why_undecided([], 25, 30.0, more=False)
