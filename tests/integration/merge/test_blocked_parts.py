"""Runs of a task with parts of it blocked: all others flow, and nothing of these is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import anyio
import pytest
from structlog.testing import capture_logs

from actors.counting.task_counts import SourceCounts
from actors.errors.faults import TaskParts, of_source, of_target
from actors.reading import purge_watch
from actors.task.source_report import lag_of
from replicator.mysql.names import TableName
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import copy_all_anew
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, fault_of, settles
from tests.support.tasks.tables import rows_of, tables_of

COLUMNS = "(id INT PRIMARY KEY, v VARCHAR(9))"


async def followed(merging: Merging, mode: str) -> None:
    """Three targets, the last without a key, that the task has followed once."""
    merging.more["shard-mode"] = mode
    merging.create("x", COLUMNS)
    merging.create("y", COLUMNS)
    merging.create("z", "(n INT)")
    merging.generation()  # The task begins here.
    for server in merging.sources.values():
        key = list(merging.sources.values()).index(server) * 100
        merging.on(server, f"INSERT INTO x_1 VALUES ({key}, 'a')", "INSERT INTO z_1 VALUES (1)")
    async with merging.running() as generation:
        await merging.caught_up(generation)


async def until_only(merging: Merging, *tables: str) -> None:
    """Wait until no other tables than these, which may be missing, differ from their shards."""
    await settles(lambda: merging.differences(but=tables), {})


def target(merging: Merging, table: str) -> TaskParts:
    return of_target(TableName(merging.database, table))


@dataclass(frozen=True, slots=True)
class Trouble:
    """What makes a fault: done at the target before, at the source, and at the target to mend it.

    ``{x}`` stands for the full name of the target.
    """

    event: str
    before: tuple[str, ...]
    at_source: tuple[str, ...]
    repair: tuple[str, ...]


TROUBLES = [
    Trouble(
        "rows.duplicate",
        ("INSERT INTO x VALUES (7, 'own')",),
        ("INSERT INTO x_1 VALUES (7, 'b')",),
        ("DELETE FROM x WHERE id = 7",),
    ),
    Trouble(
        "rows.refused",
        ("ALTER TABLE x MODIFY v VARCHAR(2)",),
        ("INSERT INTO x_1 VALUES (7, 'bad')",),
        ("ALTER TABLE x MODIFY v VARCHAR(9)",),
    ),
    Trouble(
        "rows.no-plan",
        ("ALTER TABLE x DROP v",),
        ("INSERT INTO x_1 VALUES (7, 'b')",),
        ("ALTER TABLE x ADD v VARCHAR(9)", "UPDATE x SET v = 'a'"),
    ),
    Trouble(
        "target.missing",
        ("RENAME TABLE x TO hidden",),
        ("INSERT INTO x_1 VALUES (7, 'b')",),
        ("RENAME TABLE hidden TO x",),
    ),
    Trouble(
        "ddl.refused",
        ("INSERT INTO x VALUES (-1, 'a')",),
        ("INSERT INTO x_1 VALUES (7, 'b')", "ALTER TABLE x_1 ADD UNIQUE u (v)"),
        ("DELETE FROM x WHERE id = -1",),
    ),
]


@pytest.mark.remedy("rows.refused", "resume")
@pytest.mark.slow
@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.event)
@pytest.mark.parametrize("mode", ["", "pessimistic"], ids=["uncoordinated", "pessimistic"])
@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_a_fault_of_a_target_lets_all_others_flow(
    merging: Merging, mode: str, trouble: Trouble
) -> None:
    await followed(merging, mode)
    merging.on(merging.target, *trouble.before)
    merging.do(*trouble.at_source, "INSERT INTO y_1 VALUES (1, 'c')", "INSERT INTO z_1 VALUES (1)")
    found = await merging.fault()
    assert (found.event, found.scope) == (trouble.event, target(merging, "x"))
    merging.blocked = found.scope or TaskParts()
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (8, 'd')", "DELETE FROM x_1 WHERE id = 0")
        merging.do("ALTER TABLE y_1 ADD w INT", "INSERT INTO y_1 VALUES (2, 'd', 3)")
        merging.do("INSERT INTO z_1 VALUES (1), (2)", "DELETE FROM z_1 LIMIT 1")
        await merging.caught_up(generation)
        # A coordinated change is executed behind what was read.
        await until_only(merging, "x")
    merging.on(merging.target, *trouble.repair)
    merging.blocked = TaskParts()
    async with merging.running() as generation:
        await merging.caught_up(generation)
        await until_only(merging)
    assert merging.differences() == {}


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_what_a_statement_ties_to_a_held_target_is_held_with_it(merging: Merging) -> None:
    await followed(merging, "")
    merging.blocked = target(merging, "x")
    w, v = TableName(merging.database, "w"), TableName(merging.database, "v")
    merging.do(
        "ALTER TABLE x_1 ADD c INT DEFAULT 5",
        "INSERT INTO x_1 VALUES (1, 'a', 1)",
        "CREATE TABLE v LIKE x_1",
        "INSERT INTO v VALUES (1, 'b', 2)",
        "RENAME TABLE x_1 TO w",
        "INSERT INTO w VALUES (2, 'c', 3)",
        "INSERT INTO y_1 VALUES (1, 'c')",
    )
    async with merging.running() as generation:
        await merging.caught_up(generation)
        assert generation.running is not None
        held = generation.running.units["a"].reader.held
        [x] = merging.blocked.targets
        assert (held.waits_for(w), held.waits_for(v), held.waits_for(x)) == (x, x, None)
        assert set(held.targets) == {x, w, v}
    assert not {"v", "w"} & tables_of(merging.target, merging.database)
    assert rows_of(merging.target, f"{merging.database}.y").total() == 1
    merging.blocked = TaskParts()
    async with merging.running() as generation:
        await merging.caught_up(generation)
        # The target gets its new name between two runs of its sources.
        for table in ("v", "w"):
            name = f"{merging.database}.{table}"
            with anyio.fail_after(PATIENCE):
                while table not in tables_of(merging.target, merging.database):
                    await anyio.sleep(LOOK_SECONDS)
                while rows_of(merging.target, name) != rows_of(merging.source, name):
                    await anyio.sleep(LOOK_SECONDS)


async def test_a_blocked_source_keeps_locks_waiting_and_nothing_else(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
) -> None:
    merging = merging_from(mariadb_source, mariadb_source_full)
    await followed(merging, "pessimistic")
    merging.blocked = of_source("b")
    merging.on(
        mariadb_source_full, "ALTER TABLE x_1 ADD c INT", "INSERT INTO x_1 VALUES (9, '', 1)"
    )
    merging.do("ALTER TABLE x_1 ADD c INT", "INSERT INTO x_1 VALUES (8, '', 2)")
    merging.do("INSERT INTO y_1 VALUES (1, 'c')")
    async with merging.running() as generation:
        # The other source is not read, so it has nothing to catch up with.
        end = merging.sources.pop("b")
        await merging.caught_up(generation)
        merging.sources["b"] = end
        assert generation.running is not None
        assert set(generation.running.stopped) == {"b"}
        [lock] = generation.running.coordination.open_locks()
        assert not lock.view.resolving
    assert merging.differences().keys() == {"x"}
    merging.blocked = TaskParts()
    async with merging.running() as generation:
        with anyio.fail_after(PATIENCE):
            while len(merging.on(merging.target, "SHOW COLUMNS FROM x")) < 3:
                await anyio.sleep(LOOK_SECONDS)
            while merging.differences():
                await anyio.sleep(LOOK_SECONDS)
        await merging.caught_up(generation)
    assert merging.differences() == {}


async def test_a_table_that_a_blocked_source_shares_is_not_dropped(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
) -> None:
    merging = merging_from(mariadb_source, mariadb_source_full)
    await followed(merging, "")
    merging.blocked = of_source("b")
    merging.do("DROP TABLE x_1", "INSERT INTO y_1 VALUES (1, 'c')")
    async with merging.running() as generation:
        end = merging.sources.pop("b")
        await merging.caught_up(generation)
        merging.sources["b"] = end
    assert rows_of(merging.target, f"{merging.database}.x").total() == 2


@pytest.mark.remedy("source.purged", "copy anew")
async def test_purging_what_is_held_is_told_early_and_when_it_has_happened(
    start_server: StartServer,
    merging_from: Callable[..., Merging],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(purge_watch, "WATCH_SECONDS", 0.1)
    source = start_server(MariaDBServer)
    merging = merging_from(source)
    await followed(merging, "")
    merging.blocked = target(merging, "x")
    with capture_logs() as logged:
        found = await fault_of(_purge_what_is_held(merging, source))
    x = f"{merging.database}.x"
    near = [entry for entry in logged if entry["event"] == "source.purge-near"]
    assert near, "told before it happened"
    assert (near[-1]["files_left"], near[-1]["held"]) == (0, [x])
    assert (found.event, found.scope) == ("source.purged", of_source("a"))
    assert x in found.message
    merging.blocked = TaskParts()
    await copy_all_anew(merging, "x", "y", "z")


async def _purge_what_is_held(merging: Merging, source: DatabaseServer) -> None:
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (8, 'd')")
        await merging.caught_up(generation)
        for key in range(2):
            source.execute("FLUSH BINARY LOGS")
            merging.do(f"INSERT INTO y_1 VALUES ({key}, 'd')")
        await merging.caught_up(generation)
        assert generation.running is not None
        with anyio.fail_after(PATIENCE):
            while generation.running.watch.distances["a"].files_behind < 2:
                await anyio.sleep(LOOK_SECONDS)
        last = source.execute("SHOW MASTER STATUS")[0][0]
        with anyio.move_on_after(PATIENCE):
            while True:
                # The server keeps files back for a while that its own recovery may need.
                source.execute(f"PURGE BINARY LOGS TO '{last}'")
                await anyio.sleep(0.2)


async def copied_but(merging: Merging, keyless: bool) -> None:
    """Three targets, the first of which can't be copied: it is blocked now."""
    merging.mode = "all"
    merging.create("x", "(id INT, v VARCHAR(9))" if keyless else COLUMNS, shards=2)
    merging.create("y", COLUMNS, shards=2)
    merging.create("z", "(n INT)")
    merging.do("INSERT INTO x_1 VALUES (1, 'a')", "INSERT INTO x_2 VALUES (1, 'b'), (2, 'c')")
    merging.do("INSERT INTO y_1 VALUES (1, 'a')", "INSERT INTO z_1 VALUES (1), (1)")
    if keyless:
        merging.on(merging.target, "ALTER TABLE x DROP COLUMN v")
    found = await merging.fault()
    assert found.event == ("rows.no-plan" if keyless else "copy.duplicate")
    assert found.scope == target(merging, "x")
    merging.blocked = found.scope or TaskParts()


