"""Which differences of structure count: those by which a target does not store all rows."""

from __future__ import annotations

from contextlib import closing

import pytest

from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName
from replicator.pipeline.compare.compare_structures import (
    ComparedShard,
    StructureDifferences,
    structure_differences,
)
from replicator.routing.columns.member_columns import MemberColumns
from replicator.sandbox.server import DatabaseServer
from replicator.schema.structure.inspection import read_target
from replicator.schema.structure.structure import Table
from tests.support.tasks.checking import address

ROW = "id INT PRIMARY KEY, "
STORED = {
    "the same": ("v INT", "v INT", ""),
    "wider integer": ("v INT", "v BIGINT", "column v is bigint"),
    "longer text": ("v VARCHAR(9)", "v VARCHAR(99)", "varchar(99)"),
    "text for varchar": ("v VARCHAR(9)", "v MEDIUMTEXT", "mediumtext"),
    "more digits": ("v DECIMAL(9,2)", "v DECIMAL(12,4)", "decimal(12,4)"),
    "more fractions": ("v DATETIME", "v DATETIME(3)", "datetime(3)"),
    "more labels": ("v ENUM('a','b')", "v ENUM('a','b','c')", "enum('a','b','c')"),
    "other charset": (
        "v VARCHAR(9) CHARACTER SET latin1",
        "v VARCHAR(9) CHARACTER SET utf8mb4",
        "CHARACTER SET utf8mb4",
    ),
    "longer in another charset": (
        "v TEXT CHARACTER SET latin1",
        "v MEDIUMTEXT CHARACTER SET utf8mb4",
        "mediumtext CHARACTER SET utf8mb4",
    ),
    "nullable": ("v INT NOT NULL", "v INT", "int NOT NULL in the shard"),
    "default": ("v INT DEFAULT 1", "v INT DEFAULT 2", "DEFAULT '2'"),
    "time by default": (
        "v TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
        "v TIMESTAMP NOT NULL DEFAULT '2000-01-01 00:00:00'",
        "CURRENT_TIMESTAMP",
    ),
    "collation": (
        "v CHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "v CHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        "COLLATE utf8mb4_general_ci",
    ),
    "order": ("v INT, w INT", "w INT, v INT", "another order"),
    "columns of its own": ("v INT", "v INT, w INT, x INT NOT NULL DEFAULT 1", ""),
    "an index of its own": ("v INT", "v INT, KEY k (v)", "the shard has no index KEY (`v`)"),
    "no index": ("v INT, KEY k (v)", "v INT", "the target has no index KEY (`v`)"),
    "no unique key": ("v INT, UNIQUE k (v)", "v INT", "no index UNIQUE KEY (`v`)"),
    "a wider unique key": ("v INT, w INT, UNIQUE (v)", "v INT, w INT, UNIQUE (v, w)", "(`v`)"),
    "a binary key": (
        "v CHAR(9) CHARACTER SET latin1 NOT NULL, UNIQUE (v)",
        "v CHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, UNIQUE (v)",
        "COLLATE utf8mb4_bin",
    ),
    "comment": ("v INT COMMENT 'a'", "v INT COMMENT 'b'", "comment"),
}
UNFIT = {
    "narrower integer": ("v BIGINT", "v INT", "column v is int"),
    "unsigned": ("v INT", "v INT UNSIGNED", "int unsigned"),
    "shorter text": ("v VARCHAR(99)", "v VARCHAR(9)", "varchar(9)"),
    "fewer labels": ("v ENUM('a','b')", "v ENUM('a')", "lacks the labels b"),
    "no room in another charset": (
        "v TEXT CHARACTER SET latin1",
        "v TEXT CHARACTER SET utf8mb4",
        "no room",
    ),
    "smaller charset": (
        "v CHAR(9) CHARACTER SET utf8mb4",
        "v CHAR(9) CHARACTER SET latin1",
        "lacks characters",
    ),
    "not null": ("v INT", "v INT NOT NULL", "NOT NULL"),
    "unique": ("v INT", "v INT, UNIQUE k (v)", "UNIQUE KEY (`v`)"),
    "a narrower unique key": ("v INT, w INT, UNIQUE (v, w)", "v INT, w INT, UNIQUE (v)", "(`v`)"),
    "unique by a prefix": (
        "v VARCHAR(9), w INT, UNIQUE (v)",
        "v VARCHAR(9), w INT, UNIQUE (v(3), w)",
        "(`v`(3),`w`)",
    ),
    "a coarser key": (
        "v CHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, UNIQUE (v)",
        "v CHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL, UNIQUE (v)",
        "compares v by utf8mb4_general_ci",
    ),
    "a column without a default": ("v INT", "v INT, w INT NOT NULL", "column w of the target"),
    "computed": ("v INT, w INT", "v INT, w INT AS (v + 1)", "computes the column w"),
    "a check": ("v INT", "v INT, CHECK (v > 0)", "has CHECK"),
}


