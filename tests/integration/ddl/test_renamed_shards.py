"""Shards that get another name, or their structure from another target's: nothing is mistaken."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from actors.errors.faults import FatalError
from replicator.sandbox.server import DatabaseServer
from replicator.schema.effects.overridden_effects import OverrideAction
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import override, until_shard_waits
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, settles

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


async def fault(merging: Merging, *later: str) -> FatalError:
    """The fault of the next run; both targets may have it. ``later``: done when it has read all."""

    async def run() -> None:
        async with merging.running() as generation:
            await merging.copied(generation)
            await merging.caught_up(generation)
            merging.do(*later)
            await anyio.sleep_forever()

    with anyio.fail_after(PATIENCE), pytest.raises(ExceptionGroup) as caught:
        await run()
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


async def test_a_shard_that_was_just_changed_moves_to_another_target(merging: Merging) -> None:
    await copied(merging)
    merging.on(merging.target, f"ALTER TABLE y {EXCHANGED}")
    merging.do(
        f"ALTER TABLE x_1 {EXCHANGED}",
        "RENAME TABLE x_1 TO y_2",
        "INSERT INTO y_2 (id, a, b) VALUES (50, 5, 6)",
    )
    found = await until_shard_waits(merging)
    await override(merging, found, OverrideAction.SKIP)
    async with merging.running() as generation:
        await merging.copied(generation)
        # The shard joins at the next start of the actors.
        await settles(lambda: rows(merging, "y"), [(50, 5, 6)])
    assert rows(merging, "x", "id") == [(1,), (2,), (11,), (12,)]


async def test_a_change_with_a_new_name(merging: Merging) -> None:
    """One statement makes both: the change comes first, under the former name."""
    await copied(merging)
    add = "ADD w DECIMAL(5,0) DEFAULT 7"
    merging.do(
        f"ALTER TABLE x_1 RENAME TO x_3, {add}",
        "INSERT INTO x_3 (id, a, b) VALUES (50, 5, 6)",
        "UPDATE x_3 SET a = 9 WHERE id = 1",
        f"ALTER TABLE x_2 {add}",
    )
    for shard in ("x_1", "x_2"):
        merging.on(merging.sources["b"], f"ALTER TABLE {shard} {add}")
    wanted = [(1, 9, 2, 7), (2, 1, 2, 7), (11, 1, 2, 7), (12, 1, 2, 7), (50, 5, 6, 7)]
    async with merging.running() as generation:
        await merging.copied(generation)
        with anyio.move_on_after(PATIENCE):
            while rows(merging, "x", "*") != wanted:
                await anyio.sleep(LOOK_SECONDS)
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("INSERT INTO x_3 (id, a, b) VALUES (51, 5, 6)")
        await merging.caught_up(generation)
    assert rows(merging, "x", "*") == [*wanted, (51, 5, 6, 7)]


async def test_skipped_exchange_with_a_table_that_is_left_out_leaves_structures_a_guess(
    merging: Merging,
) -> None:
    """The statement can't be carried over, and no event tells which column a value is of."""
    away = f"{merging.database}_away"
    await copied(merging)
    merging.do(
        f"CREATE DATABASE {away}",
        f"CREATE TABLE {away}.x (id INT PRIMARY KEY, b INT, a INT)",
        f"RENAME TABLE x_1 TO x_4, {away}.x TO x_1",
        "INSERT INTO x_1 (id, a, b) VALUES (50, 5, 6)",
    )
    found = await fault(merging)
    assert found.event == "ddl.not-supported"
    await override(merging, found, OverrideAction.SKIP)
    found = await fault(merging)
    assert found.event == "rows.structure-unknown"
    assert rows(merging, "x", "id") == [(1,), (2,), (11,), (12,)]