@pytest.mark.parametrize("keyless", [False, True], ids=["keyed", "keyless"])
@pytest.mark.parametrize("mode", ["", "pessimistic"], ids=["uncoordinated", "pessimistic"])
@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_a_fault_of_a_copied_target_lets_all_others_be_copied_and_followed(
    merging: Merging, mode: str, keyless: bool
) -> None:
    merging.more["shard-mode"] = mode
    await copied_but(merging, keyless)
    async with merging.running() as generation:
        await merging.copied(generation)
        assert generation.copy is not None
        figures = generation.copy.progress.figures()
        assert figures.state == "deferred"
        assert f"a: {merging.database}.x_2" in figures.waiting
        merging.do("INSERT INTO y_1 VALUES (2, 'b')", "DELETE FROM z_1 LIMIT 1")
        merging.do("INSERT INTO x_1 VALUES (5, 'held')", "UPDATE x_2 SET v = 'd' WHERE id = 2")
        await until_only(merging, "x")
    async with merging.running() as generation:
        assert generation.copy is not None
        merging.do("INSERT INTO y_1 VALUES (3, 'c')", "INSERT INTO x_2 VALUES (8, 'held')")
        await until_only(merging, "x")
        assert generation.copy.progress.figures().state == "deferred"
    # Not by the binlog: in the overlap of copy and binlog, it would take the other row along.
    merging.do("SET sql_log_bin=0", "DELETE FROM x_2 WHERE id = 1")
    if keyless:
        merging.on(merging.target, "ALTER TABLE x ADD COLUMN v VARCHAR(9)")
    merging.blocked = TaskParts()
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("INSERT INTO x_2 VALUES (9, 'then')", "DELETE FROM x_1 WHERE id = 5")
        await until_only(merging)
        with anyio.fail_after(PATIENCE):
            while generation.copy is None or generation.copy.progress.figures().state != "finished":
                await anyio.sleep(LOOK_SECONDS)
    assert merging.differences() == {}


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_what_a_target_misses_of_its_copy_may_change_its_structure_meanwhile(
    merging: Merging,
) -> None:
    merging.more["shard-mode"] = "pessimistic"
    await copied_but(merging, keyless=False)
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("ALTER TABLE x_1 ADD w INT", "INSERT INTO x_1 VALUES (6, 'w', 1)")
        merging.do("ALTER TABLE x_2 ADD w INT", "UPDATE x_2 SET w = 5", "DELETE FROM x_2 LIMIT 1")
        merging.do("INSERT INTO y_1 VALUES (2, 'b')")
        await until_only(merging, "x")
    merging.blocked = TaskParts()
    async with merging.running() as generation:
        # It begins anew when the target has the statement, and copies then.
        await until_only(merging)
        with anyio.fail_after(PATIENCE):
            while generation.copy is None or generation.copy.progress.figures().state != "finished":
                await anyio.sleep(LOOK_SECONDS)


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_others_are_strict_while_the_copy_of_a_blocked_target_waits(merging: Merging) -> None:
    await copied_but(merging, keyless=False)
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("INSERT INTO y_1 VALUES (2, 'b')")
        await until_only(merging, "x")
    merging.do("INSERT INTO y_1 VALUES (70, 'a')", "INSERT INTO y_2 VALUES (70, 'b')")
    found = await merging.fault()
    assert (found.event, found.scope) == ("rows.duplicate", target(merging, "y"))


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_a_copied_target_that_was_dropped_is_not_made_anew(merging: Merging) -> None:
    await copied_but(merging, keyless=False)
    merging.on(merging.target, "DROP TABLE x")
    merging.blocked = TaskParts()
    found = await merging.fault()
    assert (found.event, found.scope) == ("target.missing", target(merging, "x"))


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_the_lag_is_that_of_the_oldest_row_that_is_held(merging: Merging) -> None:
    await followed(merging, "")
    merging.blocked = target(merging, "x")
    async with merging.running() as generation:
        assert generation.running is not None
        await merging.caught_up(generation)
        counts = SourceCounts()
        merging.do(
            "SET timestamp = UNIX_TIMESTAMP() - 1000",
            "INSERT INTO x_1 VALUES (9, 'e')",
        )
        await merging.caught_up(generation)
        merging.do("INSERT INTO y_1 VALUES (9, 'e')")
        await merging.caught_up(generation)
        lags = {s: lag_of(generation.running, s, counts) for s in generation.running.units}
    held = [lag for lag in lags.values() if lag is not None and 1000 <= lag < 1000 + PATIENCE]
    assert len(held) == 1, lags
