"""RENAMEs to a name that another target has: its shards came there earlier, or were dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
import pytest

from replicator.downstream.ddl import row_moves, target_renames
from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.integration.ddl.test_moved_targets import X, follow, settle
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, settles
from tests.support.tasks.tables import rows_of

MODES = ("pessimistic", "optimistic", "")
FIRST = ("INSERT INTO x_{n} VALUES ({n}, 1), ({n}0, 1)", "UPDATE x_{n} SET a = 3 WHERE id = {n}")
LATER = ("UPDATE y_{n} SET a = a + 10 WHERE id < 10", "DELETE FROM y_{n} WHERE id = {n}0")
CHANGED = (
    "ALTER TABLE y_{n} CHANGE a c INT",
    "ALTER TABLE y_{n} ADD b INT NOT NULL",
    "UPDATE y_{n} SET b = id WHERE id < 10",
    "ALTER TABLE y_{n} ADD KEY k (b)",
    "INSERT INTO y_{n} VALUES ({n}00, 1, 1)",
)


@pytest.fixture
def merging(merging_from: Callable[..., Merging], mariadb_source: DatabaseServer) -> Merging:
    return merging_from(mariadb_source)


def make(merging: Merging, mode: str) -> None:
    merging.more["shard-mode"] = mode
    for table in "xyz":
        merging.create(table, X, shards=0, with_target=False)
    merging.generation()


def do(merging: Merging, number: int, *statements: str) -> None:
    merging.do(*(statement.format(n=number) for statement in statements))


def history(*later: str) -> Sequence[str]:
    """What each shard executes: its table is created, gets rows, is renamed, and changes."""
    return (f"CREATE TABLE x_{{n}} {X}", *FIRST, "RENAME TABLE x_{n} TO y_{n}", *later)


@pytest.mark.parametrize("mode", MODES)
async def test_a_shard_is_renamed_after_the_others(merging: Merging, mode: str) -> None:
    make(merging, mode)
    for number in (1, 2):
        do(merging, number, *history(*LATER))
        await follow(merging)
    do(merging, 3, *history(*LATER[:1]))
    await settle(merging, {"y": ("y_1", "y_2", "y_3")})
    do(merging, 1, "INSERT INTO y_{n} VALUES (1000, 1)")
    do(merging, 3, *LATER[1:], "UPDATE y_{n} SET a = 9")
    await settle(merging, {"y": ("y_1", "y_2", "y_3")})


@pytest.mark.parametrize("mode", MODES[:2])
async def test_a_shard_is_renamed_after_the_others_are_dropped(merging: Merging, mode: str) -> None:
    make(merging, mode)
    do(merging, 1, *history("ALTER TABLE y_{n} ADD b INT"))
    await settle(merging, {"y": ("y_1",)})
    merging.do("DROP TABLE y_1")
    do(merging, 2, *history())
    last = "ALTER TABLE y_{n} ADD b INT", "UPDATE y_{n} SET b = 9 WHERE id = {n}"
    rows = {(1, 3, None), (2, 3, 9), (10, 1, None), (20, 1, None)}
    async with merging.running() as generation:
        await merging.caught_up(generation)
        do(merging, 2, *last)
        await settles(lambda: set(merging.on(merging.target, "SELECT * FROM y")), rows)
    assert not merging.on(merging.target, "SHOW TABLES LIKE 'x'")


@pytest.mark.parametrize(
    "mode", [MODES[0], *(pytest.param(mode, marks=pytest.mark.slow) for mode in MODES[1:])]
)
async def test_a_late_shard_has_the_name_that_the_others_get_by_their_second_rename(
    merging: Merging, mode: str
) -> None:
    make(merging, mode)
    later = ("RENAME TABLE y_{n} TO z_{n}", "ALTER TABLE z_{n} ADD b INT")
    for number in (1, 2):
        do(merging, number, *history(*LATER, *later))
    do(merging, 3, "CREATE TABLE z_{n} (id INT PRIMARY KEY, a INT, b INT)")
    do(merging, 3, "INSERT INTO z_{n} VALUES (3, 1, 1)")
    await settle(merging, {"z": ("z_1", "z_2", "z_3")})


@pytest.mark.parametrize(
    "mode", [MODES[0], *(pytest.param(mode, marks=pytest.mark.slow) for mode in MODES[1:])]
)
async def test_a_shard_that_was_there_first_is_read_again_after_another_renaming(
    merging: Merging, mode: str
) -> None:
    for table in "vw":
        merging.create(table, X, shards=0, with_target=False)
    make(merging, mode)
    merging.do(f"CREATE TABLE w_1 {X}", "INSERT INTO w_1 VALUES (1, 1)")
    for number in (1, 2):
        do(merging, number, *history()[:-1])
    await follow(merging)
    merging.do("RENAME TABLE w_1 TO v_1", f"CREATE TABLE y_3 {X}", "INSERT INTO y_3 VALUES (3, 1)")
    for number in (1, 2):
        do(merging, number, history()[-1], *LATER)
    await settle(merging, {"y": ("y_1", "y_2", "y_3"), "v": ("v_1",)})


@pytest.mark.parametrize(
    "mode", [MODES[0], *(pytest.param(mode, marks=pytest.mark.slow) for mode in MODES[1:])]
)
async def test_a_shard_goes_through_a_history_after_the_others(merging: Merging, mode: str) -> None:
    make(merging, mode)
    every = history(*LATER, *CHANGED)
    for number in (1, 2):
        do(merging, number, *every)
        await follow(merging)
    for some in (every[:4], every[4:7], every[7:]):
        do(merging, 3, *some)
        await follow(merging)
    await settle(merging, {"y": ("y_1", "y_2", "y_3")})


@pytest.mark.parametrize("mode", ["optimistic", pytest.param("", marks=pytest.mark.slow)])
async def test_a_target_that_has_become_narrower_takes_later_rows(
    merging: Merging, mode: str
) -> None:
    make(merging, mode)
    narrower = (
        "UPDATE y_{n} SET a = 5 WHERE a IS NULL",
        "ALTER TABLE y_{n} MODIFY a INT NOT NULL DEFAULT 5, ADD CHECK (a > 0)",
        "ALTER TABLE y_{n} ADD b INT NOT NULL DEFAULT 3",
        "ALTER TABLE y_{n} ADD KEY k (b)",
        "INSERT INTO y_{n} VALUES ({n}00, 1, 1)",
    )
    first = (*history()[:-1], "INSERT INTO x_{n} VALUES ({n}1, NULL), ({n}2, -1)", history()[-1])
    do(merging, 1, *first, "UPDATE y_{n} SET a = 5 WHERE a < 0", *narrower)
    await follow(merging)
    for number in (2, 3):
        do(merging, number, *first, "INSERT INTO y_{n} VALUES ({n}3, NULL)")
        await follow(merging)
    for number in (2, 3):
        do(merging, number, "UPDATE y_{n} SET a = 5 WHERE a < 0", *narrower)
    await settle(merging, {"y": ("y_1", "y_2", "y_3")})


@pytest.mark.parametrize("mode", MODES)
async def test_shards_are_rebuilt(merging: Merging, mode: str) -> None:
    make(merging, mode)
    for number in (1, 2):
        do(merging, number, f"CREATE TABLE x_{{n}} {X}", *FIRST)
    await follow(merging)
    rebuild = (
        "CREATE TABLE z_{n} (id INT PRIMARY KEY, a BIGINT, b INT)",
        "INSERT INTO z_{n} SELECT id, a, 5 FROM x_{n} WHERE id < 10",
        "DROP TABLE x_{n}",
        "RENAME TABLE z_{n} TO x_{n}",
        "INSERT INTO x_{n} VALUES ({n}00, 1, 1)",
    )
    for number in (1, 2):
        do(merging, number, *rebuild)
        await follow(merging)
    await settle(merging, {"x": ("x_1", "x_2")})
    do(merging, 1, "ALTER TABLE x_{n} ADD c INT", "UPDATE x_{n} SET c = 1")
    do(merging, 2, "ALTER TABLE x_{n} ADD c INT", "UPDATE x_{n} SET c = 2")
    await settle(merging, {"x": ("x_1", "x_2")})


@pytest.mark.slow
@pytest.mark.parametrize(
    "point", [Failpoint.DDL_RECORDED, Failpoint.DDL_EXECUTED, Failpoint.DDL_FINISHED]
)
async def test_a_move_of_rows_that_breaks_off_is_made_once(
    merging: Merging, point: Failpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(merging, "pessimistic")
    do(merging, 1, *history(*LATER))
    await follow(merging)
    await settle(merging, {"y": ("y_1",)})
    do(merging, 2, *history(*LATER))

    def die(here: Failpoint) -> None:
        if here is point:
            raise ZeroDivisionError(here)

    with monkeypatch.context() as patched:
        patched.setattr(target_renames, "reach", die)
        with anyio.fail_after(PATIENCE), pytest.raises((ExceptionGroup, ZeroDivisionError)):
            await merging.generation().run(anyio.Event(), anyio.Event())
    await settle(merging, {"y": ("y_1", "y_2")})
    assert row_moves.PATIENCE > PATIENCE


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
async def test_a_target_that_its_shards_leave_does_not_give_way_to_a_late_one(
    merging: Merging, mode: str
) -> None:
    """It has the rows of its shards, which wait for another name: they would be lost."""
    make(merging, mode)
    merging.do(f"CREATE TABLE y_1 {X}", f"CREATE TABLE y_2 {X}", "INSERT INTO y_1 VALUES (7, 7)")
    rebuild = (
        f"CREATE TABLE x_{{n}} {X}",
        *FIRST,
        f"CREATE TABLE z_{{n}} {X}",
        "INSERT INTO z_{n} SELECT * FROM x_{n}",
        "DELETE FROM x_{n}",
        "DROP TABLE x_{n}",
        "RENAME TABLE z_{n} TO x_{n}",
    )
    do(merging, 2, *rebuild)
    await settle(merging, {"x": ("x_2",), "y": ("y_1", "y_2")})
    do(merging, 2, "RENAME TABLE x_{n} TO aside, y_{n} TO x_{n}, aside TO y_{n}")
    do(merging, 1, *rebuild)
    async with merging.running() as generation:
        with anyio.fail_after(PATIENCE):
            while generation.running is None or not any(
                lock.id.endswith(".z-rename") for lock in generation.running.open_locks()
            ):
                await anyio.sleep(LOOK_SECONDS)
        # The mover looks every 0.2 s.
        await anyio.sleep(2)
    assert rows_of(merging.target, f"{merging.database}.x") == rows_of(
        merging.source, f"{merging.database}.y_2"
    )
