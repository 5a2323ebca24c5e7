"""Every column type at its limits, from each kind of source, in batches written as parameters."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.integration.rows.test_rows_types import Types, columns, groups_of, rows
from tests.support.tasks.checking import executions
from tests.support.tasks.merging import Merging

MakeMerging = Callable[..., Merging]

AS_TEXT = ("SET(", "GEOMETRY", "POINT")
"""Types that are loaded as text, and would have the other columns of their table loaded, too."""
TIMES = 40
LABELS = {"0": "'a'", "'not a label'": "'b,c'"}
"""Labels instead of an ENUM's values without one, which only statements of their own can write."""

SOURCES = ["mariadb_source", "mariadb_source_full", "mariadb11_source", "mysql_source"]


@pytest.fixture
def only_mariadb(target_server: DatabaseServer) -> None:
    if not isinstance(target_server, MariaDBServer):
        pytest.skip("other servers take no bulks")


def usable(types: Types) -> Types:
    return {
        kind: [LABELS.get(value, value) if "ENUM" in kind else value for value in values]
        for kind, values in types.items()
        if not any(word in kind for word in AS_TEXT)
    }


@pytest.mark.usefixtures("only_mariadb")
@pytest.mark.parametrize("name", [*SOURCES, "mysql56_source"])
async def test_every_type_arrives_byte_for_byte(
    merging_from: MakeMerging, request: pytest.FixtureRequest, name: str
) -> None:
    merging = merging_from(request.getfixturevalue(name))
    groups = groups_of(merging.source, merging.target)
    groups = {group: usable(groups[group]) for group in ("numbers", "temporal", "strings")}
    for group, types in groups.items():
        merging.create(group, f"(id INT PRIMARY KEY, {columns(types)})")
    numbers = " UNION ALL ".join(f"SELECT {n} AS n" for n in range(1, 1 + TIMES))
    async with merging.running() as generation:
        for group, types in groups.items():
            values = rows(types)
            names = ",".join(f"c{n}" for n in range(len(types)))
            times = numbers if group != "strings" else "SELECT 1 AS n UNION ALL SELECT 2"
            before = executions(merging.target)
            merging.do(
                *(
                    f"INSERT INTO {group}_1 VALUES ({n}, {','.join(v)})"
                    for n, v in enumerate(values)
                ),
                f"INSERT INTO {group}_1 SELECT id + 1000 * n, {names}"
                f" FROM {group}_1, ({times}) AS u",
            )
            await merging.check(generation)
            assert executions(merging.target) > before
            before = executions(merging.target)
            # Each row of many gets the values of the next one.
            merging.do(
                f"UPDATE {group}_1 AS t, (SELECT * FROM {group}_1) AS o SET "
                + ",".join(f"t.c{n} = o.c{n}" for n in range(len(types)))
                + f" WHERE o.id = (t.id + 1) % {len(values)}"
            )
            await merging.check(generation)
            assert executions(merging.target) > before
            merging.do(f"DELETE FROM {group}_1 WHERE id % 2 = 0")
        await merging.check(generation)
