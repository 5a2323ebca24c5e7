"""How long rows in doubt are read again."""

from __future__ import annotations

import pytest

from actors.comparing.target_run import (
    LEAST_LOOKS,
    LOOKS,
    SETTLE_AT_MOST,
    UNAPPLIED_LOOKS,
    looks_again,
)
from replicator.pipeline.compare.doubts import STRIKES

SOON, LATE = 0.0, SETTLE_AT_MOST + 1


@pytest.mark.parametrize(
    ("looks", "unapplied", "seconds", "again"),
    [
        (0, 0, SOON, True),
        (LOOKS - 1, 0, SOON, True),
        (LOOKS, 0, SOON, False),
        (LEAST_LOOKS - 1, 0, LATE, True),
        (LEAST_LOOKS, 0, LATE, False),
        (1, UNAPPLIED_LOOKS - 1, LATE, True),
        (1, UNAPPLIED_LOOKS, SOON, False),
    ],
)
def test_rows_that_always_change_are_not_read_for_minutes(
    looks: int, unapplied: int, seconds: float, again: bool
) -> None:
    assert looks_again(looks, unapplied, seconds) == again


def test_a_wrong_value_that_stays_is_known_in_any_case() -> None:
    # The first further read finds the value, each one after it is a mismatch.
    assert LEAST_LOOKS == 1 + STRIKES
