"""The actors of one source: what may be asked of them when they have ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from actors.task.wiring.source_unit import SourceUnit


class SourceLostError(Exception):
    """What ends the reader."""


@dataclass
class Reader:
    """A reader that fails when it is told to."""

    fails: anyio.Event = field(default_factory=anyio.Event)
    last_segment: int = 0

    async def run(self) -> None:
        await self.fails.wait()
        raise SourceLostError

    async def release(self, target: int, size: int) -> None:
        raise AssertionError(f"released {size} bytes of target {target}")


async def test_a_release_after_a_fault_is_needless() -> None:
    reader = Reader()
    start = SimpleNamespace(
        resume=None, groups={}, low_watermarks={}, high_watermarks={}, read_from=None
    )
    coordination = SimpleNamespace(began=lambda _: None)
    unit = SourceUnit(
        "a",
        cast("Any", start),
        cast("Any", None),
        cast("Any", coordination),
        lambda *_: cast("Any", reader),
    )
    reader.fails.set()
    with pytest.raises(ExceptionGroup) as caught:
        await unit.run()
    assert caught.group_contains(SourceLostError)
    assert not unit.running
    unit.release(1, 100)
