"""What a full copy does about duplicates, other structures, DDL, and servers that go away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from actors.copying import full_copy
from actors.copying.start import CopyStart, begin_copy
from actors.task.generation import Generation
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, fault_of

MakeMerging = Callable[..., Merging]

NUMBERS = "(id INT PRIMARY KEY, n INT)"


def small_chunks(merging: Merging, *, speed: int = 0, loader: str = "replace") -> None:
    """Chunks of 50 rows, so many rows a second (0: any number)."""
    merging.more |= {
        "mydumpers": {"small": {"rows": 50, "threads": 1}},
        "loaders": {"mine": {"on-duplicate-logical": loader}},
        "copy": {"rows-per-second": speed},
    }
    merging.instance = {"mydumper-config-name": "small", "loader-config-name": "mine"}


def fill(merging: Merging, table: str, rows: int, first: int = 1) -> None:
    merging.do(f"INSERT INTO {table} SELECT seq, seq FROM seq_{first}_to_{first + rows - 1}")


@pytest.fixture
def merging(merging_from: MakeMerging, mariadb_source: DatabaseServer) -> Merging:
    """A full copy of one source, in small chunks."""
    merging = merging_from(mariadb_source)
    merging.mode = "full"
    small_chunks(merging)
    return merging


@pytest.fixture
def two(
    merging_from: MakeMerging, mariadb_source: DatabaseServer, mariadb_source_full: DatabaseServer
) -> Merging:
    """A full copy of two sources that hold 200 rows each, and both the row 150."""
    merging = merging_from(mariadb_source, mariadb_source_full)
    merging.mode = "full"
    merging.create("x", NUMBERS, with_target=False)
    fill(merging, "x_1", 200)
    merging.on(
        mariadb_source_full,
        "INSERT INTO x_1 SELECT seq + 200, 0 FROM seq_1_to_199 UNION SELECT 150, 0",
    )
    return merging


@asynccontextmanager
async def begun(merging: Merging, *, chunks: int) -> AsyncIterator[tuple[Generation, anyio.Event]]:
    """A generation that has copied so many chunks, and what stops it; runs to its end."""
    generation, stop = merging.generation(), anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(generation.run, stop, anyio.Event())
        with anyio.fail_after(PATIENCE):
            while generation.copy is None or generation.copy.progress.chunks < chunks:
                await anyio.sleep(LOOK_SECONDS)
        yield generation, stop


async def test_it_runs_as_soon_as_shards_may_change(
    two: Merging, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not while another source is still to be looked at: a change before would be taken for one
    that its shards had always had, and rows would not fit a target made like the others."""
    started, stop, seen = anyio.Event(), anyio.Event(), []

    async def begin(*args: Any, **more: Any) -> CopyStart:
        start = await begin_copy(*args, **more)
        seen.append(started.is_set())
        return start

    monkeypatch.setattr(full_copy, "begin_copy", begin)
    two.mode = "all"
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(two.generation().run, stop, started)
            await started.wait()
            assert seen == [False, False]
            stop.set()


# --- duplicates ---


async def test_a_key_in_two_shards_is_named_with_both(two: Merging) -> None:
    small_chunks(two, loader="error")
    name = two.database
    fault = await fault_of(two.copy())
    assert fault.event == "copy.duplicate"
    assert f"target {name}.x" in fault.where
    assert f"already exists in {name}.x" in fault.message
    assert "'…' for key" in fault.message
    assert "'150'" not in fault.message
    assert f"a: {name}.x_1" in fault.message
    assert f"b: {name}.x_1" in fault.message
    assert (await fault_of(two.copy())).event == "copy.duplicate"
    refused = two.sources[fault.where[0]]
    two.on(refused, "DELETE FROM x_1 WHERE id = 150")
    assert (await two.copy()).finished
    assert not two.differences()


async def test_the_row_that_was_copied_first_can_be_given_up_for_the_other(two: Merging) -> None:
    small_chunks(two, loader="error")
    fault = await fault_of(two.copy())
    (kept,) = (server for source, server in two.sources.items() if source != fault.where[0])
    for server in (kept, two.target):
        two.on(server, f"DELETE FROM {'x' if server is two.target else 'x_1'} WHERE id = 150")
    assert (await two.copy()).finished
    assert not two.differences()