AGREED = {
    "default": ("v INT DEFAULT 1", "v INT DEFAULT 2", "", "default of v"),
    "on update": (
        "v TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP",
        "v TIMESTAMP NULL",
        "",
        "default of v",
    ),
    "comment": ("v INT COMMENT 'a'", "v INT", "", "comment of v"),
    "collation": (
        "v CHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "v CHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        "",
        "collation of v",
    ),
    "order": ("v INT, w INT", "w INT, v INT", "", "order of columns"),
    "visibility": ("v INT INVISIBLE", "v INT", "", "visibility of v"),
    "name of a key": ("v INT, UNIQUE k (v)", "v INT, UNIQUE l (v)", "", "name of the unique key"),
    "table's comment": ("v INT", "v INT", "COMMENT='a'", "table's comment"),
    "table's collation": ("v INT", "v INT", "COLLATE=utf8mb4_bin", "table's default collation"),
}
"""What all shards have, what the target has, the shards' options, and what is told."""
IN_SENTENCES_OF_SHARDS = ("default", "comment", "collation", "order")


async def table_of(server: DatabaseServer, database: str, columns: str, options: str = "") -> Table:
    server.execute(
        f"CREATE DATABASE IF NOT EXISTS {database} CHARACTER SET utf8mb4",
        f"CREATE OR REPLACE TABLE {database}.t ({ROW}{columns}) {options}",
    )
    with closing(Connection(address(server, server.user, server.password))) as connection:
        found = await read_target(connection, TableName(database, "t"))
    assert found is not None
    return found


async def differences(
    server: DatabaseServer, database: str, shard: str, target: str
) -> StructureDifferences:
    its, ours = [await table_of(server, database, columns) for columns in (shard, target)]
    member = Member("a", TableName(database, "t"))
    return structure_differences(ours, [ComparedShard(member, its, MemberColumns())])


@pytest.mark.parametrize("case", STORED)
async def test_a_difference_is_noted_if_every_row_is_stored(
    mariadb_source: DatabaseServer, database_name: str, case: str
) -> None:
    shard, target, told = STORED[case]
    found = await differences(mariadb_source, database_name, shard, target)
    assert found.unfit == ()
    assert told in "; ".join(found.notes)
    assert bool(found.notes) == bool(told)


@pytest.mark.parametrize("case", UNFIT)
async def test_a_difference_counts_if_a_row_may_not_be_stored(
    mariadb_source: DatabaseServer, database_name: str, case: str
) -> None:
    shard, target, told = UNFIT[case]
    found = await differences(mariadb_source, database_name, shard, target)
    [text] = found.unfit
    assert told in text


@pytest.mark.parametrize("case", AGREED)
async def test_what_all_shards_have_alike_is_noted_in_all_modes(
    mariadb_source: DatabaseServer, database_name: str, case: str
) -> None:
    """Also if shards of a mode that joins structures differ in something else."""
    its, ours, options, told = AGREED[case]
    target = await table_of(mariadb_source, database_name, f"{ours}, x INT, y INT")
    shards = [
        ComparedShard(
            Member("a", TableName(database_name, f"t{more}")),
            await table_of(mariadb_source, database_name, f"{its}, {more} INT", options),
            MemberColumns(),
        )
        for more in "xy"
    ]
    for found in (
        structure_differences(target, shards, joins=True),
        structure_differences(target, shards[:1], joins=True),
        structure_differences(target, shards[:1]),
        structure_differences(target, shards),
    ):
        assert found.unfit == ()
        [text] = (note for note in found.notes if "index" not in note)
        if f"does not have the {told}" not in text:
            assert case in IN_SENTENCES_OF_SHARDS
    noted = structure_differences(target, shards, joins=True).notes
    assert f"the target does not have the {told}" in "; ".join(noted)


async def test_parts_in_which_shards_differ_are_not_noted_if_they_may_differ(
    mariadb_source: DatabaseServer, database_name: str
) -> None:
    target = await table_of(mariadb_source, database_name, "v INT, x INT, y INT")
    structures = [
        await table_of(mariadb_source, database_name, columns)
        for columns in ("v INT DEFAULT 1 COMMENT 'a', x INT", "v INT COMMENT 'b', y INT")
    ]
    member = Member("a", TableName(database_name, "t"))
    shards = [ComparedShard(member, table, MemberColumns()) for table in structures]
    assert structure_differences(target, shards, joins=True) == StructureDifferences()


async def test_the_time_by_default_is_one_on_all_servers(
    request: pytest.FixtureRequest, database_name: str
) -> None:
    """Display widths and the ways in which servers write defaults are no differences."""
    columns = (
        "v INT DEFAULT 1, w TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), "
        "x DATETIME DEFAULT NOW() ON UPDATE NOW(), y VARCHAR(9) CHARACTER SET utf8mb4 COLLATE"
        " utf8mb4_bin NOT NULL DEFAULT 'é', z TINYINT(1) DEFAULT 0"
    )
    tables = []
    for kind in ("mariadb_source", "mysql_source", "tidb_target"):
        server: DatabaseServer = request.getfixturevalue(kind)
        server.execute(
            f"CREATE DATABASE IF NOT EXISTS {database_name}",
            f"CREATE TABLE {database_name}.t ({ROW}{columns}) CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
        )
        with closing(Connection(address(server, server.user, server.password))) as connection:
            tables.append(await read_target(connection, TableName(database_name, "t")))
    member = Member("a", TableName(database_name, "t"))
    for shard in tables:
        for target in tables:
            assert shard is not None
            assert target is not None
            compared = [ComparedShard(member, shard, MemberColumns())]
            assert structure_differences(target, compared) == StructureDifferences()
    for target in tables:
        assert target is not None
        compared = [ComparedShard(member, t, MemberColumns()) for t in tables if t is not None]
        assert structure_differences(target, compared, joins=True) == StructureDifferences()
