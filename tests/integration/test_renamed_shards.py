"""Shards that get another name, or their structure from another target's: nothing is mistaken."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from actors.faults import FatalError
from replicator.sandbox.server import DatabaseServer
from replicator.schema.overridden_effects import OverrideAction

from tests.support.merging import Merging
from tests.support.overriding import override
from tests.support.running import PATIENCE

X = "(id INT PRIMARY KEY, a INT, b INT)"


@pytest.fixture(params=["", "pessimistic"])
def merging(
    request: pytest.FixtureRequest,
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
) -> Merging:
    """Shards that are copied; the first source tells no names of columns with its rows."""
    merging = merging_from(mariadb_source, mariadb_source_full)
    merging.mode = "all"
    merging.more = {"shard-mode": request.param}
    merging.create("x", X, shards=2)
    merging.create("y", X)
    for number, server in enumerate(merging.sources.values()):
        merging.on(
            server,
            f"INSERT INTO x_1 VALUES ({10 * number + 1}, 1, 2)",
            f"INSERT INTO x_2 VALUES ({10 * number + 2}, 1, 2)",
        )
    return merging


async def fault(merging: Merging) -> FatalError:
    """The fault of the next run; both targets may have it."""
    with anyio.fail_after(PATIENCE), pytest.raises(ExceptionGroup) as caught:
        await merging.generation().run(anyio.Event(), anyio.Event())
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, FatalError), repr(error)
    return error


async def copied(merging: Merging) -> None:
    async with merging.running() as generation:
        await merging.copied(generation)


def rows(merging: Merging, table: str, columns: str = "id, a, b") -> list[tuple[object, ...]]:
    return list(merging.on(merging.target, f"SELECT {columns} FROM {table} ORDER BY id"))


EXCHANGED = "CHANGE a b INT, CHANGE b a INT"


async def test_a_table_like_a_shard_that_was_just_changed(merging: Merging) -> None:
    await copied(merging)
    merging.on(merging.target, f"ALTER TABLE y {EXCHANGED}")
    merging.do(
        f"ALTER TABLE x_1 {EXCHANGED}",
        "CREATE TABLE y_2 LIKE x_1",
        "INSERT INTO y_2 (id, a, b) VALUES (50, 5, 6)",
    )
    async with merging.running() as generation:
        await merging.copied(generation)
        await merging.caught_up(generation)
    assert rows(merging, "y") == [(50, 5, 6)]


@pytest.mark.remedy("ddl.move-in", "skip")
async def test_a_shard_that_was_just_changed_moves_to_another_target(merging: Merging) -> None:
    await copied(merging)
    merging.on(merging.target, f"ALTER TABLE y {EXCHANGED}")
    merging.do(
        f"ALTER TABLE x_1 {EXCHANGED}",
        "RENAME TABLE x_1 TO y_2",
        "INSERT INTO y_2 (id, a, b) VALUES (50, 5, 6)",
    )
    found = await fault(merging)
    assert found.event == "ddl.move-in"
    await override(merging, found, OverrideAction.SKIP)
    async with merging.running() as generation:
        await merging.copied(generation)
        await merging.caught_up(generation)
    assert rows(merging, "y") == [(50, 5, 6)]
    assert sorted(row[0] for row in rows(merging, "x", "id")) == [1, 2, 11, 12]
