"""Shards that are copied once all others are: their target alone waits for them."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from actors.copying import background
from actors.errors.faults import FatalError, of_source
from actors.task.generation import Generation
from replicator.sandbox.server import DatabaseServer
from tests.integration.merge.test_blocked_parts import COLUMNS, target
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS, NOTHING, caught_up, fault_of

ROWS = 200
SLOWLY = 3
"""Rows per second: the copy of two shards does not come to its end in a test."""

LONG = 300.0
"""Seconds that anything may take on a machine that has much to do."""

MODES = pytest.mark.parametrize("mode", ["", "pessimistic"], ids=["uncoordinated", "pessimistic"])
MARIADB = pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)


async def until_only(merging: Merging, *tables: str) -> None:
    """Wait until no other tables than these, which may be missing, differ from their shards."""
    with anyio.move_on_after(LONG):
        while merging.differences(but=tables):
            await anyio.sleep(LOOK_SECONDS)
    assert merging.differences(but=tables) == {}


def filled(merging: Merging, server: DatabaseServer, table: str, first: int) -> None:
    rows = ",".join(f"({first + number}, 'v{number}')" for number in range(ROWS))
    merging.on(server, f"INSERT INTO {table} VALUES {rows}")


def slowly(merging: Merging, mode: str = "") -> None:
    """From the next task file on, small chunks are copied, one after the other."""
    merging.mode = "all"
    merging.more |= {
        "shard-mode": mode,
        "mydumpers": {"small": {"rows": 25, "threads": 1}},
        "copy": {"rows-per-second": SLOWLY},
    }
    merging.instance = {"mydumper-config-name": "small"}


async def left_out(merging: Merging, mode: str = "", x: str = COLUMNS) -> None:
    """A task that follows y and z; nothing of x is copied yet, which takes a while."""
    slowly(merging, mode)
    merging.create("x", x, shards=2)
    merging.create("y", COLUMNS)
    merging.create("z", "(n INT)")
    for number in (1, 2):
        filled(merging, merging.source, f"x_{number}", 1000 * number)
    merging.blocked = target(merging, "x")
    async with merging.running() as generation:
        merging.do("INSERT INTO y_1 VALUES (1, 'a')", "INSERT INTO z_1 VALUES (1)")
        await merging.copied(generation, LONG)
        await until_only(merging, "x")
    merging.blocked = NOTHING


async def all_equal(merging: Merging) -> None:
    """Run on, as fast as it can be, until nothing is copied any more, and all is equal."""
    merging.more["copy"] = {}
    merging.changed(mode="all")
    async with merging.running() as generation:
        with anyio.fail_after(LONG):
            while generation.copy is None or generation.copy.progress.figures().state != "finished":
                await anyio.sleep(LOOK_SECONDS)
        await until_only(merging)


async def chunks_copied(generation: Generation, chunks: int) -> None:
    """Wait until targets are followed, and this run has copied so many chunks."""
    with anyio.fail_after(LONG):
        while generation.copy is None or not generation.copy.progress.counted:
            await anyio.sleep(LOOK_SECONDS)
        progress = generation.copy.progress
        while progress.rows - progress.rows_before < 25 * chunks:
            await anyio.sleep(LOOK_SECONDS)


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param("", id="uncoordinated"),
        pytest.param("pessimistic", id="pessimistic", marks=pytest.mark.slow),
    ],
)
@MARIADB
async def test_others_are_followed_while_a_target_is_copied(merging: Merging, mode: str) -> None:
    await left_out(merging, mode)
    async with merging.running() as generation:
        merging.do("INSERT INTO y_1 VALUES (2, 'b')", "INSERT INTO z_1 VALUES (1), (2)")
        merging.do("INSERT INTO x_1 VALUES (1, 'held')", "DELETE FROM x_2 WHERE id = 2150")
        await until_only(merging, "x")
        assert generation.copy is not None
        figures = generation.copy.progress.figures()
        assert (figures.state, figures.held) == ("copying", (f"{merging.database}.x",))
        assert figures.rows < 2 * ROWS
    assert not merging.differences(but=("x",))
    await all_equal(merging)


@MODES
@MARIADB
@pytest.mark.slow
async def test_shards_that_change_while_they_are_copied_are_as_they_should_be(
    merging: Merging, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "KEEP_UP_SECONDS", 0.3)
    await left_out(merging, mode)
    async with merging.running() as generation:
        await chunks_copied(generation, 2)
        for number in (1, 2):
            late = 1000 * number + ROWS - 5
            merging.do(
                f"UPDATE x_{number} SET v = 'early' WHERE id IN ({1000 * number}, {late})",
                f"ALTER TABLE x_{number} ADD c INT NOT NULL DEFAULT 5",
                f"INSERT INTO x_{number} VALUES ({number}, 'new', 7)",
                f"DELETE FROM x_{number} WHERE id IN ({1000 * number + 1}, {late + 1})",
                f"UPDATE x_{number} SET id = id + 500 WHERE id = {late + 2}",
            )
        merging.do("ALTER TABLE y_1 ADD c INT", "INSERT INTO y_1 VALUES (3, 'b', 4)")
        await until_only(merging, "x")
        assert generation.copy is not None
        assert generation.copy.progress.figures().state == "copying"
        # Their statements are read beside the one who follows the source.
        assert generation.counts.sources["a"].reconnects == 0
    await all_equal(merging)


@MARIADB
@pytest.mark.slow
async def test_a_shard_that_cannot_be_read_as_it_was_is_deferred_and_copied_once_more(
    merging: Merging,
) -> None:
    await left_out(merging)
    async with merging.running() as generation:
        await chunks_copied(generation, 2)
        merging.do(
            "ALTER TABLE x_2 MODIFY id VARCHAR(20) NOT NULL",
            "DELETE FROM x_2 WHERE id = '2010'",
            "INSERT INTO y_1 VALUES (3, 'b')",
        )
        await until_only(merging, "x")
        merging.do("ALTER TABLE x_1 MODIFY id VARCHAR(20) NOT NULL")
    await all_equal(merging)
    merging.do("INSERT INTO x_1 VALUES ('text', 'last')")
    await all_equal(merging)


@MODES
@MARIADB
@pytest.mark.slow
async def test_a_table_without_a_key_with_stops_in_between(merging: Merging, mode: str) -> None:
    await left_out(merging, mode, "(id INT, v VARCHAR(9))")
    for number in range(3):
        async with merging.running() as generation:
            if number == 0:
                await chunks_copied(generation, 1)
            merging.do(
                "INSERT INTO x_1 VALUES (1000, 'v0'), (7, NULL), (7, NULL)",
                "DELETE FROM x_2 WHERE id = 2000 LIMIT 1",
                f"INSERT INTO x_2 VALUES (2000, 'v0'), (200{number}, NULL)",
                f"INSERT INTO y_1 VALUES (1{number}, 'b')",
            )
            await until_only(merging, "x")
    await all_equal(merging)


@MARIADB
@pytest.mark.slow
async def test_a_second_target_is_resumed_while_the_first_is_copied(merging: Merging) -> None:
    await left_out(merging)
    merging.blocked = target(merging, "y")
    async with merging.running() as generation:
        await chunks_copied(generation, 2)
        merging.do("INSERT INTO y_1 VALUES (2, 'b')", "INSERT INTO z_1 VALUES (2)")
        merging.do("INSERT INTO x_1 VALUES (1, 'held')", "RENAME TABLE y_1 TO y_2")
        merging.do("CREATE TABLE y_1 LIKE x_1", "INSERT INTO y_1 VALUES (9, 'like')")
        await until_only(merging, "x", "y")
        assert generation.running is not None
    merging.shards("y", 2)
    merging.blocked = NOTHING
    await all_equal(merging)


@MARIADB
@pytest.mark.slow
async def test_a_fault_of_the_copy_blocks_its_target_and_one_of_another_ends_it_in_order(
    merging: Merging,
) -> None:
    await left_out(merging)
    merging.do("INSERT INTO x_1 VALUES (2199, 'twice')")
    merging.on(merging.target, "INSERT INTO y VALUES (70, 'own')")
    other = await fault_while_copied(merging, "INSERT INTO y_1 VALUES (70, 'b')")
    assert (other.event, other.scope) == ("rows.duplicate", target(merging, "y"))
    merging.on(merging.target, "DELETE FROM y WHERE id = 70")
    merging.more["copy"] = {"rows-per-second": 30 * SLOWLY}
    merging.changed(mode="all")
    own = await fault_while_copied(merging, "INSERT INTO y_1 VALUES (71, 'b')")
    assert (own.event, own.scope) == ("copy.duplicate", target(merging, "x"))
    assert not merging.differences(but=("x",))
    merging.do("DELETE FROM x_1 WHERE id = 2199")
    await all_equal(merging)


async def fault_while_copied(merging: Merging, statement: str) -> FatalError:
    async def run() -> None:
        async with merging.running() as generation:
            await chunks_copied(generation, 1)
            merging.do(statement)
            await anyio.sleep_forever()

    with anyio.fail_after(LONG):
        return await fault_of(run())


@pytest.mark.slow
async def test_a_row_that_moved_to_a_shard_that_is_copied_is_not_deleted_with_the_other_one(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
) -> None:
    merging = merging_from(mariadb_source, mariadb_source_full)
    a, b = merging.sources.values()
    slowly(merging)
    merging.create("x", COLUMNS)
    merging.create("y", COLUMNS)
    filled(merging, a, "x_1", 1000)
    filled(merging, b, "x_1", 5000)
    # It is on its way from the first to the other one.
    merging.on(a, "INSERT INTO x_1 VALUES (9999, 'moves')", "INSERT INTO y_1 VALUES (1, 'a')")
    merging.on(b, "INSERT INTO x_1 VALUES (9999, 'moved')")
    merging.blocked = target(merging, "x")
    async with merging.running() as generation:
        await merging.copied(generation, LONG)
        await until_only(merging, "x")
    # Of the first source all is copied before the other one's copy begins.
    merging.blocked = of_source("b")
    await copied_fast(merging)
    slowly(merging)
    merging.changed(mode="all")
    merging.blocked = NOTHING
    async with merging.running() as generation:
        await chunks_copied(generation, 1)
        merging.on(a, "DELETE FROM x_1 WHERE id = 9999", "INSERT INTO y_1 VALUES (2, 'a')")
        await until_only(merging, "x")
    # What it deleted is read when the other one has long been followed.
    merging.blocked = of_source("a")
    await copied_fast(merging)
    merging.blocked = NOTHING
    async with merging.running() as generation:
        await merging.copied(generation, LONG)
        await caught_up(generation, merging.sources, LONG)
        await until_only(merging)


async def copied_fast(merging: Merging) -> None:
    """Run until all is copied that can be, and what came meanwhile is applied."""
    merging.more["copy"] = {}
    merging.changed(mode="all")
    async with merging.running() as generation:
        with anyio.fail_after(LONG):
            while generation.copy is None or generation.copy.progress.figures().state == "copying":
                await anyio.sleep(LOOK_SECONDS)
    async with merging.running() as generation:
        await merging.copied(generation, LONG)
        assert generation.running is not None
        units = generation.running.units
        going = {source: merging.sources[source] for source in units}
        await caught_up(generation, going, LONG)
