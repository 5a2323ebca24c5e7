"""Application-time periods: one change of a part of a period is several rows, old and new ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging

KEYS = {
    "first": "PRIMARY KEY (id, p WITHOUT OVERLAPS)",
    "further": "n INT, PRIMARY KEY (id, s), UNIQUE `u``1` (id, p WITHOUT OVERLAPS)",
}


@pytest.mark.parametrize("kind", ["mariadb_source", "mariadb11_source"])
async def test_rows_make_room_for_the_parts_of_their_periods(
    merging_from: Callable[..., Merging], request: pytest.FixtureRequest, kind: str
) -> None:
    source: DatabaseServer = request.getfixturevalue(kind)
    merging = merging_from(source)
    for table, keys in KEYS.items():
        merging.create(table, f"(id INT, s DATE, e DATE, v INT, PERIOD FOR p (s, e), {keys})")
    async with merging.running() as generation:
        for table in KEYS:
            merging.do(
                f"INSERT INTO {table}_1 (id, s, e, v)"
                " SELECT seq, '2000-01-01', '2020-01-01', 0 FROM seq_1_to_30"
            )
        await merging.check(generation)
        for year in (2010, 2005, 2001):
            for table in KEYS:
                merging.do(
                    f"UPDATE {table}_1 FOR PORTION OF p"
                    f" FROM '{year}-01-01' TO '{year + 1}-01-01' SET v = {year}"
                )
            await merging.check(generation)
        for table in KEYS:
            merging.do(
                f"DELETE FROM {table}_1 FOR PORTION OF p FROM '2008-05-01' TO '2009-05-01'"
                " WHERE id % 3 = 0",
                f"UPDATE {table}_1 SET id = id + 1000",
                f"UPDATE {table}_1 SET s = s + INTERVAL 1 DAY WHERE s > '2000-01-01'",
            )
        await merging.check(generation)
