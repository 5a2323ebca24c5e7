"""The structures of many tables are read by few queries, and as they are read one by one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from replicator.schema.structure.inspection import (
    read_table,
    read_tables,
    read_target,
    read_targets,
)
from tests.support.streams.applying import address_of

AT_ONCE = 20
KEYLESS = "a INT, b VARCHAR(10) CHARACTER SET latin1"
TABLES = {
    "plain": "id INT UNSIGNED NOT NULL PRIMARY KEY, n BIGINT, s VARCHAR(20) CHARACTER SET latin1",
    "unique keys": "b INT NOT NULL, a INT NOT NULL, c INT, UNIQUE `b` (b), UNIQUE `A` (a, b),"
    " UNIQUE `_z` (c), UNIQUE `Z` (c, a)",
    "odd `` name": "`x`` y` INT PRIMARY KEY, `%s` INT, `é` INT, e ENUM('a','%s') NOT NULL",
    "keyless": KEYLESS,
    "made": "id INT PRIMARY KEY, n INT GENERATED ALWAYS AS (id + 1) STORED",
}


@pytest.fixture(autouse=True)
def few_tables_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """More tables than are read at once are soon made."""
    monkeypatch.setattr("replicator.schema.structure.inspection.TABLES_AT_ONCE", AT_ONCE)


class Broken(Connection):
    """A connection that is lost once, before its n-th query, and opened again."""

    def __init__(self, server: DatabaseServer, at: int) -> None:
        super().__init__(address_of(server))
        self.left = at

    async def fetch(
        self, sql: str, args: Sequence[object] = (), *, patience: float | None = None
    ) -> list[tuple[Any, ...]]:
        if self.left == 0:
            self.close()
        self.left -= 1
        return await super().fetch(sql, args, patience=patience)


class Renaming(Connection):
    """A connection to a server where a table gets another name before its definition is read."""

    def __init__(self, server: DatabaseServer, table: TableName) -> None:
        super().__init__(address_of(server))
        self.server, self.table = server, table

    async def fetch(
        self, sql: str, args: Sequence[object] = (), *, patience: float | None = None
    ) -> list[tuple[Any, ...]]:
        if sql == f"SHOW CREATE TABLE {self.table.quoted}":
            self.server.execute(
                f"RENAME TABLE {self.table.quoted} TO `{self.table.schema}`.elsewhere"
            )
        return await super().fetch(sql, args, patience=patience)


def fill(server: DatabaseServer, schema: str, tables: dict[str, str]) -> list[TableName]:
    """Make tables, more than are asked for at once; their names, with some that are none."""
    many = {f"t{number}": "id INT PRIMARY KEY" for number in range(AT_ONCE)}
    server.execute(
        f"CREATE DATABASE {schema}",
        *(f"CREATE TABLE {schema}.`{name}` ({text})" for name, text in (many | tables).items()),
        f"CREATE VIEW {schema}.shown AS SELECT * FROM {schema}.plain",
    )
    if isinstance(server, MariaDBServer):
        server.execute(
            f"CREATE TABLE {schema}.versions (id INT PRIMARY KEY) WITH SYSTEM VERSIONING",
            f"CREATE TABLE {schema}.Plain (other INT)",
        )
    names = [*many, "none", *tables, "shown", "Plain", "versions", "T1"]
    return [
        *(TableName(schema, name.replace("``", "`")) for name in names),
        TableName("no_such", "plain"),
    ]


async def compared(server: DatabaseServer, names: list[TableName]) -> None:
    with closing(Connection(address_of(server))) as connection:
        one_by_one = {name: await read_target(connection, name) for name in names}
        expected = {name: table for name, table in one_by_one.items() if table is not None}
        assert await read_targets(connection, names) == expected
        assert len(expected) >= AT_ONCE + 4
        for some in ([], names[:1], names[-1:]):
            found = await read_targets(connection, some)
            assert found == {name: expected[name] for name in some if name in expected}


@pytest.mark.also_tidb
async def test_many_tables_are_read_as_one_by_one(
    target_server: DatabaseServer, database_name: str
) -> None:
    await compared(target_server, fill(target_server, database_name, TABLES))


async def test_many_tables_of_an_older_mysql(
    mysql56_source: DatabaseServer, database_name: str
) -> None:
    tables = {name: text for name, text in TABLES.items() if name != "made"}
    await compared(mysql56_source, fill(mysql56_source, database_name, tables))


async def test_many_tables_of_a_newer_mysql(
    mysql_source: DatabaseServer, database_name: str
) -> None:
    functional = "id INT PRIMARY KEY, a INT NOT NULL, UNIQUE f ((a + 1)), UNIQUE a (a)"
    names = fill(mysql_source, database_name, TABLES | {"functional": functional})
    await compared(mysql_source, names)


async def test_a_session_that_is_lost_meanwhile_hides_no_keys(
    mysql_source: DatabaseServer, database_name: str
) -> None:
    mysql_source.execute("SET GLOBAL show_gipk_in_create_table_and_information_schema=OFF")
    try:
        mysql_source.execute(
            f"CREATE DATABASE {database_name}",
            "SET SESSION sql_generate_invisible_primary_key=ON",
            f"CREATE TABLE {database_name}.one (a INT)",
            f"CREATE TABLE {database_name}.two (a INT)",
        )
        names = [TableName(database_name, name) for name in ("one", "two")]
        for at in range(7):
            connection = Broken(mysql_source, at)
            found = await read_targets(connection, names)
            connection.close()
            assert connection.left < 0
            assert [table.row_key is not None for table in found.values()] == [True, True], at
    finally:
        mysql_source.execute("SET GLOBAL show_gipk_in_create_table_and_information_schema=ON")


async def test_a_table_that_is_renamed_meanwhile_is_not_there(
    mariadb_source: DatabaseServer, database_name: str
) -> None:
    name, other = (TableName(database_name, table) for table in ("t", "u"))
    mariadb_source.execute(f"CREATE DATABASE {database_name}")
    for many in (False, True):
        mariadb_source.execute(
            f"CREATE OR REPLACE TABLE {name.quoted} (id INT)",
            f"CREATE OR REPLACE TABLE {other.quoted} (id INT)",
            f"DROP TABLE IF EXISTS {database_name}.elsewhere",
        )
        with closing(Renaming(mariadb_source, name)) as connection:
            if many:
                assert list(await read_targets(connection, [name, other])) == [other]
            else:
                assert await read_table(connection, name) is None


class Altering(Connection):
    """A connection to a server where a table gets a column before its definition is read."""

    def __init__(self, server: DatabaseServer, table: TableName) -> None:
        super().__init__(address_of(server))
        self.server, self.table, self.altered = server, table, False

    async def fetch(
        self, sql: str, args: Sequence[object] = (), *, patience: float | None = None
    ) -> list[tuple[Any, ...]]:
        if sql == f"SHOW CREATE TABLE {self.table.quoted}" and not self.altered:
            self.altered = True
            self.server.execute(f"ALTER TABLE {self.table.quoted} MODIFY id BIGINT, ADD KEY (id)")
        return await super().fetch(sql, args, patience=patience)


async def test_columns_and_definition_are_of_one_moment(
    mariadb_source: DatabaseServer, database_name: str
) -> None:
    name, other = (TableName(database_name, table) for table in ("t", "u"))
    mariadb_source.execute(
        f"CREATE DATABASE {database_name}",
        f"CREATE TABLE {name.quoted} (id INT)",
        f"CREATE TABLE {other.quoted} (id INT)",
    )
    with closing(Altering(mariadb_source, name)) as connection:
        found = await read_tables(connection, [name, other])
        assert connection.altered
    assert [column.base_type for column in found[name].columns] == ["bigint"]
    assert "bigint" in found[name].create_sql


async def test_names_that_differ_in_case_are_of_different_tables(
    mariadb_source: DatabaseServer, database_name: str
) -> None:
    mariadb_source.execute(
        f"CREATE DATABASE {database_name}",
        f"CREATE TABLE {database_name}.t (a INT)",
        f"CREATE TABLE {database_name}.T (b INT)",
    )
    with closing(Connection(address_of(mariadb_source))) as connection:
        names = [TableName(database_name, table) for table in ("T", "t", "none")]
        found = await read_tables(connection, names)
        assert [table.columns[0].name for table in found.values()] == ["b", "a"]
        assert not await read_tables(connection, [TableName(database_name.upper(), "t")])
