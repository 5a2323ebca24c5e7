"""Waits that grow, are cut short, and begin anew."""

from __future__ import annotations

import anyio

from actors.backoff import Backoff


async def test_waits_double_up_to_the_longest() -> None:
    backoff = Backoff((0.001, 0.003))
    seen = []
    for _ in range(4):
        seen.append(backoff.next)
        await backoff.wait()
    assert seen == [0.001, 0.002, 0.003, 0.003]


async def test_what_has_worked_begins_anew() -> None:
    backoff = Backoff((0.001, 1.0))
    await backoff.wait()
    await backoff.wait()
    backoff.reset()
    assert backoff.next == 0.001


async def test_an_event_cuts_a_wait_short_and_it_counts_all_the_same() -> None:
    backoff, until = Backoff((3600.0, 7200.0)), anyio.Event()
    until.set()
    with anyio.fail_after(5):
        await backoff.wait(until)
    assert backoff.next == 7200.0
