"""Comparisons of targets whose rows wait for more than a schema change: never equal."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest
from pyspark import SparkContext

import config
from actors.comparing.comparing import CompareOptions, TargetComparer
from actors.errors.faults import of_target
from replicator.mysql.names import TableName
from replicator.pipeline.compare.findings import TargetComparison
from replicator.sandbox.server import DatabaseServer
from replicator.terminal.comparison import remarks, verdict
from tests.support.tasks.many_targets import ManyTargets
from tests.support.tasks.merging import Merging
from tests.support.tasks.processes import TaskProcess, task_process

MergingFrom = Callable[..., Merging]


async def compared(task: config.Task, spark: SparkContext) -> dict[str, TargetComparison]:
    async def context() -> SparkContext:
        return spark

    results = await TargetComparer(task, CompareOptions(), context).run()
    assert not any(result.failure for result in results)
    return {result.target.table: result for result in results}


@pytest.mark.parametrize("columns", ["(id INT PRIMARY KEY, v INT)", "(id INT, v INT)"])
async def test_a_stopped_task_with_a_blocked_target_is_not_equal(
    merging_from: MergingFrom, spark: SparkContext, mariadb_source: DatabaseServer, columns: str
) -> None:
    merging = merging_from(mariadb_source)
    for table in "xy":
        merging.create(table, columns)
    merging.do("INSERT INTO x_1 VALUES (1, 1)", "INSERT INTO y_1 VALUES (1, 1)")
    merging.mode = "all"
    async with merging.running() as generation:
        await merging.copied(generation)
    merging.blocked = of_target(TableName(merging.database, "x"))
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("INSERT INTO x_1 VALUES (2, 2), (3, 3)", "INSERT INTO y_1 VALUES (2, 2)")
        await merging.caught_up(generation)
    found = await compared(merging.task, spark)
    assert (found["x"].held, found["x"].differing, found["x"].unsettled) == (2, 0, 0)
    assert verdict(found["x"]) == "blocked"
    assert found["x"].unequal
    assert not any("DDL lock" in text for text in remarks(found["x"]))
    assert "the target is blocked: a fault" in list(remarks(found["x"]))
    assert verdict(found["y"]) == "equal"


@pytest.mark.slow
@pytest.mark.parametrize("event", ["rows.refused", "rows.duplicate"])
def test_a_blocked_target_is_not_equal_and_names_its_fault(
    spark: SparkContext,
    mariadb_source: DatabaseServer,
    mysql_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    event: str,
) -> None:
    folder = tmp_path_factory.mktemp("task")
    sources = {"a": mariadb_source, "b": mysql_source}
    columns = "(id INT PRIMARY KEY, v VARCHAR(9))"
    estate = ManyTargets(
        sources,
        target_server,
        database_name,
        folder,
        tables=("bad", "good"),
        mode="",
        columns=columns,
    )
    task = config.load_task(estate.file)
    bad, rows = estate.shown("bad"), "INSERT INTO {} VALUES (7, 'row 7'), (8, 'row 8')"
    with task_process(estate.file, folder) as process:
        monkeypatch.setenv("XDG_RUNTIME_DIR", process.env["XDG_RUNTIME_DIR"])
        process.until_state(estate.name, "running")
        estate.do("a", "INSERT INTO bad VALUES (1, 'x')", "INSERT INTO good VALUES (1, 'x')")
        estate.until_equal(process)
        wrong, right = {
            "rows.refused": (
                "ALTER TABLE bad MODIFY v VARCHAR(2)",
                "ALTER TABLE bad MODIFY v VARCHAR(9)",
            ),
            "rows.duplicate": ("INSERT INTO bad VALUES (8, 'own')", "DELETE FROM bad WHERE id=8"),
        }[event]
        estate.at_target(wrong)
        estate.do("a", rows.format("bad"), rows.format("good"))
        estate.until_blocked(process, bad)
        found = anyio.run(compared, task, spark)
        # Once more after the restart that follows the fault.
        for _ in range(2):
            assert verdict(found["good"]) == "equal", found
            assert found["bad"].unequal
            assert found["bad"].blocked.startswith(f"the target is blocked: {event}: "), found
            assert found["bad"].held + found["bad"].unsettled >= 1
            process.until_applied(estate.name, {"b": mysql_source})
            found = anyio.run(compared, task, spark)
    found = anyio.run(compared, task, spark)
    assert found["bad"].blocked.startswith(f"the target is blocked: {event}: "), found
    assert verdict(found["good"]) == "equal"
    with task_process(estate.file, folder) as process:
        process.until_state(estate.name, "running")
        estate.until_blocked(process, bad)
        estate.at_target(right)
        assert process.cli("resume", estate.name).returncode == 0
        estate.until_equal(process)
        assert {verdict(result) for result in anyio.run(compared, task, spark).values()} == {
            "equal"
        }
        pauses_are_named(estate, process, spark, task)


def pauses_are_named(
    estate: ManyTargets, process: TaskProcess, spark: SparkContext, task: config.Task
) -> None:
    """What the operator has paused is not equal as long as rows wait."""
    for option, name in (("--target", estate.shown("bad")), ("--source", "a")):
        assert process.cli("pause", estate.name, option, name).returncode == 0
        estate.until_blocked(process, name)
        assert verdict(anyio.run(compared, task, spark)["bad"]) == "equal"
        estate.do("a", "UPDATE bad SET v = CONCAT('z', v) WHERE id = 7")
        found = anyio.run(compared, task, spark)
        assert "paused" in found["bad"].blocked, found
        assert verdict(found["bad"]) == "blocked"
        assert process.cli("resume", estate.name, option, name).returncode == 0
        estate.until_equal(process)


@pytest.mark.parametrize("running", [True, False])
async def test_no_row_waits_for_a_change_that_a_wider_target_has_refused(
    merging_from: MergingFrom, spark: SparkContext, mariadb_source: DatabaseServer, running: bool
) -> None:
    """A row that is missing then is missing; rows after a refused statement are not held by a
    lock, either."""
    merging = merging_from(mariadb_source)
    merging.more = {"shard-mode": "optimistic"}
    merging.mode = "all"
    for table in "xy":
        merging.create(table, "(id INT PRIMARY KEY, v INT)", shards=2, with_target=False)
        for shard in (1, 2):
            merging.do(f"INSERT INTO {table}_{shard} VALUES ({shard}, 7)")
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.on(merging.target, "ALTER TABLE y ADD own VARCHAR(63000)")
        for shard in (1, 2):
            merging.do(
                f"ALTER TABLE x_{shard} ADD UNIQUE (v)",
                f"ALTER TABLE y_{shard} ADD large VARCHAR(4000)",
                f"INSERT INTO y_{shard} (id) VALUES (1{shard})",
            )
        await merging.caught_up(generation)
        locks = generation.running.coordination.open_locks() if generation.running else []
        assert {(lock.view.target.table, lock.holds, lock.refused) for lock in locks} == {
            ("x", False, False),
            ("y", True, True),
        }
        merging.on(merging.target, "DELETE FROM x WHERE id = 2")
        if running:
            found = await compared(merging.task, spark)
    if not running:
        found = await compared(merging.task, spark)
    assert (found["x"].missing, found["x"].held, verdict(found["x"])) == (1, 0, "differs")
    assert found["y"].held == 2
    assert verdict(found["y"]) == "blocked"
    assert "the target has refused the statement" in found["y"].blocked
