"""A target can roll back, and has its rows at home, whatever its shards do."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging

ENGINE = "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"


@pytest.mark.remedy("target.not-transactional", "resume")
@pytest.mark.not_on_tidb("it has one engine")
async def test_the_target_stays_able_to_roll_back(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", "(id INT PRIMARY KEY, v INT)")
    async with merging.running() as generation:
        merging.do(
            "ALTER TABLE t_1 ENGINE=MyISAM, ADD w INT",
            "INSERT INTO t_1 VALUES (1, 2, 3)",
        )
        await merging.check(generation)
    assert merging.on(merging.target, ENGINE) == (("InnoDB",),)

    merging.on(merging.target, "ALTER TABLE t ENGINE=MyISAM")
    merging.do("UPDATE t_1 SET v = 7")

    found = await merging.fault()
    assert found.event == "target.not-transactional"
    merging.on(merging.target, found.remedies[0].partition(", then")[0])
    async with merging.running() as generation:
        await merging.check(generation)


async def test_places_of_a_shard_are_no_places_of_the_target(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", "(id INT PRIMARY KEY, v INT)")
    merging.more_schemas()
    ((place,),) = merging.source.execute("SELECT @@tmpdir")
    async with merging.running() as generation:
        merging.do(
            f"CREATE TABLE x (id INT PRIMARY KEY) DATA DIRECTORY='{place}' ENGINE=InnoDB",
            "INSERT INTO x VALUES (1)",
            "ALTER TABLE x INSERT_METHOD=LAST, CONNECTION='mysql://root@127.0.0.1:1/d/t'",
            "ALTER TABLE x ADD v INT, CONNECTION='mysql://root@127.0.0.1:1/d/t'",
            "INSERT INTO x VALUES (2, 2)",
            "INSERT INTO t_1 VALUES (1, 1)",
        )
        await merging.check(generation)
    assert merging.on(merging.target, "SELECT * FROM x ORDER BY id") == ((1, None), (2, 2))
    ((_, shown),) = merging.on(merging.target, "SHOW CREATE TABLE x")
    assert "DIRECTORY" not in str(shown)
    assert "mysql://" not in str(shown)
    # Source and target have the same place: InnoDB refuses a file that is there already.
    assert await anyio.Path(str(place), merging.database, "x.ibd").exists()
