"""What a statement does to a shard is learned on the target, whatever that lacks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from dataclasses import replace

import pymysql.err
import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from replicator.schema.effects.column_values import value_text
from replicator.schema.scratch.scratch_table import ScratchTableError, structure_after
from replicator.schema.structure.inspection import read_table
from replicator.schema.structure.structure import Column, Table

pytestmark = pytest.mark.also_tidb

ODD = """(
    id INT PRIMARY KEY AUTO_INCREMENT,
    u UUID NOT NULL,
    a VARCHAR(20) CHARACTER SET utf16,
    b VARCHAR(20000) CHARACTER SET latin1,
    c CHAR(9),
    e ENUM('é', 'b') CHARACTER SET latin1,
    g POINT,
    m INT,
    n INT AS (m + 1) PERSISTENT,
    at DATETIME DEFAULT current_timestamp() ON UPDATE current_timestamp(),
    z0 TEXT COMPRESSED,
    t TEXT,
    KEY by_a (a), UNIQUE KEY by_c (c) USING HASH, KEY by_t (t(10))
) PAGE_CHECKSUM=1 CHARSET=cp1251"""

Learn = Callable[..., Awaitable[Table]]


def address(server: DatabaseServer) -> DatabaseAddress:
    return DatabaseAddress(server.host, server.port, server.user, server.password)


@pytest.fixture
async def before(mariadb_source: DatabaseServer, database_name: str) -> Table:
    mariadb_source.execute(
        f"CREATE DATABASE {database_name}", f"CREATE TABLE {database_name}.t {ODD}"
    )
    return await structure_of(mariadb_source, database_name)


async def structure_of(server: DatabaseServer, database: str) -> Table:
    with closing(Connection(address(server))) as connection:
        found = await read_table(connection, TableName(database, "t"))
    assert found is not None
    return found


@pytest.fixture
async def learn(target_server: DatabaseServer, database_name: str) -> AsyncIterator[Learn]:
    """Learns what statements do, on the target."""
    target_server.execute(f"CREATE DATABASE {database_name}_meta")
    connection = Connection(address(target_server))

    async def after(before: Table | None, *statements: str, instead: tuple[str, ...] = ()) -> Table:
        table = before
        for sql in statements:
            table = await structure_after(
                connection,
                TableName(f"{database_name}_meta", "scratch"),
                table,
                classify(sql, default_schema=database_name),
                [classify(sql, default_schema=database_name) for sql in instead],
            )
        assert table is not None
        return table

    yield after
    connection.close()


def shapes(table: Table) -> list[tuple[str, str, str, bool]]:
    return [(c.name, c.type.split(" /*")[0], c.charset, c.generated) for c in table.columns]


STATEMENTS = (
    "ALTER TABLE t ADD d INT UNSIGNED AFTER u, DROP e",
    "ALTER TABLE t ADD x VARCHAR(30) FIRST, ADD y VARCHAR(30) CHARACTER SET utf8mb4",
    "ALTER TABLE t RENAME COLUMN u TO v",
    "ALTER TABLE t MODIFY b VARCHAR(20)",
    "ALTER TABLE t MODIFY y VARCHAR(31) CHARACTER SET utf8mb4 AFTER x",
    "ALTER TABLE t MODIFY c CHAR(9) NOT NULL",
    "DROP INDEX by_a ON t",
    "ALTER TABLE t ADD z TEXT, COMMENT='text'",
)


async def test_a_login_that_is_refused_tells_nothing_of_a_statement(
    target_server: DatabaseServer, database_name: str, before: Table
) -> None:
    connection = Connection(replace(address(target_server), password="wrong"))
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        await structure_after(
            connection,
            TableName(f"{database_name}_meta", "scratch"),
            before,
            classify("ALTER TABLE t ADD d INT", default_schema=database_name),
        )


async def test_a_shard_of_types_and_charsets_that_the_target_lacks(
    mariadb_source: DatabaseServer, database_name: str, before: Table, learn: Learn
) -> None:
    table = before
    for sql in STATEMENTS:
        mariadb_source.execute(sql, database=database_name)
        table = await learn(table, sql)
        really = await structure_of(mariadb_source, database_name)
        assert shapes(table) == shapes(really), sql
        assert [key.columns for key in table.keys] == [key.columns for key in really.keys]
        assert (table.schema, table.name) == (database_name, "t")


KEEPING = (
    "ALTER TABLE t RENAME COLUMN a TO x, DROP INDEX i, ADD INDEX i (x, c), ADD c INT DEFAULT 3"
    " AFTER x, MODIFY b BIGINT",
    "ALTER TABLE t ADD d INT DEFAULT 4 AFTER e, ADD INDEX k (e, g)",
    "CREATE UNIQUE INDEX l ON t (id, x)",
    "ALTER TABLE t ALTER x SET DEFAULT 5, ALTER COLUMN e DROP DEFAULT",
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS x INT DEFAULT 6",
    "ALTER TABLE t DROP d, ADD d INT DEFAULT 7",
    "ALTER TABLE t DROP d, ADD d VARCHAR(9) DEFAULT 'n' AFTER id, ALTER b SET DEFAULT 8,"
    " RENAME INDEX i TO j, ADD INDEX i (d)",
    "ALTER TABLE t CHANGE x a BIGINT DEFAULT 8 AFTER d, ADD x INT DEFAULT 2, DROP INDEX j,"
    " ADD INDEX j (a, x), MODIFY d INT",
    "ALTER TABLE t RENAME COLUMN a TO h",
)


async def test_columns_keep_their_defaults_unless_a_statement_gives_them_others(
    mariadb_source: DatabaseServer, database_name: str, learn: Learn
) -> None:
    """The default of a column that a statement only names is the same as before."""
    mariadb_source.execute(
        f"CREATE DATABASE {database_name}",
        f"CREATE TABLE {database_name}.t (id INT PRIMARY KEY, u UUID, a INT DEFAULT 1, b INT"
        " DEFAULT 2, e VARCHAR(9) DEFAULT 'e', g INT AS (b + 1) VIRTUAL, KEY i (a))"
        " CHARSET=cp1251",
    )
    table = await structure_of(mariadb_source, database_name)
    for sql in KEEPING:
        mariadb_source.execute(sql, database=database_name)
        table = await learn(table, sql)
        really = await structure_of(mariadb_source, database_name)
        assert shapes(table) == shapes(really), sql
        for column in really.columns:
            found, wanted = (value_text(one, column.name) for one in (table, really))
            assert _plain(found) == _plain(wanted), f"{column.name}: {sql}"


def _plain(clause: str) -> str:
    """A default as all servers write it: some quote numbers, and some write no DEFAULT NULL."""
    return clause.replace("'", "").removeprefix("DEFAULT NULL")


async def test_what_the_operator_gave_is_learned_where_the_statement_is_refused(
    before: Table, learn: Learn
) -> None:
    refused = "ALTER TABLE t ADD w NO_SUCH_TYPE"
    with pytest.raises(ScratchTableError):
        await learn(before, refused)
    table = await learn(before, refused, instead=("ALTER TABLE t ADD w INT",))
    assert shapes(table) == [*shapes(before), ("w", "int(11)", "", False)]


async def test_a_table_whose_charsets_are_those_of_the_target(
    mariadb_source: DatabaseServer, database_name: str, learn: Learn
) -> None:
    mariadb_source.execute(
        f"CREATE DATABASE {database_name}",
        f"CREATE TABLE {database_name}.t (id INT PRIMARY KEY, v VARCHAR(9)) CHARSET=utf8mb4"
        " COLLATE=utf8mb4_general_ci",
    )
    before = await structure_of(mariadb_source, database_name)
    table = await learn(before, "ALTER TABLE t ADD w VARCHAR(9), ADD n INT")
    assert table.column("w") == Column("w", "varchar(9)", "utf8mb4", "utf8mb4_general_ci")
    assert shapes(table)[-1] == ("n", "int(11)", "", False)


async def test_a_parent_of_a_foreign_key_is_not_the_table_itself(
    target_server: DatabaseServer, database_name: str, learn: Learn
) -> None:
    table = await learn(
        None,
        "CREATE TABLE t (b INT PRIMARY KEY, c INT, d INT, UNIQUE KEY (c),"
        " FOREIGN KEY (b) REFERENCES parent (a), FOREIGN KEY (d) REFERENCES t (c))",
    )
    assert [column.name for column in table.columns] == ["b", "c", "d"]
    table = await learn(
        None,
        "CREATE TABLE t (b INT PRIMARY KEY)",
        "ALTER TABLE t ADD e BIGINT",
        "ALTER TABLE t ADD FOREIGN KEY (e) REFERENCES other.parent (a)",
    )
    assert [column.name for column in table.columns] == ["b", "e"]
