"""What the task counts as inserted, overwritten and deleted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging


@pytest.mark.parametrize("columns", ["v INT", "v INT, UNIQUE KEY (v)"])
@pytest.mark.parametrize("rows", [5, 500])
async def test_an_update_is_counted_as_one_also_with_more_unique_keys(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, columns: str, rows: int
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", f"(id INT PRIMARY KEY, {columns})")
    async with merging.running() as generation:

        def counted() -> tuple[int, int, int, int]:
            of = generation.counts.targets[TableName(merging.database, "t")]
            return of.inserted, of.overwritten, of.deleted, of.missing

        values = ", ".join(f"({number}, {number})" for number in range(rows))
        merging.do(f"INSERT INTO t_1 VALUES {values}")
        await merging.check(generation)
        assert counted() == (rows, 0, 0, 0)
        merging.do("UPDATE t_1 SET v = -v - 1")
        await merging.check(generation)
        assert counted() == (rows, rows, 0, 0)
        merging.do("UPDATE t_1 SET v = v - 10000 WHERE id < 3", "DELETE FROM t_1 WHERE id >= 3")
        await merging.check(generation)
        assert counted() == (rows, rows + 3, rows - 3, 0)
        merging.do("UPDATE t_1 SET id = -1 WHERE id = 1")
        await merging.check(generation)
        assert counted() == (rows + 1, rows + 3, rows - 2, 0)