@pytest.mark.parametrize(("mode", "replaced", "ignored"), [("replace", 1, 0), ("ignore", 0, 1)])
@pytest.mark.parametrize("rows", [50, 1])
async def test_a_key_in_two_shards_wins_or_loses(
    two: Merging, mode: str, replaced: int, ignored: int, rows: int
) -> None:
    small_chunks(two, loader=mode)
    if rows == 1:
        two.on(two.sources["a"], "DELETE FROM x_1 WHERE id NOT BETWEEN 148 AND 152")
        two.on(two.sources["b"], "DELETE FROM x_1 WHERE id NOT BETWEEN 148 AND 202")
    generation = await two.copy()
    assert generation.copy is not None
    progress = generation.copy.progress
    assert (progress.counts.replaced, progress.counts.ignored) == (replaced, ignored)
    shards = two.differences()["x"]
    assert "extra: []" in shards


# --- targets ---


@pytest.mark.not_on_tidb("its latin1 is UTF-8, see test_tidb")
async def test_a_missing_target_is_made_like_the_first_shard(merging: Merging) -> None:
    merging.create(
        "x",
        "(id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, w VARCHAR(20) NOT NULL,"
        " t TEXT CHARACTER SET utf8mb4, UNIQUE KEY w (w), KEY part (t(7)))"
        " CHARACTER SET latin1 COLLATE latin1_german2_ci",
        with_target=False,
    )
    merging.do("INSERT INTO x_1 VALUES (7, 'ä', '漢'), (9, 'ö', NULL)")
    await merging.copy()
    assert not merging.differences()
    ((_, made),) = merging.on(merging.target, "SHOW CREATE TABLE x")
    for part in (
        "AUTO_INCREMENT,",
        "UNIQUE KEY `w` (`w`)",
        "KEY `part` (`t`(7))",
        "latin1_german2_ci",
        "utf8mb4",
    ):
        assert part in str(made)


@pytest.mark.not_on_tidb("its latin1 is UTF-8, see test_tidb")
async def test_an_existing_target_takes_columns_by_name_and_text_in_its_charset(
    merging: Merging,
) -> None:
    merging.create(
        "x",
        "(id INT PRIMARY KEY, s VARCHAR(50) CHARACTER SET latin1,"
        " u VARCHAR(50) CHARACTER SET utf8mb4, e ENUM('ä','ß') CHARACTER SET latin1)",
        target="(own INT DEFAULT 5, u VARCHAR(50) CHARACTER SET latin1,"
        " e ENUM('x','ä','ß') CHARACTER SET utf8mb4,"
        " s VARCHAR(50) CHARACTER SET utf8mb4, id INT PRIMARY KEY, more INT)",
    )
    merging.do(
        "INSERT INTO x_1 VALUES (1, 'ä\\t\\n\\\\ €', 'ü\\t\\n\\\\ €', 'ß'), (2, NULL, NULL, NULL),"
        " (3, '', '', 'ä')"
    )
    await merging.copy()
    rows = merging.on(merging.target, "SELECT id, s, u, e, own, more FROM x ORDER BY id")
    assert rows == (
        (1, "ä\t\n\\ €", "ü\t\n\\ €", "ß", 5, None),
        (2, None, None, None, 5, None),
        (3, "", "", "ä", 5, None),
    )
    ((s, u),) = merging.on(merging.target, "SELECT HEX(s), HEX(u) FROM x WHERE id = 1")
    assert s == "ä\t\n\\ €".encode().hex().upper()
    assert u == "ü\t\n\\ €".encode("cp1252").hex().upper()


@pytest.mark.not_on_tidb("its latin1 is UTF-8, which takes every text")
async def test_text_that_the_target_cannot_hold_is_refused(merging: Merging) -> None:
    merging.create(
        "x",
        "(id INT PRIMARY KEY, s VARCHAR(50) CHARACTER SET utf8mb4)",
        target="(id INT PRIMARY KEY, s VARCHAR(50) CHARACTER SET latin1)",
    )
    merging.do("INSERT INTO x_1 VALUES (1, 'ä'), (2, '漢')")
    fault = await fault_of(merging.copy())
    assert fault.event == "copy.refused"
    assert f"a: {merging.database}.x_1" in fault.message
    merging.do("UPDATE x_1 SET s = 'k' WHERE id = 2")
    await merging.copy()
    assert merging.on(merging.target, "SELECT id, s FROM x") == ((1, "ä"), (2, "k"))


