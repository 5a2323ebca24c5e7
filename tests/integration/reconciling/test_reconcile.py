"""Reconciling a target while its task runs: its rows become those of the shards."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import pytest
from structlog.testing import capture_logs

from actors.comparing import target_run
from actors.task.generation import Generation
from actors.task.operator.reconcile_command import reconcile
from replicator.pipeline.compare.compare_job import compare_ranges
from replicator.pipeline.compare.compare_rows import RangeComparison
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import PATIENCE, settles

MergingFrom = Callable[..., Merging]
X = "(id INT PRIMARY KEY, v INT, s VARCHAR(40))"


async def asked(merging: Merging, generation: Generation, **arguments: object) -> list[str]:
    """Ask as `replicator reconcile` does; the names of the targets."""
    counts = generation.counts.reconciling
    reply = await reconcile(merging.task, generation.lease, generation.running, counts, arguments)
    assert reply.ok, reply.error
    return list(reply.body["targets"])


async def until_reconciled(merging: Merging, generation: Generation) -> None:
    """Wait until the queue is empty, and the log says so."""
    table = f"{merging.task.meta_schema}.`{merging.task.name}_reconciliation`"
    with anyio.fail_after(PATIENCE):
        while generation.counts.reconciling.entries or merging.target.execute(
            f"SELECT 1 FROM {table}"
        ):
            await anyio.sleep(0.05)


async def test_rows_that_somebody_has_changed_are_corrected(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mysql_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source, mysql_source)
    merging.mode = "all"
    merging.create("x", X, shards=2)
    for number, server in enumerate(merging.sources.values()):
        rows = ",".join(f"({10_000 * number + n}, {n}, 'old')" for n in range(200))
        merging.on(server, f"INSERT INTO x_1 VALUES {rows}")
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.on(
            merging.target,
            "UPDATE x SET v = -1 WHERE id % 50 = 0",
            "DELETE FROM x WHERE id = 7",
            "INSERT INTO x VALUES (999999, 1, 'alone')",
        )
        with capture_logs() as logs:
            assert await asked(merging, generation) == [f"{merging.database}.x"]
            await until_reconciled(merging, generation)
            await merging.check(generation)
    events = [entry for entry in logs if entry["event"].startswith("reconcile.")]
    assert [entry["event"] for entry in events] == ["reconcile.started", "reconcile.finished"]
    assert events[1]["corrected"] == 10
    assert generation.counts.reconciling.corrected == 10


@pytest.mark.parametrize("written", [True, False])
async def test_a_pass_lets_clients_go_first(
    merging_from: MergingFrom,
    mariadb_source: DatabaseServer,
    monkeypatch: pytest.MonkeyPatch,
    written: bool,
) -> None:
    """It would delay the source's clients and the rows of other targets otherwise."""
    found: list[tuple[int, bool]] = []

    def look(*arguments: Any, **options: Any) -> list[RangeComparison]:
        found.append((arguments[4], arguments[3].rest > 0))
        return compare_ranges(*arguments, **options)

    async def write() -> None:
        for number in itertools.count(2):
            row = f"INSERT INTO x_1 VALUES ({number}, 1, 'more')"
            await anyio.to_thread.run_sync(merging.do, row)

    monkeypatch.setattr(target_run, "compare_ranges", look)
    merging = merging_from(mariadb_source)
    merging.create("x", X, shards=2)
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1, 'one')")
        await settles(merging.differences, {})
        async with anyio.create_task_group() as clients:
            if written:
                clients.start_soon(write)
            await asked(merging, generation)
            await until_reconciled(merging, generation)
            clients.cancel_scope.cancel()
    threads = merging.task.mydumper_of(merging.task.mysql_instances[0]).threads
    assert set(found) == {(1, True) if written else (threads, False)}


