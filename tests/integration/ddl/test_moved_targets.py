"""One RENAME that gives several shards other targets: all rows of a target move, once."""

from __future__ import annotations

import anyio
import pytest

from actors.errors.faults import FatalError
from replicator.downstream.ddl import ddl_execution, target_renames
from replicator.failpoints import Failpoint
from replicator.schema.effects.overridden_effects import OverrideAction
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import override
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE
from tests.support.tasks.tables import rows_of, union_of

X = "(id INT PRIMARY KEY, a INT)"
Shards = dict[str, tuple[str, ...]]
MOVES: dict[str, tuple[str, Shards]] = {
    "another target": (
        "RENAME TABLE x_1 TO y_1, x_2 TO y_2",
        {"y": ("y_1", "y_2"), "z": ("z_1", "z_2")},
    ),
    "and another name": (
        "RENAME TABLE x_1 TO y_1, z_1 TO z_3, x_2 TO y_2",
        {"y": ("y_1", "y_2"), "z": ("z_3", "z_2")},
    ),
    "exchange": (
        "RENAME TABLE x_1 TO aside, z_1 TO x_1, aside TO z_1,"
        " x_2 TO aside, z_2 TO x_2, aside TO z_2",
        {"x": ("x_1", "x_2"), "z": ("z_1", "z_2")},
    ),
    "by a name that is left out": (
        "RENAME TABLE x_1 TO {away}.a, x_2 TO {away}.b, z_1 TO x_1, z_2 TO x_2,"
        " {away}.a TO z_1, {away}.b TO z_2",
        {"x": ("x_1", "x_2"), "z": ("z_1", "z_2")},
    ),
    "to one that has shards": (
        "RENAME TABLE x_1 TO z_3, x_2 TO z_4",
        {"z": ("z_1", "z_2", "z_3", "z_4")},
    ),
    "row": (
        "RENAME TABLE x_1 TO y_1, x_2 TO y_2, z_1 TO x_1, z_2 TO x_2",
        {"y": ("y_1", "y_2"), "x": ("x_1", "x_2")},
    ),
}


def make(merging: Merging) -> None:
    """Shards of x and of z, with rows in both; y has none yet."""
    merging.create("x", X, shards=2)
    merging.create("z", X, shards=2)
    merging.create("y", X, shards=0, with_target=False)
    merging.source.execute(f"CREATE DATABASE {merging.database}_away")
    merging.generation()
    merging.do(*(f"INSERT INTO x_{n} VALUES ({n}, 1), ({n + 10}, 1)" for n in (1, 2)))
    merging.do(*(f"INSERT INTO z_{n - 2} VALUES ({n}, 2), ({n + 10}, 2)" for n in (3, 4)))


def move(merging: Merging, kind: str) -> Shards:
    statement, now = MOVES[kind]
    merging.do("UPDATE x_1 SET a = 3", statement.format(away=f"{merging.database}_away"))
    return now


def change(merging: Merging, now: Shards) -> None:
    """Changes behind the move: of rows from before, of structures, of new rows."""
    shards = [shard for shards in now.values() for shard in shards]
    merging.do(*(f"UPDATE {shard} SET a = a + 10 WHERE id < 10" for shard in shards))
    merging.do(*(f"DELETE FROM {shard} WHERE id > 10" for shard in shards[1:]))
    merging.do(*(f"ALTER TABLE {shard} ADD b INT DEFAULT 5" for shard in shards))
    merging.do(*(f"INSERT INTO {s} VALUES ({100 + n}, 1, 1)" for n, s in enumerate(shards)))


def unequal(merging: Merging, now: Shards) -> list[str]:
    """The targets that have other rows than their shards."""
    found, db = [], merging.database
    for target, shards in now.items():
        there = merging.on(merging.target, f"SHOW TABLES FROM {db} LIKE '{target}'")
        if shards and not there:
            found.append(target)
            continue
        wanted = union_of([(merging.source, f"{db}.{shard}") for shard in shards], "*")
        if rows_of(merging.target, f"{db}.{target}", "*") != wanted:
            found.append(target)
    return found


async def settle(merging: Merging, now: Shards) -> None:
    """Follow what comes until the targets are equal to their shards."""
    async with merging.running() as generation:
        await merging.caught_up(generation)
        with anyio.move_on_after(PATIENCE):
            while unequal(merging, now):
                await anyio.sleep(LOOK_SECONDS)
    assert unequal(merging, now) == []


AGAIN = ("exchange",)
"""Moves that the usual runs read again, too: of all rows of two targets."""


