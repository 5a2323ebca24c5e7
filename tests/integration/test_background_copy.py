"""Shards that are copied once all others are: their target alone waits for them."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from actors.task.generation import Generation
from tests.integration.test_blocked_parts import COLUMNS, target, until_only
from tests.support.merging import Merging
from tests.support.running import LOOK_SECONDS, NOTHING, PATIENCE

MakeMerging = Callable[..., Merging]

ROWS = 200
RATE = 50
"""Rows per second: the copy of two shards takes some seconds."""

MODES = pytest.mark.parametrize("mode", ["", "pessimistic"], ids=["uncoordinated", "pessimistic"])
MARIADB = pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)


def filled(merging: Merging, table: str, first: int) -> None:
    rows = ",".join(f"({first + number}, 'v{number}')" for number in range(ROWS))
    merging.do(f"INSERT INTO {table} VALUES {rows}")


async def left_out(merging: Merging, mode: str = "", x: str = COLUMNS) -> None:
    """A task that follows y and z; nothing of x is copied yet, which takes a while."""
    merging.mode = "all"
    merging.more |= {
        "shard-mode": mode,
        "mydumpers": {"small": {"rows": 25, "threads": 1}},
        "copy": {"rows-per-second": RATE},
    }
    merging.instance = {"mydumper-config-name": "small"}
    merging.create("x", x, shards=2)
    merging.create("y", COLUMNS)
    merging.create("z", "(n INT)")
    for number in (1, 2):
        filled(merging, f"x_{number}", 1000 * number)
    merging.blocked = target(merging, "x")
    async with merging.running() as generation:
        merging.do("INSERT INTO y_1 VALUES (1, 'a')", "INSERT INTO z_1 VALUES (1)")
        await merging.copied(generation)
        await until_only(merging, "x")
    merging.blocked = NOTHING


async def all_equal(merging: Merging, generation: Generation) -> None:
    """Wait until nothing is copied any more, and all is equal."""
    await until_only(merging)
    with anyio.fail_after(PATIENCE):
        while generation.copy is None or generation.copy.progress.figures().state != "finished":
            await anyio.sleep(LOOK_SECONDS)


@MODES
@MARIADB
async def test_others_are_followed_while_a_target_is_copied(merging: Merging, mode: str) -> None:
    await left_out(merging, mode)
    async with merging.running() as generation:
        merging.do("INSERT INTO y_1 VALUES (2, 'b')", "INSERT INTO z_1 VALUES (1), (2)")
        merging.do("INSERT INTO x_1 VALUES (1, 'held')", "DELETE FROM x_2 WHERE id = 2150")
        await until_only(merging, "x")
        assert generation.copy is not None
        figures = generation.copy.progress.figures()
        assert figures.state == "copying"
        assert figures.rows < 2 * ROWS
        await all_equal(merging, generation)
