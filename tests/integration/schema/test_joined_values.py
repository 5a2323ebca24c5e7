"""The order on columns against real servers: a value that fits a column fits each joined one, too,
and reads back the same."""

from __future__ import annotations

from itertools import combinations

import pytest

from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from replicator.schema.structure.inspection import read_table
from replicator.schema.structure.structure import Column
from replicator.sharding.optimistic.column_order import joined_column, kind
from tests.support.tasks.checking import address

VALUES = {
    "TINYINT": ("-128", "127"),
    "TINYINT UNSIGNED": ("0", "255"),
    "SMALLINT": ("-32768", "32767"),
    "MEDIUMINT UNSIGNED": ("16777215",),
    "INT": ("-2147483648", "2147483647"),
    "INT UNSIGNED": ("4294967295",),
    "BIGINT": ("-9223372036854775808", "9223372036854775807"),
    "BIGINT UNSIGNED": ("18446744073709551615",),
    "DECIMAL(5,2)": ("-999.99", "0.01"),
    "DECIMAL(12,4)": ("99999999.9999",),
    "DECIMAL(20,0)": ("-99999999999999999999",),
    "FLOAT": ("-3.4e38", "1.5"),
    "DOUBLE": ("1.7976931348623157e308", "0.1"),
    "BIT(3)": ("b'111'",),
    "BIT(17)": ("b'10000000000000001'",),
    "CHAR(3)": ("'aä'", "''"),
    "CHAR(3) CHARACTER SET ascii": ("'abc'",),
    "VARCHAR(3)": ("'äöü'", "'a '"),
    "VARCHAR(300)": ("REPEAT('€', 300)",),
    "VARCHAR(9) CHARACTER SET utf8mb4": ("'😀'", "'z'"),
    "VARCHAR(9) CHARACTER SET latin1": ("'é'",),
    "TINYTEXT": ("REPEAT('x', 255)",),
    "TEXT": ("REPEAT('€', 21845)",),
    "MEDIUMTEXT CHARACTER SET utf8mb4": ("REPEAT('😀', 20000)",),
    "BINARY(3)": ("'a'",),
    "VARBINARY(3)": ("X'00FF20'",),
    "BLOB": ("REPEAT(X'FF', 65535)",),
    "ENUM('a','b')": ("'b'",),
    "ENUM('a','b','c')": ("'c'",),
    "SET('a','b')": ("'a,b'", "''"),
    "SET('a','b','c')": ("'a,c'",),
    "TIME": ("'-838:59:59'",),
    "TIME(3)": ("'12:00:00.123'",),
    "DATETIME": ("'9999-12-31 23:59:59'",),
    "DATETIME(6)": ("'2020-01-02 03:04:05.000001'",),
    "TIMESTAMP": ("'2038-01-19 03:14:07'",),
    "TIMESTAMP(2)": ("'2020-01-02 03:04:05.99'",),
    "DATE": ("'9999-12-31'",),
    "YEAR": ("2155",),
    "INT(5) ZEROFILL": ("7",),
}
"""Types, each with values at its limits."""


@pytest.mark.parametrize("kind_of_server", ["mariadb_source", "mysql_source"])
async def test_a_value_that_fits_reads_back_the_same_in_each_joined_column(
    request: pytest.FixtureRequest, kind_of_server: str, database_name: str
) -> None:
    server: DatabaseServer = request.getfixturevalue(kind_of_server)
    server.execute(f"CREATE DATABASE {database_name} CHARACTER SET utf8mb3")
    types = list(VALUES)
    defined = ", ".join(f"c{n} {text}" for n, text in enumerate(types))
    server.execute(f"CREATE TABLE {database_name}.own (id INT PRIMARY KEY, {defined})")
    connection = Connection(address(server))
    try:
        table = await read_table(connection, TableName(database_name, "own"))
    finally:
        connection.close()
    assert table is not None
    columns = dict(zip(types, table.columns[1:], strict=True))
    pairs = [
        (narrow, wide)
        for one, other in combinations(types, 2)
        if (joined := joined_column([columns[one], columns[other]])) is not None
        for narrow in (one, other)
        for wide in [_definition(joined)]
    ]
    assert len(pairs) > 60
    for number, (narrow, wide) in enumerate(pairs):
        name = f"{database_name}.p{number}"
        values = ", ".join(f"({value}, {value})" for value in VALUES[narrow])
        found = server.execute(
            "SET NAMES utf8mb4",
            "SET sql_mode = 'STRICT_ALL_TABLES'",
            f"CREATE TEMPORARY TABLE {name} (own {narrow}, joined {wide})",
            f"INSERT INTO {name} VALUES {values}",
            f"SELECT own, joined FROM {name} WHERE NOT {_same(columns[narrow])}",
        )
        assert not found, (narrow, wide)


def _same(column: Column) -> str:
    if column.charset:
        own, joined = (f"BINARY CONVERT({name} USING utf8mb4)" for name in ("own", "joined"))
        return f"{own} = {joined}"
    return "(own <=> joined OR CONCAT(own) = CONCAT(joined))"


def _definition(column: Column) -> str:
    charset = (
        f" CHARACTER SET {column.charset} COLLATE {column.collation}" if column.charset else ""
    )
    return f"{kind(column)}{charset} NULL"
