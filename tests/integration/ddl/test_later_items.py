"""Shards that show the schema changes of others, and make later ones before these."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from actors.task.generation import Generation
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, settles


@pytest.fixture
def merging(merging_from: Callable[..., Merging], mariadb_source: DatabaseServer) -> Merging:
    return merging_from(mariadb_source)


@pytest.mark.parametrize(
    "own",
    [
        "KEY k (a)",
        pytest.param("KEY k (a), CONSTRAINT c CHECK (a > 0)", marks=pytest.mark.slow),
    ],
)
async def test_a_shard_that_has_a_key_makes_a_later_change_first(
    merging: Merging, own: str
) -> None:
    merging.more["shard-mode"] = "pessimistic"
    merging.create("x", "(id INT PRIMARY KEY, a INT)", shards=2)
    merging.generation()
    async with merging.running() as generation:
        await merging.caught_up(generation)
        merging.do(f"CREATE TABLE x_3 (id INT PRIMARY KEY, a INT, {own})")
        merging.do("INSERT INTO x_3 VALUES (30, 3)", "ALTER TABLE x_3 ADD KEY k2 (a, id)")
        merging.do("INSERT INTO x_3 VALUES (31, 3)", "ALTER TABLE x_3 ADD b INT DEFAULT 5")
        merging.do("INSERT INTO x_3 VALUES (32, 3, 4)")
        await merging.caught_up(generation)
        changes = ["ADD KEY k (a)", "ADD CONSTRAINT c CHECK (a > 0)"]
        changes = [*changes[: own.count(",") + 1], "ADD KEY k2 (a, id)", "ADD b INT DEFAULT 5"]
        for change in changes:
            for shard in ("x_1", "x_2"):
                merging.do(f"ALTER TABLE {shard} {change}")
        merging.do("INSERT INTO x_1 VALUES (1, 1, 1)", "INSERT INTO x_2 VALUES (2, 2, 2)")
        merging.shards("x", 3)
        with anyio.move_on_after(PATIENCE):
            while merging.differences():
                await anyio.sleep(LOOK_SECONDS)
    assert not merging.differences()
    shown = merging.on(merging.target, "SHOW CREATE TABLE x")[0][1]
    assert str(shown).count("KEY `k") == 2


RUNS = [
    ("ADD CONSTRAINT c CHECK (a > 0)", "DROP CONSTRAINT c"),
    ("ADD c INT NOT NULL DEFAULT 3 FIRST", "DROP c"),
]
MORE_RUNS = [
    ("ALTER a SET DEFAULT 7", "ALTER a DROP DEFAULT"),
    ("ADD KEY k (a)", "COMMENT = 'x'", "DROP KEY k", "COMMENT = ''"),
    ("ADD c TEXT", "ADD d INT DEFAULT 5 AFTER id", "DROP c", "DROP d"),
    ("MODIFY a INT NOT NULL", "MODIFY a INT"),
    ("MODIFY a BIGINT", "ADD c TEXT", "MODIFY a INT", "DROP c"),
]


@pytest.mark.parametrize("itself", [False, True], ids=["never", "later"])
@pytest.mark.parametrize(
    "run", [*RUNS, *(pytest.param(run, marks=pytest.mark.slow) for run in MORE_RUNS)]
)
async def test_no_lock_waits_for_a_shard_that_lacks_what_the_others_have_undone(
    merging: Merging, run: tuple[str, ...], *, itself: bool
) -> None:
    merging.more["shard-mode"] = "pessimistic"
    merging.create("x", "(id INT PRIMARY KEY, a INT)", shards=2)
    merging.generation()
    async with merging.running() as generation:
        await merging.caught_up(generation)
        for number, change in enumerate(run):
            merging.do(
                f"ALTER TABLE x_2 {change}", f"INSERT INTO x_2 (id, a) VALUES ({40 + number}, 1)"
            )
        merging.do("INSERT INTO x_2 VALUES (2, 2)", "ALTER TABLE x_2 ADD b INT DEFAULT 5")
        merging.do("INSERT INTO x_2 VALUES (3, 3, 3)", "INSERT INTO x_1 VALUES (11, 1)")
        await settles(lambda: open_locks(generation), [f"{merging.database}.x:{len(run) + 1}"])
        for number, change in enumerate(run if itself else ()):
            merging.do(
                f"ALTER TABLE x_1 {change}", f"INSERT INTO x_1 (id, a) VALUES ({20 + number}, 1)"
            )
        merging.do("ALTER TABLE x_1 ADD b INT DEFAULT 5", "INSERT INTO x_1 VALUES (30, 3, 3)")
        await settles(merging.differences, {})


def open_locks(generation: Generation) -> list[str]:
    assert generation.running is not None
    return [lock.id for lock in generation.running.open_locks()]
