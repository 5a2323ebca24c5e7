"""A fault of one target blocks that one; all others of its source go on, also after restarts."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from actors.errors.faults import TaskParts
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import PATIENCE

COLUMNS = (
    "(id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id)"
    " (PARTITION p VALUES LESS THAN (10), PARTITION q VALUES LESS THAN MAXVALUE)"
)
EXTRACTED = {
    "extract-table": {"table-regexp": "^._(.)$", "target-column": "shard"},
}
TARGET = "(id INT, v INT, shard VARCHAR(9), PRIMARY KEY (id, shard))"

STATEMENTS = {
    "a shard under extract-table gets another name": (
        ("RENAME TABLE x_1 TO x_5",),
        ("INSERT INTO x_5 VALUES (5, 5)", "ALTER TABLE x_5 ADD w INT"),
    ),
    "a shard under extract-table is altered to another name": (
        ("ALTER TABLE x_1 RENAME TO x_5",),
        ("UPDATE x_5 SET v = 9", "DROP TABLE x_5"),
    ),
    "a partition becomes a shard": (
        ("ALTER TABLE x_1 CONVERT PARTITION p TO TABLE x_5",),
        ("INSERT INTO x_5 VALUES (5, 5)", "UPDATE x_1 SET v = 3", "ALTER TABLE x_5 ADD w INT"),
    ),
    "a partition becomes a table of its own": (
        ("ALTER TABLE x_1 CONVERT PARTITION p TO TABLE elsewhere",),
        ("INSERT INTO elsewhere VALUES (5, 5)", "INSERT INTO x_1 VALUES (50, 5)"),
    ),
    "a partition is exchanged": (
        (
            "CREATE TABLE z (id INT PRIMARY KEY, v INT)",
            "ALTER TABLE x_1 EXCHANGE PARTITION p WITH TABLE z",
        ),
        ("INSERT INTO x_1 VALUES (50, 5)",),
    ),
}


FAST = ("a shard under extract-table gets another name", "a partition becomes a shard")


@pytest.mark.parametrize(
    ("case", "mode"),
    [
        pytest.param(
            case, mode, marks=() if case in FAST and mode == "all" else (pytest.mark.slow,)
        )
        for case in STATEMENTS
        for mode in ("all", "incremental")
    ],
)
async def test_other_targets_of_the_source_go_on(
    merging_from: Callable[..., Merging], mariadb11_source: DatabaseServer, case: str, mode: str
) -> None:
    merging = merging_from(mariadb11_source)
    merging.mode = mode
    if "extract" in case:
        merging.routes = dict(EXTRACTED)
    target = TARGET if "extract" in case else None
    merging.create("x", COLUMNS, target=target)
    merging.create("y", "(id INT PRIMARY KEY, v INT)", target=target)
    merging.generation()
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("INSERT INTO x_1 VALUES (1, 1), (20, 2)", "INSERT INTO y_1 VALUES (1, 1)")
        await merging.caught_up(generation)
    first, later = STATEMENTS[case]
    merging.do(*first, "INSERT INTO y_1 VALUES (2, 2)")
    found = await merging.fault()
    assert found.scope is not None
    assert not found.scope.sources, found.message
    assert {name.table for name in found.scope.targets} - {"elsewhere", "z"} == {"x"}
    merging.blocked = TaskParts(targets=found.scope.targets)
    async with merging.running() as generation:
        merging.do(*later, "INSERT INTO y_1 VALUES (3, 3)")
        with anyio.fail_after(PATIENCE):
            while merging.on(merging.target, "SELECT COUNT(*) FROM y") != ((3,),):
                await anyio.sleep(0.02)
    # A later start meets all of it again.
    async with merging.running() as generation:
        merging.do("INSERT INTO y_1 VALUES (4, 4)")
        with anyio.fail_after(PATIENCE):
            while merging.on(merging.target, "SELECT COUNT(*) FROM y") != ((4,),):
                await anyio.sleep(0.02)
    assert merging.on(merging.target, "SELECT id FROM x ORDER BY id") == ((1,), (20,))
