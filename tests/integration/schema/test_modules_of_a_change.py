"""Count the modules that a plain schema change passes through: each is one more to read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles

ROOT = Path(__file__).parents[3]
ROOMS = (
    *("replicator/ddl", "replicator/schema", "replicator/sharding", "replicator/downstream/ddl"),
    *("actors/sharding", "actors/reading", "actors/writing/ddl_runner.py"),
)
"""Where schema changes are read, decided and executed."""

MOST = {"pessimistic": 62, "optimistic": 70}
"""Modules that an ADD COLUMN passes through and rows do not, and some more: which of them rows pass
through depends on the moment. Lower these when modules are gone."""


@contextmanager
def modules_called() -> Iterator[set[str]]:
    """Collect the product's modules of which a function is called in this thread."""
    found: set[str] = set()
    rooms = tuple(str(ROOT / room) for room in ROOMS)

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(rooms):
            found.add(frame.f_code.co_filename.removeprefix(f"{ROOT}/"))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(before)


@pytest.mark.parametrize("mode", MOST)
async def test_a_plain_change_passes_through_no_more_modules(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("x", "(id INT PRIMARY KEY, v INT)", shards=2)
    merging.more["shard-mode"] = mode
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1)", "INSERT INTO x_2 VALUES (2, 1)")
        await merging.check(generation)
        with modules_called() as by_rows:
            merging.do("INSERT INTO x_1 VALUES (3, 1)", "INSERT INTO x_2 VALUES (4, 1)")
            await merging.check(generation)
        with modules_called() as by_change:
            merging.do("ALTER TABLE x_1 ADD c INT", "ALTER TABLE x_2 ADD c INT")
            await settles(lambda: len(merging.on(merging.target, "SHOW COLUMNS FROM x")), 3)
            await merging.check(generation)
    alone = by_change - by_rows
    assert len(alone) <= MOST[mode], sorted(alone)
