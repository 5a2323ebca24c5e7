"""Statements that MariaDB logs though they failed or found nothing to do, and odd engines."""

from __future__ import annotations

from collections.abc import Callable

import pymysql.err
import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles
from tests.support.tasks.tables import tables_of


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
        # The target gets its new name between two runs of its sources.
        await settles(lambda: tables_of(merging.target, merging.database), {"x", "renamed"})
        there = "SELECT a FROM renamed ORDER BY 1"
        await settles(lambda: merging.on(merging.target, there), (("x",), ("y",)))
    assert tables_of(source, merging.database) == {"x_1", "renamed"}
    engine = "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %r"
    engines = merging.target.execute(engine % merging.database)
    assert set(engines) == {("InnoDB",)}, "rows and watermarks would not be rolled back together"
    assert merging.on(source, there) == (("x",), ("y",))
