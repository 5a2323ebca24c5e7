"""The pause between two rounds of validation."""

from __future__ import annotations

import time

import anyio

from actors.validating.validator import ROUND_SECONDS, pause_after


class Pipeline:
    """A writer whose state changes at a time."""

    def __init__(self, *, changes_after: float) -> None:
        self._change = time.monotonic() + changes_after

    def behind(self) -> bool:
        """Whether the state has not changed yet."""
        return time.monotonic() < self._change

    def idle(self) -> bool:
        """Whether the state has changed."""
        return not self.behind()


async def took(spent: float, pipeline: Pipeline, *, idle: bool) -> float:
    began = time.monotonic()
    with anyio.fail_after(30):
        await pause_after(spent, pipeline.behind, pipeline.idle if idle else lambda: False)
    return time.monotonic() - began


async def test_a_pause_for_a_pipeline_that_is_behind_ends_when_it_has_nothing_to_do() -> None:
    assert await took(10.0, Pipeline(changes_after=0.3), idle=True) < 3.0


async def test_a_pause_becomes_shorter_when_the_pipeline_has_caught_up() -> None:
    assert 0.9 <= await took(1.0, Pipeline(changes_after=0.3), idle=False) < 4.0


async def test_a_moment_without_rows_is_no_end_of_the_work() -> None:
    looks = iter([True, False] * 100)
    began = time.monotonic()
    await pause_after(1.0, lambda: False, lambda: next(looks))
    assert time.monotonic() - began >= 0.99


async def test_a_pause_is_never_shorter_than_the_shortest() -> None:
    assert await took(0.0, Pipeline(changes_after=0), idle=True) >= ROUND_SECONDS - 0.01
