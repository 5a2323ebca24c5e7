"""Shards that were not there for the full copy, though they were there: never taken for copied."""

from __future__ import annotations

from typing import Any

import pytest

from actors.control.arguments import OnChangedRules
from actors.errors.faults import of_target
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import copy_all_anew, tell_from_source
from tests.support.tasks.running import NOTHING, settles
from tests.support.tasks.task_files import endpoint

USER = "'half'@'127.0.0.1'"
MODES = ("", "pessimistic")
ON_MARIADB = pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)


def only(merging: Merging, table: str, server: DatabaseServer) -> dict[str, Any]:
    """The sources of a task whose account sees one table."""
    server.execute(
        f"CREATE OR REPLACE USER {USER} IDENTIFIED BY 'x'",
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {USER}",
        f"GRANT SELECT ON {merging.database}.{table} TO {USER}",
    )
    login = {**endpoint(server), "host": "127.0.0.1", "user": "half", "password": "x"}
    return {"sources": [{"source-id": "a", "from": login}]}


def make(merging: Merging) -> None:
    merging.mode = "all"
    merging.create("x", "(id INT PRIMARY KEY, v VARCHAR(9))", shards=3)
    merging.do(*(f"INSERT INTO x_{n} VALUES ({n}, 'old')" for n in (1, 2, 3)))


def rows(merging: Merging) -> list[object]:
    return [row[0] for row in merging.on(merging.target, "SELECT id FROM x ORDER BY 1")]


@ON_MARIADB
@pytest.mark.parametrize("mode", [*MODES, "optimistic"])
async def test_rows_of_a_shard_that_the_account_cannot_see(merging: Merging, mode: str) -> None:
    make(merging)
    merging.more = {"shard-mode": mode, **only(merging, "x_1", merging.source)}
    async with merging.running() as generation:
        await merging.copied(generation)
    assert rows(merging) == [1]
    merging.do("INSERT INTO x_1 VALUES (4, 'new')", "UPDATE x_2 SET v = 'new'")
    found = await merging.fault()
    assert found.event == "member.not-copied"
    assert f"{merging.database}.x_2" in found.message
    assert rows(merging) == [1, 4], "what was read before it is applied"
    merging.do(f"GRANT SELECT ON {merging.database}.* TO {USER}")
    async with merging.running():
        await settles(merging.differences, {})
    merging.do("UPDATE x_2 SET v = 'newer'", "DELETE FROM x_3")
    async with merging.running():
        await settles(merging.differences, {})


@pytest.mark.remedy("member.not-copied", "run")
@ON_MARIADB
@pytest.mark.parametrize("mode", MODES)
async def test_a_change_of_a_shard_that_the_account_cannot_see(merging: Merging, mode: str) -> None:
    make(merging)
    merging.more = {"shard-mode": mode, **only(merging, "x_1", merging.source)}
    async with merging.running() as generation:
        await merging.copied(generation)
    merging.do("INSERT INTO x_1 VALUES (4, 'new')", "ALTER TABLE x_3 ADD w INT")
    found = await merging.fault()
    assert found.event == "member.not-copied"
    assert f"{merging.database}.x_3" in found.message
    assert rows(merging) == [1, 4]
    # The statement would be met again.
    assert not [way for way in found.remedies if "DROP and CREATE" in way]
    # The structure of the rows before the statement is not known.
    merging.do(f"GRANT SELECT ON {merging.database}.* TO {USER}")
    assert (await merging.fault()).event == "member.not-copied"
    merging.do("ALTER TABLE x_1 ADD w INT", "ALTER TABLE x_2 ADD w INT")
    merging.on(merging.target, "ALTER TABLE x ADD w INT")
    await copy_all_anew(merging, "x")


