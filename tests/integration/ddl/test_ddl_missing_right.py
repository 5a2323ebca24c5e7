"""A schema change that the task's account may not make on the target."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles
from tests.support.tasks.task_files import endpoint

MakeMerging = Callable[..., Merging]


@pytest.mark.not_on_tidb("its accounts are asked for rights alike")
@pytest.mark.remedy("ddl.refused", "resume")
async def test_the_right_is_asked_for_and_the_change_is_made_then(
    merging_from: MakeMerging, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    db, target = merging.database, merging.target
    merging.create("x", "(id INT PRIMARY KEY, v INT)")
    account = f"'{db}'@'%'"
    target.execute(
        f"CREATE USER {account}",
        f"GRANT ALL ON *.* TO {account}",
        f"REVOKE ALTER ON *.* FROM {account}",
        f"GRANT ALTER ON {db}_meta.* TO {account}",
    )
    merging.more = {
        "shard-mode": "pessimistic",
        "target-database": {**endpoint(target), "user": db, "password": ""},
    }
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1)")
        await merging.caught_up(generation)
    merging.do("ALTER TABLE x_1 ADD c INT", "INSERT INTO x_1 VALUES (2, 2, 2)")
    fault = await merging.fault()
    assert fault.event == "ddl.refused"
    assert "grant the task's account what the error names" in fault.remedies[0]
    assert f"ALTER command denied to user '{db}'" in fault.message
    target.execute(f"GRANT ALTER ON {db}.* TO {account}")
    async with merging.running() as generation:
        await settles(merging.differences, {})
    target.execute(f"DROP USER {account}")


@pytest.mark.not_on_tidb("its accounts are asked for rights alike")
@pytest.mark.parametrize("mode", ["", "pessimistic", "optimistic"])
async def test_a_database_that_no_target_is_in_needs_no_right(
    merging_from: MakeMerging, mariadb_source: DatabaseServer, mode: str
) -> None:
    """A table that is routed there needs it, and the database."""
    merging = merging_from(mariadb_source)
    db, target = merging.database, merging.target
    merging.create("x", "(id INT PRIMARY KEY, v INT)")
    account = f"'{db}'@'%'"
    target.execute(
        f"CREATE USER {account}",
        f"GRANT ALL ON {db}.* TO {account}",
        f"GRANT ALL ON {db}_meta.* TO {account}",
        f"GRANT PROCESS ON *.* TO {account}",
    )
    merging.more_schemas()
    merging.more = {
        "shard-mode": mode,
        "target-database": {**endpoint(target), "user": db, "password": ""},
    }
    async with merging.running() as generation:
        merging.do(
            f"CREATE DATABASE {db}_new",
            f"ALTER DATABASE {db}_new CHARACTER SET utf8mb4",
            "INSERT INTO x_1 VALUES (1, 1)",
        )
        await merging.check(generation)
        assert not target.execute(f"SHOW DATABASES LIKE '{db}_new'")
        target.execute(f"GRANT ALL ON {db}_new.* TO {account}", f"CREATE DATABASE {db}_new")
        merging.do(
            f"CREATE TABLE {db}_new.y (id INT PRIMARY KEY)", f"INSERT INTO {db}_new.y VALUES (1)"
        )
        await merging.check(generation)
    assert target.execute(f"SELECT id FROM {db}_new.y") == ((1,),)
    merging.do(f"DROP DATABASE {db}_new")
    target.execute(f"DROP USER {account}", f"DROP DATABASE {db}_new")