@pytest.mark.remedy("copy.refused", "resume")
async def test_a_value_that_does_not_fit_is_refused_with_its_row(merging: Merging) -> None:
    merging.show_values = True
    merging.create(
        "x", "(id INT PRIMARY KEY, s VARCHAR(50))", target="(id INT PRIMARY KEY, s VARCHAR(3))"
    )
    merging.do("INSERT INTO x_1 VALUES (1, 'abc'), (2, 'abcd')")
    fault = await fault_of(merging.copy())
    assert fault.event == "copy.refused"
    assert "abcd" in fault.message
    merging.on(merging.target, "ALTER TABLE x MODIFY s VARCHAR(50)")
    await merging.copy()
    assert not merging.differences()


# --- DDL ---

CHANGES = {
    "add": ("ALTER TABLE x_1 ADD m INT", "ALTER TABLE x_1 DROP m"),
    "drop": ("ALTER TABLE x_1 DROP n", "ALTER TABLE x_1 ADD n INT"),
    "modify": ("ALTER TABLE x_1 MODIFY n BIGINT", "ALTER TABLE x_1 MODIFY n INT"),
    "rename": ("RENAME TABLE x_1 TO y_1", "RENAME TABLE y_1 TO x_1"),
    "drop table": ("DROP TABLE x_1", "CREATE TABLE x_1 (id INT PRIMARY KEY, n INT)"),
}


async def test_a_change_that_leaves_rows_as_they_are_passes(merging: Merging) -> None:
    small_chunks(merging, speed=100)
    merging.create("x", NUMBERS, with_target=False)
    fill(merging, "x_1", 600)
    change = "ALTER TABLE x_1 ADD INDEX by_n (n), COMMENT 'changed'"
    async with begun(merging, chunks=2):
        await anyio.to_thread.run_sync(merging.do, change)
    assert not merging.differences()


@pytest.mark.remedy("copy.shard-changed", "resume")
@pytest.mark.parametrize("change", CHANGES)
async def test_a_shard_that_changes_meanwhile_stops_its_copy(merging: Merging, change: str) -> None:
    there, back = CHANGES[change]
    small_chunks(merging, speed=100)
    merging.create("x", NUMBERS, with_target=False)
    fill(merging, "x_1", 600)

    async def run() -> None:
        async with begun(merging, chunks=2):
            await anyio.to_thread.run_sync(merging.do, there)

    with anyio.fail_after(PATIENCE):
        fault = await fault_of(run())
    assert fault.event == "copy.shard-changed"
    assert f"a: {merging.database}.x_1" in fault.message
    assert len(fault.remedies) == 2
    assert (await fault_of(merging.copy())).event == "copy.shard-changed"
    merging.do(back)
    small_chunks(merging)
    merging.changed(mode="full")
    generation = await merging.copy()
    assert generation.finished
    if change in ("add", "modify", "rename"):
        assert not merging.differences()


async def test_a_shard_that_is_emptied_meanwhile_is_copied_to_its_end(merging: Merging) -> None:
    small_chunks(merging, speed=100)
    merging.create("x", NUMBERS, with_target=False)
    fill(merging, "x_1", 600)
    async with begun(merging, chunks=2) as (generation, _):
        await anyio.to_thread.run_sync(merging.do, "TRUNCATE TABLE x_1")
    assert generation.finished


async def test_a_shard_that_joins_meanwhile_comes_by_the_binlog(merging: Merging) -> None:
    merging.mode = "all"
    small_chunks(merging, speed=100)
    merging.create("x", NUMBERS, with_target=False)
    fill(merging, "x_1", 300)
    async with begun(merging, chunks=2) as (generation, stop):
        merging.do("CREATE TABLE x_2 (id INT PRIMARY KEY, n INT)")
        fill(merging, "x_2", 10, 1001)
        merging.shards("x", 2)
        await merging.copied(generation)
        await merging.check(generation)
        stop.set()


# --- ends and beginnings ---


