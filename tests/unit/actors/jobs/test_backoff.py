"""Attempts that are tried again: what is told of each, and that nothing else tells of it."""

from __future__ import annotations

import pytest
import structlog.testing

from actors.jobs.backoff import until_done


class AwayError(Exception):
    """The server is away."""


async def test_each_failure_is_told_with_the_first_one_and_the_next_attempt() -> None:
    told: list[tuple[str, str, float]] = []
    failures = iter([AwayError("one"), AwayError("two"), AwayError("three")])

    async def attempt() -> None:
        if (error := next(failures, None)) is not None:
            raise error

    def tell(error: AwayError, times: str, seconds: float) -> None:
        told.append((str(error), times, seconds))

    with structlog.testing.capture_logs() as logged:
        await until_done(attempt, AwayError, (0.01, 0.02), tell)
    assert [text for text, _, _ in told] == ["one", "two", "three"]
    assert [seconds for _, _, seconds in told] == [0.01, 0.02, 0.02]
    since = {times.partition(" UTC, next attempt at ")[0] for _, times, _ in told}
    assert len(since) == 1, "the first failure counts"
    assert not logged


async def test_another_error_ends_it() -> None:
    async def attempt() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        await until_done(attempt, AwayError, (0.01, 0.02), lambda *_: None)
