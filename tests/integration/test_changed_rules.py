"""A task file whose rules about rows were changed between two runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from replicator.sandbox.server import DatabaseServer
from tests.support.merging import Merging
from tests.support.running import fault_of

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
    # The way out: the former rules. A rule that says the same in other words is none.
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


@pytest.mark.parametrize("kind", ["events", "expression"])
async def test_other_rows_that_are_left_out_are_told(merging: Merging, kind: str) -> None:
    await run(merging)
    merging.do("INSERT INTO x_1 VALUES (1, 1)")
    await run(merging)
    if kind == "events":
        rule = {"schema-pattern": "*", "table-pattern": "x_*", "events": ["delete"]}
        again(merging, filters={"keep": {**rule, "action": "Ignore"}})
        merging.instance["filter-rules"] = ["keep"]
        said = "delete events are left out"
    else:
        rule = {"schema": merging.database, "table": "x_1", "insert-value-expr": "v > 10"}
        again(merging, **{"expression-filter": {"small": rule}})
        merging.instance["expression-filters"] = ["small"]
        said = "insert-value-expr: v > 10"
    for told in (True, False):
        with capture_logs() as logged:
            await run(merging)
        found = [r for r in logged if r["event"] == "task.filters-changed"]
        assert bool(found) is told
        assert all(f"x_1: nothing before, {said} now" in r["examples"][0] for r in found)
