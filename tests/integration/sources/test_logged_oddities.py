"""Statements that MariaDB logs though they failed or found nothing to do, and odd engines."""

from __future__ import annotations

from collections.abc import Callable

import pymysql.err
import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging


@pytest.mark.parametrize("kind", ["mariadb_source", "mariadb11_source"])
async def test_the_target_has_what_they_have_left(
    merging_from: Callable[..., Merging], request: pytest.FixtureRequest, kind: str
) -> None:
    source: DatabaseServer = request.getfixturevalue(kind)
    merging = merging_from(source)
    merging.more_schemas()
    merging.create("x", "(id INT PRIMARY KEY, v INT)")
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1)")
        await merging.check(generation)
        merging.do(
            "CREATE TABLE kept (a VARCHAR(9) PRIMARY KEY)ENGINE=MyISAM",
            "CREATE TABLE gone (a INT PRIMARY KEY)",
            "INSERT INTO gone VALUES (1)",
            "INSERT INTO kept VALUES ('x')",
        )
        # The server drops the old table before it finds that the new one can't be made.
        with pytest.raises(pymysql.err.MySQLError):
            merging.do("CREATE OR REPLACE TABLE gone (a INT, PRIMARY KEY (b))")
        merging.do(
            "RENAME TABLE IF EXISTS missing TO other, kept TO renamed",
            "ALTER TABLE IF EXISTS missing ADD b INT",
            "INSERT INTO renamed VALUES ('y')",
            "INSERT INTO x_1 VALUES (2, 2)",
        )
        await merging.check(generation)
    tables = [
        {name for (name,) in merging.on(server, "SHOW TABLES")}
        for server in (source, merging.target)
    ]
    assert tables == [{"x_1", "renamed"}, {"x", "renamed"}]
    engine = "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %r"
    engines = merging.target.execute(engine % merging.database)
    assert set(engines) == {("InnoDB",)}, "rows and watermarks would not be rolled back together"
    rows = [merging.on(s, "SELECT a FROM renamed ORDER BY 1") for s in (source, merging.target)]
    assert rows[0] == rows[1] == (("x",), ("y",))
