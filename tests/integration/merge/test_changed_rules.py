"""A task file whose rules about rows were changed between two runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from actors.control.arguments import OnChangedRules
from actors.errors.faults import TaskParts
from replicator.failpoints import Failpoint
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, fault_of

MakeMerging = Callable[..., Merging]

MAPPING = {
    "schema-pattern": "*",
    "table-pattern": "x_*",
    "expression": "partition id",
    "source-column": "id",
    "target-column": "id",
    "arguments": ["", "", "x", "_"],
}


@pytest.fixture
def merging(merging_from: MakeMerging, mysql_source: DatabaseServer) -> Merging:
    merging = merging_from(mysql_source)
    merging.create(
        "x",
        "(id BIGINT PRIMARY KEY, v INT)",
        shards=2,
        target="(id BIGINT, v INT, `from` CHAR(5) DEFAULT '', PRIMARY KEY (id, `from`))",
    )
    return merging


async def run(merging: Merging) -> None:
    async with merging.running() as generation:
        await merging.caught_up(generation)


def again(merging: Merging, **more: Any) -> None:
    """The next run reads a task file with these sections."""
    merging.more |= more
    merging.changed(mode=merging.mode)


async def test_other_values_in_columns_are_refused(merging: Merging) -> None:
    again(merging, **{"column-mappings": {"bits": MAPPING}})
    merging.instance["column-mapping-rules"] = ["bits"]
    await run(merging)
    merging.do("INSERT INTO x_1 VALUES (1, 1), (2, 2)")
    await run(merging)
    again(merging, **{"column-mappings": {"bits": {**MAPPING, "arguments": ["1", "", "x", "_"]}}})
    fault = await fault_of(run(merging))
    assert fault.event == "task.rules-changed"
    assert f"{merging.database}.x_1: id | {1 << 55} before, id | " in fault.message, fault.message
    merging.routes["extract-table"] = {"table-regexp": "(x_.)", "target-column": "from"}
    again(merging, **{"column-mappings": {"bits": MAPPING}})
    fault = await fault_of(run(merging))
    assert "now" in fault.message
    assert "from = 'x_1'" in fault.message
    # The remedy: the former rules. A rule that says the same in other words is none.
    del merging.routes["extract-table"]
    again(merging, **{"column-mappings": {"same": {**MAPPING, "table-pattern": "x_?"}}})
    merging.instance["column-mapping-rules"] = ["same"]
    merging.do("UPDATE x_1 SET v = 5 WHERE id = 1", "DELETE FROM x_1 WHERE id = 2")
    with capture_logs() as logged:
        await run(merging)
    assert not [r for r in logged if r["event"].startswith("task.filters")]
    rows = merging.on(merging.target, f"SELECT id ^ {1 << 55}, v FROM x")
    assert [tuple(map(int, map(str, map(_text, row)))) for row in rows] == [(1, 5)]


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


async def test_other_events_that_are_left_out_are_told(merging: Merging) -> None:
    await run(merging)
    merging.do("INSERT INTO x_1 VALUES (1, 1)")
    await run(merging)
    rule = {"schema-pattern": "*", "table-pattern": "x_*", "events": ["delete"]}
    again(merging, filters={"keep": {**rule, "action": "Ignore"}})
    merging.instance["filter-rules"] = ["keep"]
    for told in (True, False):
        with capture_logs() as logged:
            await run(merging)
        found = [r for r in logged if r["event"] == "task.filters-changed"]
        assert bool(found) is told
        said = "x_1: nothing before, delete events are left out now"
        assert all(said in r["examples"][0] for r in found)


@pytest.fixture(params=["", "pessimistic"], ids=["uncoordinated", "pessimistic"])
def pair(
    request: pytest.FixtureRequest, merging_from: MakeMerging, mariadb_source: DatabaseServer
) -> Merging:
    """Two tables of two shards each, a third one, and a task in each shard-mode."""
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = request.param
    for table in ("x", "y", "z"):
        merging.create(table, "(id INT PRIMARY KEY, v INT)", shards=2)
    return merging


def rows_of_all(merging: Merging) -> None:
    for place, shard in enumerate(("x_1", "x_2", "y_1", "y_2", "z_1")):
        first = 10 * place
        merging.do(f"INSERT INTO {shard} VALUES ({first}, 0), ({first + 1}, 0), ({first + 2}, 0)")


def held_by(merging: Merging, table: str) -> list[int]:
    rows = merging.on(merging.target, f"SELECT id FROM {table} ORDER BY id")
    return [int(str(_text(row[0]))) for row in rows]


async def test_a_shard_that_is_to_go_elsewhere_stops_the_task(pair: Merging) -> None:
    await run(pair)
    rows_of_all(pair)
    await run(pair)
    pair.route_of["x_2"] = "y"
    again(pair)
    fault = await fault_of(run(pair))
    assert fault.event == "task.rules-changed"
    assert f"x_2 went to {pair.database}.x, now to {pair.database}.y" in fault.message
    assert not [way for way in fault.remedies if "recopy" in way]
    # It stays so, and the former rules go on where they were.
    assert (await fault_of(run(pair))).event == "task.rules-changed"
    del pair.route_of["x_2"]
    again(pair)
    async with pair.running() as generation:
        pair.do("UPDATE x_2 SET v = 1", "DELETE FROM x_2 WHERE id = 10")
        await pair.check(generation)


async def test_rows_are_kept_where_the_operator_says_so(pair: Merging) -> None:
    await run(pair)
    rows_of_all(pair)
    await run(pair)
    pair.route_of["x_2"] = "y"
    again(pair)
    pair.on(
        pair.target,
        "INSERT INTO y SELECT * FROM x WHERE id BETWEEN 10 AND 19",
        "DELETE FROM x WHERE id BETWEEN 10 AND 19",
    )
    pair.on_changed_rules = OnChangedRules.KEEP
    await run(pair)
    pair.on_changed_rules = OnChangedRules.STOP
    pair.do("UPDATE x_2 SET v = 1", "DELETE FROM x_2 WHERE id = 10")
    pair.do("INSERT INTO x_1 VALUES (7, 0)")
    await run(pair)
    assert held_by(pair, "x") == [0, 1, 2, 7]
    assert held_by(pair, "y") == [11, 12, 20, 21, 22, 30, 31, 32]
    assert held_by(pair, "z") == [40, 41, 42]
    changed = pair.on(pair.target, "SELECT SUM(v) FROM y")
    assert int(str(changed[0][0])) == 2


async def test_statements_that_are_read_again_are_filtered_as_before(
    request: pytest.FixtureRequest, pair: Merging
) -> None:
    """Under other filters, rows behind them would have other versions, and come twice."""
    pair.create("k", "(id INT, KEY (id))", shards=2)
    rule = {"schema-pattern": "*", "table-pattern": "k_*", "sql-pattern": ["ADD KEY"]}
    filters = {"keys": {**rule, "action": "Ignore"}}
    pair.more["filters"] = filters
    pair.instance["filter-rules"] = ["keys"]
    await run(pair)
    held = TaskParts(frozenset({TableName(pair.database, "x")}))
    pair.blocked = held
    pair.do("INSERT INTO x_1 VALUES (1, 1)")
    for shard in ("k_1", "k_2"):
        pair.do(f"ALTER TABLE {shard} ADD KEY more (id)", f"INSERT INTO {shard} VALUES (1)")
    await run(pair)
    other = {"keys": {**rule, "sql-pattern": ["DROP KEY"], "action": "Ignore"}}
    pair.blocked = TaskParts()
    for former in (True, False):
        again(pair, filters=other)
        if former:
            fault = await fault_of(run(pair))
            assert fault.event == "task.routes-changed"
            assert "k_1: Ignore /ADD KEY/ statements before, Ignore /DROP KEY/ statements now" in (
                fault.message
            )
            # The remedy: the former rules, until nothing is read again.
            again(pair, filters=filters)
        async with pair.running() as generation:
            pair.do(f"INSERT INTO k_1 VALUES ({int(former)})")
            await pair.check(generation)


async def until_recopied(merging: Merging, wanted: dict[str, list[int]]) -> None:
    with anyio.fail_after(PATIENCE):
        while {table: held_by(merging, table) for table in wanted} != wanted:
            await anyio.sleep(LOOK_SECONDS)


async def test_a_target_is_copied_anew_beside_the_others(pair: Merging) -> None:
    """What somebody has done to its rows is gone, and no change of the shards is lost."""
    again(pair)
    pair.changed(mode="all")
    rows_of_all(pair)
    async with pair.running() as generation:
        await pair.copied(generation)
        await pair.check(generation)
    pair.on(pair.target, "DELETE FROM x WHERE id = 1", "INSERT INTO x VALUES (99, 9)")
    pair.do("INSERT INTO x_1 VALUES (5, 0)", "UPDATE x_2 SET v = 7 WHERE id = 11")
    generation = pair.generation()
    generation.recopy = wanted = {TableName(pair.database, "x")}
    stop, started = anyio.Event(), anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(generation.run, stop, started)
        await started.wait()
        assert not wanted, "it is noted once"
        pair.do("INSERT INTO z_1 VALUES (43, 5)", "DELETE FROM x_1 WHERE id = 2")
        await until_recopied(pair, {"z": [40, 41, 42, 43], "x": [0, 1, 5, 10, 11, 12]})
        stop.set()
    async with pair.running() as generation:
        pair.do("DELETE FROM x_2 WHERE id = 12")
        await until_recopied(pair, {"x": [0, 1, 5, 10, 11]})
    assert pair.differences() == {}
    assert sum(target.missing for target in generation.counts.targets.values()) == 0


async def test_targets_are_copied_anew_where_the_operator_says_so(pair: Merging) -> None:
    again(pair)
    pair.changed(mode="all")
    rows_of_all(pair)
    async with pair.running() as generation:
        await pair.copied(generation)
        await pair.check(generation)
    pair.route_of["x_2"] = "y"
    pair.changed(mode="all")
    fault = await fault_of(run(pair))
    assert [way for way in fault.remedies if "--on-changed-rules recopy" in way]
    pair.do("DELETE FROM x_2 WHERE id = 10", "UPDATE x_2 SET v = 1 WHERE id = 11")
    pair.on_changed_rules = OnChangedRules.RECOPY
    wanted = {"x": [0, 1, 2], "y": [11, 12, 20, 21, 22, 30, 31, 32], "z": [40, 41, 42]}
    async with pair.running() as generation:
        await until_recopied(pair, wanted)
        pair.do("INSERT INTO x_2 VALUES (15, 5)", "DELETE FROM y_1 WHERE id = 20")
        pair.do("INSERT INTO z_1 VALUES (43, 5)", "DELETE FROM x_1 WHERE id = 1")
        wanted = {"x": [0, 2], "y": [11, 12, 15, 21, 22, 30, 31, 32], "z": [40, 41, 42, 43]}
        await until_recopied(pair, wanted)
    # Said once: the rules that hold now are those of the rows.
    pair.on_changed_rules = OnChangedRules.STOP
    async with pair.running() as generation:
        pair.do("DELETE FROM x_2 WHERE id = 12")
        wanted["y"].remove(12)
        await until_recopied(pair, wanted)
        await pair.caught_up(generation)
    assert sum(target.missing for target in generation.counts.targets.values()) == 0


@pytest.mark.parametrize("kind", ["keep", "recopy"])
async def test_a_shard_that_is_no_longer_replicated(pair: Merging, kind: str) -> None:
    pair.changed(mode="all")
    rows_of_all(pair)
    async with pair.running() as generation:
        await pair.copied(generation)
        await pair.check(generation)
    pair.instance["block-allow-list"] = "fewer"
    ignored = {"db-name": pair.database, "tbl-name": "x_2"}
    lists = {"do-dbs": [pair.database], "ignore-tables": [ignored]}
    again(pair, **{"block-allow-list": {"fewer": lists}})
    fault = await fault_of(run(pair))
    assert fault.event == "task.rules-changed"
    assert "x_2 went to" in fault.message
    assert "no longer replicated" in fault.message
    pair.on_changed_rules = OnChangedRules(kind)
    kept = [10, 11, 12] if kind == "keep" else []
    async with pair.running() as generation:
        pair.do("INSERT INTO x_2 VALUES (19, 0)", "INSERT INTO x_1 VALUES (3, 0)")
        await until_recopied(pair, {"x": [0, 1, 2, 3, *kept]})
        await pair.caught_up(generation)
    assert held_by(pair, "x") == [0, 1, 2, 3, *kept]


@pytest.mark.remedy("task.rules-changed", "run")
async def test_another_expression_is_about_the_rows_that_are_there(pair: Merging) -> None:
    pair.changed(mode="all")
    rows_of_all(pair)
    async with pair.running() as generation:
        await pair.copied(generation)
        await pair.check(generation)
    rule = {"schema": pair.database, "table": "x_1", "insert-value-expr": "id < 2"}
    pair.instance["expression-filters"] = ["small"]
    again(pair, **{"expression-filter": {"small": rule}})
    fault = await fault_of(run(pair))
    assert fault.event == "task.rules-changed"
    assert "x_1: nothing before, insert-value-expr: id < 2 now" in fault.message
    pair.on_changed_rules = OnChangedRules.RECOPY
    async with pair.running() as generation:
        await until_recopied(pair, {"x": [2, 10, 11, 12]})
        await pair.caught_up(generation)


async def test_another_mapping_is_carried_out_by_copying_anew(
    merging: Merging, monkeypatch: pytest.MonkeyPatch
) -> None:
    again(merging, **{"column-mappings": {"bits": MAPPING}})
    merging.instance["column-mapping-rules"] = ["bits"]
    merging.changed(mode="all")
    merging.do("INSERT INTO x_1 VALUES (1, 1), (2, 2)")
    async with merging.running() as generation:
        await merging.copied(generation)
        await merging.caught_up(generation)
    again(merging, **{"column-mappings": {"bits": {**MAPPING, "arguments": ["1", "", "x", "_"]}}})
    merging.on_changed_rules = OnChangedRules.RECOPY
    former = held_by(merging, "x")

    # A process that dies in between empties the target once more, and loses nothing.
    def interrupted(point: Failpoint) -> None:
        if point in steps:
            steps.remove(point)
            raise InterruptedError(point)

    steps = {Failpoint.RULES_ACCEPTED, Failpoint.TARGET_EMPTIED}
    monkeypatch.setattr("actors.task.startup.changed_rules.reach", interrupted)
    monkeypatch.setattr("actors.task.startup.recopy.reach", interrupted)
    while steps:
        with pytest.raises(ExceptionGroup, match="unhandled"):
            await run(merging)
        merging.on_changed_rules = OnChangedRules.STOP
    async with merging.running() as generation:
        merging.do("UPDATE x_1 SET v = 5 WHERE id = 1", "INSERT INTO x_1 VALUES (3, 3)")
        await merging.copied(generation)
        with anyio.fail_after(PATIENCE):
            while len(held_by(merging, "x")) < 3:
                await anyio.sleep(LOOK_SECONDS)
        await merging.caught_up(generation)
    rows = held_by(merging, "x")
    assert [row & 0xFFFF for row in rows] == [1, 2, 3]
    assert {row >> 16 for row in rows}.isdisjoint(row >> 16 for row in former)
    assert len({row >> 16 for row in rows}) == 1