async def test_a_copy_that_is_stopped_goes_on_where_it_was(merging: Merging) -> None:
    merging.mode = "all"
    small_chunks(merging, speed=200)
    merging.create("x", NUMBERS, with_target=False)
    merging.create("bag", "(a INT, b INT)", with_target=False)
    fill(merging, "bag_1", 70)
    merging.do("INSERT INTO bag_1 SELECT * FROM bag_1")
    fill(merging, "x_1", 600)
    done = 0
    for _ in range(3):
        async with begun(merging, chunks=done + 2) as (generation, stop):
            merging.do(
                f"UPDATE x_1 SET id = id + 1000 WHERE id IN (1, {done * 50 + 1}, 599)",
                "DELETE FROM bag_1 WHERE a = 3 LIMIT 1",
                "UPDATE bag_1 SET b = b + 1 WHERE a = 4 LIMIT 1",
                "INSERT INTO bag_1 VALUES (1, 1), (900, 1)",
            )
            stop.set()
        assert generation.copy is not None
        assert not generation.finished
        assert generation.running is None
        assert done < generation.copy.progress.chunks < 13
        done = generation.copy.progress.chunks
    async with begun(merging, chunks=done) as (generation, stop):
        await merging.copied(generation)
        await merging.check(generation)
        stop.set()
    assert generation.copy is not None
    assert generation.copy.progress.rows >= 740


@pytest.mark.remedy("source.no-binlog", "run")
async def test_without_a_binlog_a_source_is_copied_and_not_followed(
    start_server: StartServer, merging_from: MakeMerging
) -> None:
    merging = merging_from(start_server(MariaDBServer, {"skip_log_bin": None, "log_bin": "0"}))
    merging.mode = "all"
    small_chunks(merging)
    merging.create("x", NUMBERS, with_target=False)
    merging.create("bag", "(a INT, b INT)", with_target=False)
    fill(merging, "x_1", 120)
    fill(merging, "bag_1", 120)
    assert (await merging.fault()).event == "source.no-binlog"
    merging.changed(mode="full")
    assert (await merging.copy()).finished
    assert not merging.differences()
    for mode in ("incremental", "all"):
        merging.changed(mode=mode)
        assert (await fault_of(merging.copy())).event == "source.no-start"


@pytest.mark.remedy("source.no-binlog", "resume")
async def test_a_source_is_followed_when_it_has_got_a_binlog(
    start_server: StartServer, merging_from: MakeMerging
) -> None:
    server = start_server(MariaDBServer, {"skip_log_bin": None, "log_bin": "0"})
    merging = merging_from(server)
    merging.mode = "all"
    merging.create("x", NUMBERS, with_target=False)
    fill(merging, "x_1", 20)
    assert (await merging.fault()).event == "source.no-binlog"
    server.reconfigure({})
    server.restart()
    async with merging.running() as generation:
        await merging.copied(generation)
        fill(merging, "x_1", 5, 50)
        await merging.check(generation)


async def test_what_was_copied_once_can_be_followed_later(merging: Merging) -> None:
    merging.create("x", NUMBERS, with_target=False)
    merging.create("bag", "(a INT, b INT)", with_target=False)
    fill(merging, "x_1", 120)
    fill(merging, "bag_1", 120)
    assert (await merging.copy()).finished
    merging.do("UPDATE x_1 SET id = id + 1000 WHERE id < 20", "DELETE FROM bag_1 WHERE a < 5")
    fill(merging, "bag_1", 5, 50)
    merging.changed(mode="incremental")
    async with merging.running() as generation:
        await merging.check(generation)


@pytest.mark.remedy("copy.unfinished", "run")
async def test_an_unfinished_copy_is_not_followed(merging: Merging) -> None:
    merging.mode = "all"
    small_chunks(merging, speed=100)
    merging.create("x", NUMBERS, with_target=False)
    fill(merging, "x_1", 300)
    async with begun(merging, chunks=2) as (_, stop):
        stop.set()
    merging.changed(mode="incremental")
    fault = await fault_of(merging.copy())
    assert fault.event == "copy.unfinished"
    merging.changed(mode="all")
    async with merging.running() as generation:
        await merging.copied(generation)
        await merging.check(generation)


async def test_so_many_rows_a_second_are_copied_on_average(merging: Merging) -> None:
    small_chunks(merging, speed=200)
    merging.create("x", NUMBERS, shards=4, with_target=False)
    merging.create("bag", "(a INT, b INT)", with_target=False)
    for number in range(1, 5):
        fill(merging, f"x_{number}", 130, number * 1000)
    fill(merging, "bag_1", 300)
    # The server's own estimates are off: it may believe that a new table is empty.
    generation = await merging.copy()
    assert generation.copy is not None
    progress = generation.copy.progress
    assert progress.rows == 820
    # What begins last is not waited for: the table without a key, or one chunk.
    assert progress.seconds >= (820 - 300) / 200
    assert not merging.differences()