async def test_shards_exchange_their_names_by_that_of_another_target(merging: Merging) -> None:
    merging.do("ALTER TABLE x_2 MODIFY a INT AFTER b")
    await copied(merging)
    merging.do(
        "RENAME TABLE x_1 TO tmp, x_2 TO x_1, tmp TO x_2",
        "INSERT INTO x_1 (id, a, b) VALUES (50, 5, 6)",
        "INSERT INTO x_2 (id, a, b) VALUES (51, 7, 8)",
    )
    if merging.more["shard-mode"]:
        found = await fault(merging)
        assert found.event == "ddl.several-tables"
        one_by_one = ("x_1 TO x_9", "x_2 TO x_1", "x_9 TO x_2")
        given = (f"RENAME TABLE {names}" for names in one_by_one)
        await override(merging, found, OverrideAction.REPLACE, *given)
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("UPDATE x_1 SET a = 9", "UPDATE x_2 SET b = 9")
        await merging.check(generation, {"x": "id, a, b"})


async def test_a_renamed_target_is_read_again_from_before_its_creation(merging: Merging) -> None:
    """Rows of another target that waits keep the saved position there."""
    merging.create("w", X, shards=0, with_target=False)
    merging.create("u", X, shards=0, with_target=False)
    await copied(merging)
    async with merging.running() as generation:
        await merging.copied(generation)
        # The other shards of x do not make the change, so these rows wait.
        merging.do("ALTER TABLE x_1 DROP b", "INSERT INTO x_1 VALUES (50, 5)")
        for n in (1, 2):
            merging.do(
                f"CREATE TABLE w_{n} (id INT PRIMARY KEY, a INT)",
                f"INSERT INTO w_{n} VALUES ({n}, 1)",
                f"ALTER TABLE w_{n} ADD c INT",
                f"ALTER TABLE w_{n} CHANGE a f BIGINT",
                f"INSERT INTO w_{n} VALUES ({n + 10}, 1, 1)",
                f"RENAME TABLE w_{n} TO u_{n}",
                f"INSERT INTO u_{n} VALUES ({n + 20}, 1, 1)",
            )
        await settles(lambda: tables(merging), {"u", "x", "y"})
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("ALTER TABLE u_1 ADD d INT", "ALTER TABLE u_2 ADD d INT")
        merging.do("UPDATE u_1 SET f = 7, d = 8")
        expected = [(1, 7, None, 8), (2, 1, None, None), (11, 7, 1, 8), (12, 1, 1, None)]
        await settles(lambda: rows(merging, "u", "*"), [*expected, (21, 7, 1, 8), (22, 1, 1, None)])
        await merging.caught_up(generation)
    assert tables(merging) == {"u", "x", "y"}


async def test_changes_wait_for_renamed_shards_that_are_read_again_later(merging: Merging) -> None:
    """The target has their rows already, so no other shard's statement is executed before."""
    merging.create("w", X)
    merging.create("u", X, shards=0, with_target=False)
    await copied(merging)
    slow, fast = merging.sources.values()
    merging.on(slow, "INSERT INTO w_1 VALUES (1, 1, 2)")
    merging.on(fast, "INSERT INTO w_1 VALUES (2, 1, 2)")
    async with merging.running() as generation:
        await merging.copied(generation)
        # The other shards of x do not make the change, so everything is read again from here on.
        merging.on(slow, "ALTER TABLE x_1 DROP b", "INSERT INTO x_1 VALUES (50, 5)")
        # Reading these again takes longer than executing what the other source has next.
        merging.on(slow, *(f"ALTER TABLE y_1 ADD c{n} INT" for n in range(60)))
        merging.on(slow, "RENAME TABLE w_1 TO u_1")
        merging.on(fast, "RENAME TABLE w_1 TO u_1")
        await settles(lambda: tables(merging), {"u", "x", "y"})
    truncation = ("ALTER TABLE u_1 ADD c INT", "TRUNCATE TABLE u_1")
    merging.on(fast, *truncation)
    async with merging.running() as generation:
        await merging.copied(generation)
        await merging.caught_up(generation)
        assert rows(merging, "u", "id") == [(1,), (2,)]
        merging.on(slow, *truncation)
        await settles(lambda: rows(merging, "u", "*"), [])


def tables(merging: Merging) -> set[object]:
    return {name for (name,) in merging.on(merging.target, "SHOW TABLES")}