@ON_MARIADB
@pytest.mark.parametrize("mode", MODES)
async def test_a_shard_that_the_task_file_takes_in_later(merging: Merging, mode: str) -> None:
    make(merging)
    lists = {"only": {"do-dbs": [merging.database]}}
    without = {"only": {**lists["only"], "ignore-tables": [{"db-name": "*", "tbl-name": "x_3"}]}}
    merging.more = {"shard-mode": mode, "block-allow-list": lists}
    merging.do("DROP TABLE x_3")
    async with merging.running() as generation:
        await merging.copied(generation)
    merging.do(
        # Made while nobody looks, the ways that an application may.
        "CREATE TABLE IF NOT EXISTS x_3 (id INT PRIMARY KEY, v VARCHAR(9))",
        "CREATE TABLE x_8 LIKE x_1",
        "RENAME TABLE x_8 TO x_4",
        "INSERT INTO x_3 VALUES (3, 'new')",
        "INSERT INTO x_4 VALUES (4, 'new')",
    )
    merging.shards("x", 4)
    async with merging.running() as generation:
        await merging.copied(generation)
        await merging.check(generation)
    merging.more["block-allow-list"] = without
    merging.changed(mode="all")
    merging.on_changed_rules = OnChangedRules.KEEP
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("INSERT INTO x_3 VALUES (9, 'missing')")
        await merging.caught_up(generation)
    merging.more["block-allow-list"] = lists
    merging.changed(mode="all")
    found = await merging.fault()
    assert found.event == "member.not-copied"
    assert f": {merging.database}.x_3." in found.message
    merging.do("DROP TABLE x_3", "CREATE TABLE x_3 LIKE x_1", "INSERT INTO x_3 VALUES (10, 'new')")
    async with merging.running() as generation:
        await merging.copied(generation)
        await merging.caught_up(generation)
    assert rows(merging) == [1, 2, 3, 4, 10]


@pytest.mark.remedy("member.not-copied", "resume")
@ON_MARIADB
async def test_a_shard_that_an_incremental_task_takes_in_later(merging: Merging) -> None:
    make(merging)
    merging.create("y", "(id INT PRIMARY KEY)")
    lists = {"only": {"do-dbs": [merging.database]}}
    without = {"only": {**lists["only"], "ignore-tables": [{"db-name": "*", "tbl-name": "x_3"}]}}
    merging.more = {"block-allow-list": without}
    merging.changed(mode="incremental")
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.more["block-allow-list"] = lists
    merging.changed(mode="incremental")
    merging.do("INSERT INTO x_1 VALUES (11, 'new')")
    found = await merging.fault()
    assert found.event == "member.not-copied"
    assert f": {merging.database}.x_3." in found.message
    assert found.scope == of_target(TableName(merging.database, "x"))
    merging.blocked = found.scope
    async with merging.running() as generation:
        merging.do("INSERT INTO y_1 VALUES (1)")
        await merging.caught_up(generation)
        assert not merging.differences(but=("x",))
    assert rows(merging) == []
    merging.blocked = NOTHING
    merging.do("DROP TABLE x_3", "CREATE TABLE x_3 LIKE x_1", "INSERT INTO x_3 VALUES (10, 'new')")
    async with merging.running() as generation:
        await merging.caught_up(generation)
    assert rows(merging) == [10, 11]


@pytest.mark.remedy("member.not-copied", "schema set")
@ON_MARIADB
async def test_a_structure_is_not_taken_from_a_shard_that_was_changed_since(
    merging: Merging,
) -> None:
    """Its rows would be read with their columns exchanged."""
    merging.mode = "all"
    merging.create("x", "(id INT PRIMARY KEY, a INT, b INT)", shards=2)
    merging.do("INSERT INTO x_2 VALUES (2, 1, 2)")
    merging.more = only(merging, "x_1", merging.source)
    async with merging.running() as generation:
        await merging.copied(generation)
    merging.do("INSERT INTO x_2 VALUES (3, 1, 2)")
    assert (await merging.fault()).event == "member.not-copied"
    merging.do(f"GRANT SELECT ON {merging.database}.* TO {USER}")
    merging.do("ALTER TABLE x_1 COMMENT 'of another shard'", "ALTER TABLE x_2 ADD INDEX (a)")
    reply = await tell_from_source(merging, "a", "x_2")
    assert reply.ok, reply.error
    merging.do("ALTER TABLE x_2 MODIFY a INT AFTER b")
    reply = await tell_from_source(merging, "a", "x_2")
    assert not reply.ok
    assert "ALTER TABLE x_2 MODIFY a INT AFTER b" in reply.error
    assert "--file" in reply.error


@ON_MARIADB
async def test_a_partition_that_becomes_a_table_is_met_at_its_statement(merging: Merging) -> None:
    merging.mode = "all"
    merging.create(
        "x",
        "(id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id)"
        " (PARTITION p VALUES LESS THAN (10), PARTITION q VALUES LESS THAN MAXVALUE)",
    )
    async with merging.running() as generation:
        await merging.copied(generation)
    merging.do(
        "INSERT INTO x_1 VALUES (1, 1), (20, 2)", "ALTER TABLE x_1 CONVERT PARTITION p TO TABLE x_2"
    )
    found = await merging.fault()
    assert (found.event, rows(merging)) == ("ddl.not-supported", [1, 20])
