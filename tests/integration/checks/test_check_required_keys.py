"""A target that takes no table without a key: `check` says so before the copy is refused."""

from __future__ import annotations

import pymysql.err
import pytest

from replicator.checks.schema.structures import check_structures
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.mysql import MySQLServer
from tests.support.tasks.checking import address, failures, one, routed, task


@pytest.mark.parametrize(
    ("kind", "setting", "unique_will_do"),
    [
        (MySQLServer, "sql_require_primary_key", False),
        (MariaDBServer, "innodb_force_primary_key", True),
    ],
)
@pytest.mark.cures("target_keys")
async def test_shards_without_the_key_that_the_target_requires_are_named(
    start_server: StartServer,
    mariadb: DatabaseServer,
    kind: type[DatabaseServer],
    setting: str,
    unique_will_do: bool,
) -> None:
    target = start_server(kind, {setting: "ON"})
    target.execute("CREATE DATABASE merged")
    mariadb.execute("CREATE DATABASE shop3", "CREATE TABLE shop3.t1 (id INT, a INT)")
    source = routed(address(mariadb), schema="shop3")
    wanted = task(source, target=target, task_mode="all")
    try:
        found = one(await check_structures(wanted), "target_keys", "failed")
        assert setting in found.finding
        assert "a: shop3.t1" in found.finding
        with pytest.raises(pymysql.err.MySQLError):
            target.execute("CREATE TABLE merged.t (id INT, a INT)")
        mariadb.execute("ALTER TABLE shop3.t1 MODIFY id INT NOT NULL, ADD UNIQUE (id)")
        named = "target_keys" in failures(await check_structures(wanted))
        assert named is not unique_will_do
        mariadb.execute("ALTER TABLE shop3.t1 ADD PRIMARY KEY (id)")
        assert failures(await check_structures(wanted)) == set()
        mariadb.execute("ALTER TABLE shop3.t1 DROP PRIMARY KEY, DROP KEY id")
        target.execute(found.remedies[0].partition(": ")[2].partition(";")[0])
        assert "target_keys" not in failures(await check_structures(wanted))
    finally:
        mariadb.execute("DROP DATABASE shop3")