async def test_a_target_with_sources_in_safe_mode_is_not_cancelled(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    """The task has left out events of its shards. Safe mode ends with the entry."""
    merging = merging_from(mariadb_source)
    merging.mode = "all"
    merging.create("x", X)
    table = f"{merging.task.meta_schema}.`{merging.task.name}_reconciliation`"
    async with merging.running() as generation:
        await merging.copied(generation)
        await asked(merging, generation)
        merging.target.execute(f"UPDATE {table} SET safe_sources = 'a\n'")
        counts = generation.counts.reconciling
        arguments = {"cancel": True}
        reply = await reconcile(
            merging.task, generation.lease, generation.running, counts, arguments
        )
        assert not reply.ok
        assert "must be compared" in reply.error
        await until_reconciled(merging, generation)


@pytest.mark.also_tidb(slow=True)
@pytest.mark.parametrize(
    "mode", ["pessimistic", "optimistic", pytest.param("", marks=pytest.mark.slow)]
)
async def test_existing_rows_get_the_moment_of_their_shards(
    merging_from: MergingFrom,
    mariadb_source: DatabaseServer,
    mysql_source: DatabaseServer,
    mode: str,
) -> None:
    merging = merging_from(mariadb_source, mysql_source)
    shards = created_shards(merging, mode)
    added = "ADD c DATETIME DEFAULT now(), ADD d DATETIME(6) NOT NULL DEFAULT now(6)"
    async with merging.running() as generation:
        await merging.copied(generation)
        with capture_logs() as logs:
            for at, (server, shard) in enumerate(shards):
                merging.on(
                    server,
                    f"UPDATE {shard} SET v = -1 WHERE id = {1000 * at}",
                    f"SET timestamp = {1_700_000_000 + at}.{at}5",
                    f"ALTER TABLE {shard} {added}",
                    f"UPDATE {shard} SET v = -2 WHERE id = {1000 * at + 1}",
                    f"INSERT INTO {shard} (id, v) VALUES ({1000 * at + 500}, 0)",
                )
            await settles(merging.differences, {})
            await until_reconciled(merging, generation)
            await merging.check(generation)
    events = [entry for entry in logs if entry["event"] == "reconcile.finished"]
    assert events
    assert all(entry["columns"] == ["c", "d"] for entry in events)


@pytest.mark.also_tidb(slow=True)
@pytest.mark.parametrize(
    "mode", ["pessimistic", "optimistic", pytest.param("", marks=pytest.mark.slow)]
)
async def test_existing_rows_get_the_random_values_of_their_shards(
    merging_from: MergingFrom,
    mariadb_source: DatabaseServer,
    mariadb11_source: DatabaseServer,
    mode: str,
) -> None:
    await get_random_values(merging_from(mariadb_source, mariadb11_source), mode)


@pytest.mark.parametrize("target_server", ["mysql"], indirect=True)
async def test_existing_rows_of_a_mysql_target_get_random_values(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mariadb11_source: DatabaseServer
) -> None:
    await get_random_values(merging_from(mariadb_source, mariadb11_source), "pessimistic")


def created_shards(merging: Merging, mode: str) -> list[tuple[DatabaseServer, str]]:
    """Create two shards with rows on each source, by their servers and names."""
    merging.mode, merging.more["shard-mode"] = "all", mode
    merging.create("x", "(id INT PRIMARY KEY, v INT)", shards=2)
    shards = [(s, f"x_{number}") for s in merging.sources.values() for number in (1, 2)]
    for at, (server, shard) in enumerate(shards):
        rows = ",".join(f"({1000 * at + n}, {n})" for n in range(50))
        merging.on(server, f"INSERT INTO {shard} VALUES {rows}")
    return shards


async def get_random_values(merging: Merging, mode: str) -> None:
    """MySQL and TiDB refuse such defaults in ADD COLUMN, and take them in SET DEFAULT."""
    shards = created_shards(merging, mode)
    added = "ADD u CHAR(36) DEFAULT uuid(), ADD r DOUBLE NOT NULL DEFAULT (rand()) COMMENT 'x'"
    async with merging.running() as generation:
        await merging.copied(generation)
        for at, (server, shard) in enumerate(shards):
            merging.on(
                server,
                f"UPDATE {shard} SET v = -1 WHERE id = {1000 * at}",
                f"ALTER TABLE {shard} {added}",
                f"UPDATE {shard} SET v = -2 WHERE id = {1000 * at + 1}",
                f"INSERT INTO {shard} (id, v) VALUES ({1000 * at + 500}, 0)",
            )
        await settles(merging.differences, {})
        await until_reconciled(merging, generation)
        await merging.check(generation)


@pytest.mark.parametrize(
    "mode", ["pessimistic", "optimistic", pytest.param("", marks=pytest.mark.slow)]
)
async def test_a_queued_target_keeps_its_entry_when_it_gets_another_name(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode, merging.more["shard-mode"] = "all", mode
    merging.create("x", X, shards=2)
    merging.create("y", X, shards=0, with_target=False)
    merging.do(*(f"INSERT INTO x_{number} VALUES ({number}, 1, 's')" for number in (1, 2)))
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do(*(f"ALTER TABLE x_{n} ADD c CHAR(36) DEFAULT uuid()" for n in (1, 2)))
        merging.do(*(f"RENAME TABLE x_{n} TO y_{n}" for n in (1, 2)))
        merging.shards("y", 2)
        await settles(lambda: merging.on(merging.target, "SHOW TABLES"), (("y",),))
        await settles(lambda: merging.differences(but={"x"}), {})
        await until_reconciled(merging, generation)


@pytest.mark.parametrize(
    "mode", ["pessimistic", "optimistic", pytest.param("", marks=pytest.mark.slow)]
)
async def test_rows_of_shards_that_wait_for_their_new_target_are_not_inserted(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    """x becomes y, and z joins w: its rows come there with it."""
    merging = merging_from(mariadb_source)
    merging.mode, merging.more["shard-mode"] = "all", mode
    for table in ("x", "z"):
        merging.create(table, "(id INT PRIMARY KEY, v INT)", shards=2)
        merging.do(f"INSERT INTO {table}_1 VALUES (1, 1)", f"INSERT INTO {table}_2 VALUES (2, 2)")
    merging.create("y", X, shards=0, with_target=False)
    merging.create("w", "(id INT PRIMARY KEY, v INT)")
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("INSERT INTO w_1 VALUES (3, 3)")
        for shard in ("x_1", "x_2", "z_1", "z_2", "w_1"):
            merging.do(f"ALTER TABLE {shard} ADD c CHAR(36) DEFAULT uuid()")
        for shard, new in (("x_1", "y_1"), ("x_2", "y_2"), ("z_1", "w_2"), ("z_2", "w_3")):
            merging.do(f"RENAME TABLE {shard} TO {new}")
        merging.shards("y", 2)
        merging.shards("w", 3)
        await settles(lambda: set(merging.on(merging.target, "SHOW TABLES")), {("y",), ("w",)})
        await settles(lambda: merging.differences(but={"x", "z"}), {})
        await until_reconciled(merging, generation)


@pytest.mark.not_on_tidb("it changes no primary key that its rows are stored by")
@pytest.mark.parametrize(
    "mode", ["pessimistic", "optimistic", pytest.param("", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("others", [False, True])
async def test_values_of_a_key_are_reconciled_if_all_rows_are_the_shards(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str, *, others: bool
) -> None:
    """Rows with other values must go, and they may be those of others."""
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = mode
    merging.create("x", "(id INT PRIMARY KEY)")
    merging.create("y", "(id INT PRIMARY KEY)")
    if others:
        merging.on(merging.target, "INSERT INTO x VALUES (9)")
    change = "ADD d DATETIME(6) NOT NULL DEFAULT now(6), DROP PRIMARY KEY, ADD PRIMARY KEY (id, d)"
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1)", f"ALTER TABLE y_1 {change}")
        merging.do("INSERT INTO y_1 (id) VALUES (1)", "UPDATE y_1 SET id = 2")
        await merging.caught_up(generation)
        merging.on(merging.target, "DELETE FROM x WHERE id = 9")
        await settles(merging.differences, {})
        await merging.check(generation)
        if not others:
            merging.do(f"ALTER TABLE x_1 {change}", "UPDATE x_1 SET id = 3")
            await merging.caught_up(generation)
            await settles(merging.differences, {})
            return
    merging.do(f"ALTER TABLE x_1 {change}")
    found = await merging.fault()
    assert found.event == "ddl.other-values"
    assert "finds rows by their values in d," in found.message


@pytest.mark.not_on_tidb("it numbers no rows")
@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
async def test_a_unique_key_follows_the_numbers_at_once(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    """Until the target has the numbers of the shards, it has rows twice, with other numbers."""
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = mode
    merging.create("x", "(m INT, g VARCHAR(9), v INT, PRIMARY KEY (m, g))", shards=2)
    async with merging.running() as generation:
        for number in (1, 2):
            rows = ", ".join(f"({m}, 'g{number}', 0)" for m in range(20))
            merging.do(f"INSERT INTO x_{number} VALUES {rows}")
        await merging.caught_up(generation)
        for number in (1, 2):
            merging.do(
                f"SET auto_increment_increment = 2, auto_increment_offset = {number}",
                f"ALTER TABLE x_{number} DROP PRIMARY KEY, ADD id INT AUTO_INCREMENT PRIMARY KEY",
            )
        for number in (1, 2):
            merging.do(
                f"UPDATE x_{number} SET v = 1 WHERE m > 5",
                f"DELETE FROM x_{number} WHERE m = 19",
                f"ALTER TABLE x_{number} ADD UNIQUE KEY u (m, g)",
                f"UPDATE x_{number} SET v = 2 WHERE m > 15",
            )
        await merging.caught_up(generation)
        await settles(merging.differences, {})
        await until_reconciled(merging, generation)
        await merging.check(generation)
        await settles(partial(has_unique_key, merging), True)


@pytest.mark.not_on_tidb("it numbers no rows")
async def test_different_rows_with_one_value_in_a_new_unique_key_stay(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = "pessimistic"
    merging.create("x", "(s INT, m INT, PRIMARY KEY (s, m))", shards=2)
    async with merging.running() as generation:
        for number in (1, 2):
            merging.do(f"INSERT INTO x_{number} VALUES ({number}, 1), ({number}, {number + 1})")
        await merging.caught_up(generation)
    for number in (1, 2):
        merging.do(
            f"SET auto_increment_increment = 2, auto_increment_offset = {number}",
            f"ALTER TABLE x_{number} DROP PRIMARY KEY, ADD id INT AUTO_INCREMENT PRIMARY KEY",
        )
    for number in (1, 2):
        merging.do(f"ALTER TABLE x_{number} ADD UNIQUE KEY u (m)")
    found = await merging.fault()
    assert found.event == "ddl.refused"
    assert "1062" in found.message
    assert merging.on(merging.target, "SELECT COUNT(*) FROM x") == ((4,),)


@pytest.mark.parametrize("mode", ["all", "incremental"])
async def test_rows_without_a_key_are_exchanged_but_never_doubled(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode = mode
    merging.create("x", "(v INT)", shards=2)
    if mode == "incremental":
        merging.on(merging.target, "INSERT INTO x VALUES (9)")
    async with merging.running() as generation:
        if mode == "all":
            await merging.copied(generation)
        for number in (1, 2):
            merging.do(f"INSERT INTO x_{number} VALUES (1), (1), ({number})")
        await merging.caught_up(generation)
        merging.on(merging.target, "DELETE FROM x WHERE v = 9")
        with capture_logs() as logs:
            for number in (1, 2):
                merging.do(
                    f"SET timestamp = {1_700_000_000 + number}",
                    f"ALTER TABLE x_{number} ADD c DATETIME DEFAULT now()",
                )
            await merging.caught_up(generation)
            if mode == "all":
                await until_reconciled(merging, generation)
                await merging.check(generation)
                return
            # Nobody knows whether the target's rows are all those of the shards.
            with anyio.fail_after(PATIENCE):
                while not any(entry["event"] == "reconcile.failed" for entry in logs):
                    await anyio.sleep(0.05)
            [entry] = generation.counts.reconciling.entries.values()
            assert entry.state == "failed"
            assert "missing rows are not inserted" in entry.reason
            assert merging.differences({"x": "v"}) == {}
            await asked(merging, generation, cancel=True)
            await until_reconciled(merging, generation)


@pytest.mark.parametrize("leads", [False, True])
async def test_rows_of_a_created_shard_wait_until_it_has_joined(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, *, leads: bool
) -> None:
    """It is ahead until it has made the changes that the target was created with.

    ``leads``: another shard makes a further change meanwhile.
    """
    merging = merging_from(mariadb_source)
    merging.more = {"shard-mode": "pessimistic"}
    merging.create("x", X)
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1, 'a'), (2, 2, 'b')")
        await merging.caught_up(generation)
        merging.do(
            "CREATE TABLE x_2 (id INT PRIMARY KEY, v INT)",
            "INSERT INTO x_2 VALUES (11, 1), (12, 2)",
        )
        await merging.caught_up(generation)
        if leads:
            merging.do("ALTER TABLE x_1 ADD e INT", "INSERT INTO x_1 VALUES (3, 3, 'c', 4)")
            await merging.caught_up(generation)
        merging.on(merging.target, "UPDATE x SET v = 7 WHERE id = 1")
        with capture_logs() as logs:
            await asked(merging, generation)
            merging.do("ALTER TABLE x_2 ADD s VARCHAR(40)", "INSERT INTO x_2 VALUES (13, 3, 'd')")
            if leads:
                merging.do("ALTER TABLE x_2 ADD e INT")
            # Until then, the rows wait.
            await settles(partial(was_logged, logs, "member.joined"), True)
        merging.shards("x", 2)
        await settles(merging.differences, {})
        await until_reconciled(merging, generation)
        await merging.check(generation)


def was_logged(logs: Iterable[Mapping[str, object]], event: str) -> bool:
    """Whether a log has an event."""
    return any(entry["event"] == event for entry in logs)


def has_unique_key(merging: Merging) -> bool:
    return "UNIQUE KEY `u`" in str(merging.on(merging.target, "SHOW CREATE TABLE x"))