@pytest.mark.parametrize(
    ("kind", "again"),
    [
        *(pytest.param(kind, False, id=f"{kind}-followed") for kind in MOVES),
        *(
            pytest.param(
                kind,
                True,
                id=f"{kind}-read again",
                marks=[pytest.mark.slow] if kind not in AGAIN else [],
            )
            for kind in MOVES
        ),
    ],
)
async def test_all_shards_of_a_target_move(merging: Merging, kind: str, *, again: bool) -> None:
    make(merging)
    async with merging.running() as generation:
        await merging.caught_up(generation)
        now = move(merging, kind)
        if not again:
            await merging.caught_up(generation)
    async with merging.running() as generation:
        await merging.caught_up(generation)
        change(merging, now)
    await settle(merging, now)


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(Failpoint.DDL_RECORDED, marks=pytest.mark.slow),
        Failpoint.DDL_EXECUTED,
        pytest.param(Failpoint.DDL_FINISHED, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("kind", ["another target", "exchange"])
async def test_a_move_that_breaks_off_is_made_once(
    merging: Merging, kind: str, point: Failpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(merging)
    async with merging.running() as generation:
        await merging.caught_up(generation)
    now = move(merging, kind)

    def die(here: Failpoint) -> None:
        if here is point:
            raise ZeroDivisionError(here)

    with monkeypatch.context() as patched:
        for module in (ddl_execution, target_renames):
            patched.setattr(module, "reach", die)
        with (
            anyio.fail_after(PATIENCE),
            pytest.raises((ExceptionGroup, ZeroDivisionError)) as caught,
        ):
            await merging.generation().run(anyio.Event(), anyio.Event())
        single = isinstance(caught.value, ZeroDivisionError)
        assert single or caught.group_contains(ZeroDivisionError), caught.value
    change(merging, now)
    await settle(merging, now)


async def fault(merging: Merging) -> FatalError:
    """The fault of the next run; several targets may have it."""
    with anyio.fail_after(PATIENCE), pytest.raises((FatalError, ExceptionGroup)) as caught:
        await merging.generation().run(anyio.Event(), anyio.Event())
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, FatalError), repr(error)
    return error


async def follow(merging: Merging) -> None:
    async with merging.running() as generation:
        await merging.caught_up(generation)


REFUSED = {
    "one of two": "RENAME TABLE x_1 TO y_1",
    "one of two, another name for the other": "RENAME TABLE x_1 TO y_1, x_2 TO x_3",
    "to two targets": "RENAME TABLE x_1 TO y_1, x_2 TO z_3",
    "one is left out": "RENAME TABLE x_1 TO {away}.x_1, x_2 TO y_1",
    "two targets to one": "RENAME TABLE x_1 TO y_1, x_2 TO y_2, z_1 TO y_3, z_2 TO y_4",
}


WITH_LOCKS = ("one of two", "two targets to one")
"""Those that the usual runs try with locks, too, by which their shards differ longest."""


@pytest.mark.remedy("ddl.move-in", "skip", "resume")
@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        *((kind, "") for kind in REFUSED),
        *(
            pytest.param(
                kind, "pessimistic", marks=[pytest.mark.slow] if kind not in WITH_LOCKS else []
            )
            for kind in REFUSED
        ),
    ],
)
async def test_rows_that_cannot_move_alone_are_moved_by_the_operator(
    merging: Merging, kind: str, mode: str
) -> None:
    merging.more["shard-mode"] = mode
    make(merging)
    merging.on(merging.target, f"CREATE TABLE IF NOT EXISTS y {X}")
    await follow(merging)
    away = f"{merging.database}_away"
    merging.do("UPDATE x_1 SET a = 3", REFUSED[kind].format(away=away))
    found = await fault(merging)
    assert found.event == "ddl.move-in", found
    names = [pair.split(" TO ") for pair in REFUSED[kind][13:].format(away=away).split(", ")]
    now: Shards = {"x": (), "y": (), "z": ()}
    new = dict(names)
    for shard in ("x_1", "x_2", "z_1", "z_2"):
        called = new.get(shard, shard)
        if called.startswith(away):
            merging.on(merging.target, "DELETE FROM x WHERE id IN (1, 11)")
            continue
        now[called[0]] += (called,)
        if called[0] != shard[0]:
            keys = ",".join(
                str(row[0]) for row in merging.on(merging.source, f"SELECT id FROM {called}")
            )
            merging.on(
                merging.target,
                f"INSERT INTO {called[0]} SELECT * FROM {shard[0]} WHERE id IN ({keys})",
                f"DELETE FROM {shard[0]} WHERE id IN ({keys})",
            )
    await override(merging, found, OverrideAction.SKIP)
    await follow(merging)
    change(merging, now)
    await settle(merging, now)


@pytest.mark.parametrize("mode", ["", "pessimistic"])
async def test_a_shard_takes_the_place_of_one_that_is_left_out(merging: Merging, mode: str) -> None:
    merging.more["shard-mode"] = mode
    make(merging)
    await follow(merging)
    merging.do(f"RENAME TABLE x_1 TO {merging.database}_away.x_1, x_2 TO x_1, z_2 TO z_4")
    now: Shards = {"x": ("x_1",), "z": ("z_1", "z_4")}
    await follow(merging)
    # The rows of the one that is left out stay on the target.
    kept = merging.on(merging.target, "SELECT id FROM x WHERE id IN (1, 11)")
    assert sorted(kept) == [(1,), (11,)]
    merging.on(merging.target, "DELETE FROM x WHERE id IN (1, 11)")
    change(merging, now)
    await settle(merging, now)
