"""A comparison that leaves its servers to other clients."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from actors.comparing import source_load
from actors.comparing.source_load import REST, ClientsFirst, LoadGate

AT_ONCE = 4


def beside(ends: Iterator[int]) -> ClientsFirst:
    async def end() -> int:
        return next(ends)

    return ClientsFirst(LoadGate((), {}, lambda _: None, AT_ONCE), end)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_load, "FIRST_SECONDS", 0.0)


async def test_nobody_writes() -> None:
    gate = beside(itertools.repeat(7))
    assert await gate.wait() == AT_ONCE
    assert gate.rest == 0


async def test_somebody_writes() -> None:
    gate = beside(itertools.count())
    for _ in range(2):
        assert await gate.wait() == 1
        assert gate.rest == REST


async def test_somebody_wrote_a_while_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = beside(itertools.chain((1, 2), itertools.repeat(2)))
    assert await gate.wait() == 1
    assert await gate.wait() == 1
    monkeypatch.setattr(source_load, "QUIET_SECONDS", 0.0)
    assert await gate.wait() == AT_ONCE
