"""Numbers of rows that only their shards know: the target has its own until they are read."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from actors.errors.faults import of_target
from actors.reconciling.reconciler import Reconciler
from replicator.downstream.ddl import ddl_execution
from replicator.failpoints import Failpoint
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from tests.integration.reconciling.test_reconcile import until_reconciled
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import PATIENCE, fault_of, settles

MergingFrom = Callable[..., Merging]
MODES = pytest.mark.parametrize(
    "mode", ["pessimistic", "optimistic", pytest.param("", marks=pytest.mark.slow)]
)
NUMBERED = "ALTER TABLE {} ADD n BIGINT AUTO_INCREMENT PRIMARY KEY"


async def numbered(merging: Merging, mode: str, columns: str = "(id INT, v INT)") -> None:
    """Copy two shards, and have them ready for statements that number their rows."""
    merging.mode, merging.more["shard-mode"] = "all", mode
    merging.create("x", columns, shards=2)
    for n in (1, 2):
        merging.do(f"INSERT INTO x_{n} SELECT {100 * n} + seq, seq FROM seq_1_to_20")
    async with merging.running() as generation:
        await merging.copied(generation)
        await merging.check(generation)


async def ends_equal(merging: Merging, *statements: str) -> None:
    async with merging.running() as generation:
        merging.do(*statements)
        with anyio.fail_after(2 * PATIENCE):
            while merging.differences():
                await anyio.sleep(0.1)
        await until_reconciled(merging, generation)
        await merging.check(generation)


def step(number: int) -> tuple[str, str]:
    """Let a shard number its rows otherwise than others."""
    return "SET auto_increment_increment = 2", f"SET auto_increment_offset = {number}"


@pytest.mark.also_tidb(slow=True)
@MODES
async def test_rows_without_a_key_get_one(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    await numbered(merging, mode)
    for n in (1, 2):
        merging.do(
            f"UPDATE x_{n} SET v = 0 WHERE v = 3",
            *step(n),
            NUMBERED.format(f"x_{n}"),
            f"UPDATE x_{n} SET v = -1 WHERE id % 3 = 1",
            f"DELETE FROM x_{n} WHERE id % 5 = 0",
            f"INSERT INTO x_{n} (id, v) VALUES ({100 * n}, 7)",
        )
    await ends_equal(merging, *step(1), "UPDATE x_1 SET n = n + 100 WHERE v = 7")


@MODES
async def test_a_unique_key_of_numbers_beside_the_primary_key(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    """The target's own numbers are in the way of those of the shards."""
    merging = merging_from(mariadb_source)
    await numbered(merging, mode, "(id INT PRIMARY KEY, v INT)")
    for n in (1, 2):
        merging.do(*step(3 - n), f"ALTER TABLE x_{n} ADD n INT NOT NULL AUTO_INCREMENT UNIQUE")
        merging.do(f"UPDATE x_{n} SET v = v + 1 ORDER BY id DESC")
    await ends_equal(merging)


