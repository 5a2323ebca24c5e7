"""How a source is to execute a statement is its own matter: the target executes it in its way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging


@pytest.mark.also_tidb(slow=True)
async def test_the_target_has_remedies_of_its_own(
    merging_from: Callable[..., Merging], mariadb11_source: DatabaseServer
) -> None:
    """MariaDB 10.11 copies no table without a lock, and TiDB takes other words for each of these.

    Shards that do it in different ways make one change all the same.
    """
    merging = merging_from(mariadb11_source)
    merging.create("x", "(id INT PRIMARY KEY, a INT)", shards=2)
    ways = (
        "ALTER ONLINE TABLE {} ADD b INT DEFAULT 3",
        "ALTER TABLE {} MODIFY a BIGINT, ALGORITHM=COPY, LOCK=NONE",
        "ALTER TABLE {} WAIT 5 ALGORITHM=INSTANT, ADD c INT, ALGORITHM=DEFAULT",
        "CREATE INDEX i ON {} (c) LOCK=NONE",
    )
    plain = (
        "ALTER TABLE {} ADD b INT DEFAULT 3",
        "ALTER TABLE {} MODIFY a BIGINT",
        "ALTER TABLE {} NOWAIT ADD c INT",
        "CREATE INDEX i ON {} (c)",
    )
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1)", "INSERT INTO x_2 VALUES (2, 2)")
        await merging.check(generation)
        merging.do(*(sql.format("x_1") for sql in ways), "UPDATE x_1 SET c = 4")
        merging.do(*(sql.format("x_2") for sql in plain), "INSERT INTO x_2 VALUES (4, 4, 4, 4)")
        await merging.check(generation)