@pytest.mark.slow
@MODES
async def test_numbers_of_many_rows_are_no_chain_for_one_transaction(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    await numbered(merging, mode, "(id INT PRIMARY KEY, v INT)")
    for n in (1, 2):
        merging.do(
            f"INSERT INTO x_{n} SELECT {n * 100_000} + seq, seq FROM seq_1_to_12000",
            *step(3 - n),
            f"ALTER TABLE x_{n} ADD n INT NOT NULL AUTO_INCREMENT UNIQUE",
        )
    await ends_equal(merging)


@MODES
async def test_a_key_that_is_another_value_at_each_execution(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    await numbered(merging, mode)
    for n in (1, 2):
        merging.do(
            f"ALTER TABLE x_{n} ADD u CHAR(36) DEFAULT uuid() PRIMARY KEY",
            f"UPDATE x_{n} SET v = -1 WHERE id % 3 = 1",
            f"DELETE FROM x_{n} WHERE id % 5 = 0",
        )
    await ends_equal(merging)


@MODES
async def test_rows_that_get_the_same_numbers_are_told(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    await numbered(merging, mode)
    for n in (1, 2):
        merging.do(NUMBERED.format(f"x_{n}"), f"UPDATE x_{n} SET v = -1 WHERE id % 3 = 1")
    found = await merging.fault()
    assert found.event == "rows.duplicate"
    assert f"{merging.database}.x_1" in found.message
    assert f"{merging.database}.x_2" in found.message
    assert found.scope == of_target(TableName(merging.database, "x"))
    merging.do("UPDATE x_2 SET n = n + 1000")
    await ends_equal(merging)


@pytest.mark.parametrize("point", [Failpoint.DDL_EXECUTED, Failpoint.DDL_FINISHED])
@MODES
async def test_a_task_that_is_killed_behind_the_statement(
    merging_from: MergingFrom,
    mariadb_source: DatabaseServer,
    mode: str,
    point: Failpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    merging = merging_from(mariadb_source)
    await numbered(merging, mode)
    for n in (1, 2):
        merging.do(*step(n), NUMBERED.format(f"x_{n}"), f"UPDATE x_{n} SET v = -1 WHERE v > 9")
    died = anyio.Event()

    def die(here: Failpoint) -> None:
        # Optimistic targets get the statement with the second shard.
        if here is point and merging.on(merging.target, "SHOW COLUMNS FROM x LIKE 'n'"):
            died.set()
            raise ZeroDivisionError(here)

    with monkeypatch.context() as patched:
        patched.setattr(ddl_execution, "reach", die)
        with anyio.fail_after(PATIENCE), pytest.raises((ExceptionGroup, ZeroDivisionError)):
            await merging.generation().run(anyio.Event(), anyio.Event())
    assert died.is_set()
    await ends_equal(merging, "DELETE FROM x_1 WHERE v = 5")


@MODES
async def test_a_row_0_that_gets_a_number(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    await numbered(merging, mode, "(id INT NOT NULL, v INT, PRIMARY KEY (id))")
    merging.do(
        "SET sql_mode = ''", "INSERT INTO x_1 VALUES (0, 1)", "INSERT INTO x_2 VALUES (-9, 1)"
    )
    for n in (1, 2):
        merging.do("SET sql_mode = ''", f"ALTER TABLE x_{n} MODIFY id INT AUTO_INCREMENT")
    await ends_equal(merging, "UPDATE x_1 SET v = 2 WHERE v = 1")


async def test_rows_that_a_target_had_before_the_task_are_not_numbered(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    """Rows with other numbers must go, and they may be those of others."""
    merging = merging_from(mariadb_source)
    merging.create("t", "(a INT)")
    merging.on(merging.target, "INSERT INTO t VALUES (9)")

    async def run() -> None:
        async with merging.running() as generation:
            merging.do("INSERT INTO t_1 VALUES (1), (2)")
            merging.do("ALTER TABLE t_1 ADD b INT AUTO_INCREMENT PRIMARY KEY")
            await merging.caught_up(generation)

    found = await fault_of(run())
    assert found.event == "ddl.other-values"
    assert "the target had rows before" in found.message


@MODES
async def test_rows_of_tables_that_are_created_while_the_task_runs(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    """The task has created their target itself, so it has no other rows."""
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = mode
    merging.create("x", "(id INT PRIMARY KEY)")
    merging.shards("y", 2)
    async with merging.running() as generation:
        for n in (1, 2):
            merging.do(f"CREATE TABLE y_{n} (id INT, v INT)")
            merging.do(f"INSERT INTO y_{n} SELECT {100 * n} + seq, seq FROM seq_1_to_20")
        await merging.check(generation)
    for n in (1, 2):
        merging.do(
            *step(n),
            NUMBERED.format(f"y_{n}"),
            f"UPDATE y_{n} SET v = -1 WHERE id % 3 = 1",
            f"DELETE FROM y_{n} WHERE id % 5 = 0",
        )
    await ends_equal(merging)


async def test_rows_of_others_that_a_created_table_meets(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    """They stay, although the task has copied all of its shards."""
    merging = merging_from(mariadb_source)
    merging.mode = "all"
    merging.create("x", "(id INT PRIMARY KEY)")
    merging.shards("y", 1)
    merging.on(merging.target, "CREATE TABLE y (id INT, v INT)", "INSERT INTO y VALUES (9, 9)")

    async def run() -> None:
        async with merging.running() as generation:
            await merging.copied(generation)
            merging.do("CREATE TABLE y_1 (id INT, v INT)", "INSERT INTO y_1 VALUES (1, 1)")
            merging.do(NUMBERED.format("y_1"))
            await merging.caught_up(generation)
            await until_reconciled(merging, generation)

    found = await fault_of(run())
    assert found.event == "ddl.other-values"
    assert merging.on(merging.target, "SELECT COUNT(*) FROM y WHERE id = 9") == ((1,),)


@MODES
async def test_safe_mode_goes_on_after_a_restart_of_a_task_that_copies_nothing(
    merging_from: MergingFrom,
    mariadb_source: DatabaseServer,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
) -> None:
    """The target has the shards' numbers for other rows until its reconciliation ends."""
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = mode
    merging.create("x", "(id INT, v INT)", shards=2)
    gaps = "SET auto_increment_increment = 4"
    with monkeypatch.context() as patch:
        patch.setattr(Reconciler, "run", wait_for_ever)
        async with merging.running() as generation:
            for n in (1, 2):
                merging.do(f"INSERT INTO x_{n} SELECT {100 * n} + seq, seq FROM seq_1_to_20")
                merging.do(gaps, step(n)[1], NUMBERED.format(f"x_{n}"))
            await merging.caught_up(generation)
            queue = f"{merging.task.meta_schema}.`{merging.task.name}_reconciliation`"
            await settles(lambda: merging.on(merging.target, f"SELECT 1 FROM {queue}"), ((1,),))
        async with merging.running() as generation:
            merging.do("INSERT INTO x_1 VALUES (199, 0, 3)", "INSERT INTO x_2 VALUES (299, 0, 4)")
            await merging.caught_up(generation)
    await ends_equal(merging)


async def wait_for_ever(*_: object) -> None:
    await anyio.sleep_forever()
